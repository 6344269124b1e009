//! Models of guests: no task is left while a worker sleeps on because of a guest, and no pool ends under one.
//!
//! The queue is a relaxed counter, as in the models of `idle`.

use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;

use super::explore::{Model, models};
use super::idle::Scene;
use crate::cluster::Clusters;
use crate::fork::demand::Demand;
use crate::idle::Idle;
use crate::sync::Arc;

/// A worker that goes to sleep does not look for private jobs if nobody is busy. A guest that has come meanwhile sees the
/// demand at its first fork.
fn against_sleep() {
    let idle = Arc::new(Idle::new(Clusters::of_size(1, 1), 1, true));
    let demand = Arc::new(Demand::new(1, 1));
    idle.add_missing(1);
    let sleeper = thread::spawn({
        let (idle, demand) = (Arc::clone(&idle), Arc::clone(&demand));
        move || {
            demand.raise_for_sleeper();
            idle.is_anybody_busy(1)
        }
    });
    assert!(idle.enter_guest(1));
    let heard = demand.is_raised();
    let looks = sleeper.join().unwrap();
    assert!(heard || looks, "nobody can have the second half");
}

/// One worker is busy for ever, and the other one is not woken because of a guest, which leaves while a task is pushed. If it
/// does not look, that task has nobody.
fn leaves_against_submit(looks: bool) {
    let scene = Scene::new(2);
    assert!(scene.idle.enter_guest(2));
    let worker = Arc::clone(&scene);
    let sleeper = thread::spawn(move || assert!(worker.work(1), "there is a task"));
    let submitter = Arc::clone(&scene);
    let submitter = thread::spawn(move || submitter.submit());
    if scene.idle.leave_guest(2) && looks && scene.any() {
        let _ = scene.idle.work_added(2);
    }
    submitter.join().unwrap();
    sleeper.join().unwrap();
}

/// The pool is stopped while a guest comes and goes. It ends once, and not while the guest is there. If the guest does not
/// look for the end, it may not end at all.
fn against_stop(looks: bool) {
    let idle = Arc::new(Idle::new(Clusters::of_size(1, 1), 1, true));
    let guests = Arc::new(AtomicUsize::new(0));
    idle.add_missing(1);
    let stopper = thread::spawn({
        let (idle, guests) = (Arc::clone(&idle), Arc::clone(&guests));
        move || {
            let ended = idle.stop(|| false);
            assert!(!ended || guests.load(Relaxed) == 0, "it ended under a guest");
            ended
        }
    });
    let mut ended = false;
    if idle.enter_guest(1) {
        guests.store(1, Relaxed);
        guests.store(0, Relaxed);
        let _ = idle.leave_guest(1);
        ended = looks && idle.end_after_guest(|| false);
    }
    let ended_there = stopper.join().unwrap();
    assert!(ended != ended_there, "the pool ends once");
}

models! {
    guest_against_sleep: against_sleep, None, 10;
    guest_leaves_against_submit: || leaves_against_submit(true), Some(3), 1_200;
    guest_against_stop: || against_stop(true), None, 50;
}

/// A guest that leaves looks for work, and for the end of the pool.
pub(super) const WRONG: &[Model] = &[
    Model {
        name: "guest_leaves_without_look",
        run: || leaves_against_submit(false),
        preemptions: Some(3),
        floor: 0,
    },
    Model {
        name: "guest_leaves_the_end",
        run: || against_stop(false),
        preemptions: None,
        floor: 0,
    },
];
