//! Models of raids: a thief takes a private job unasked, and no worker sleeps while another has one.

use loom::thread;

use super::explore::{Model, models};
use super::fork::{Once, Scene};
use crate::api::join::join;
use crate::cluster::Clusters;
use crate::fork::demand::Demand;
use crate::fork::raid::{self, Raided};
use crate::idle::{Idle, IdleWorker, LastLook, WakeReason};
use crate::order;
use crate::queues::{Found, Queues};
use crate::sync::{Arc, heavy_fence};
use crate::task::listener::Listener;

/// Runs `f` as a thread of a pool, while a thief raids what it finds.
fn raided(f: impl FnOnce()) {
    let (scene, mut own) = <Scene>::with_demand(Demand::new(0, 1).with_raids());
    let thief = thread::spawn({
        let scene = Arc::clone(&scene);
        move || {
            if let Some(Raided::Job(job)) = raid::raid(&scene.demand, None) {
                scene.run(job);
            }
        }
    });
    scene.as_worker_thread(own.remove(0), f);
    thief.join().unwrap();
}

/// Two forks one after the other, in the same place.
fn against_owner() {
    let ran = Once::new();
    raided(|| {
        for times in 1..=2 {
            let second = || {
                ran.happen();
                2
            };
            assert_eq!(join(|| 1, second), (1, 2));
            assert_eq!(ran.times(), times, "once, and it is seen");
        }
    });
}

/// One fork within another: the thief takes the older one.
fn against_nested() {
    let (older, newer) = (Once::new(), Once::new());
    raided(|| {
        join(|| join(|| (), || newer.happen()), || older.happen());
        assert_eq!((older.times(), newer.times()), (1, 1));
    });
}

/// The first half of a fork waits for the second, while the only other worker goes to sleep: that worker must not
/// sleep, or must be woken.
fn against_sleep() {
    let (scene, mut own) = <Scene>::with_demand(Demand::new(0, 1).with_raids());
    let worker = thread::spawn({
        let scene = Arc::clone(&scene);
        move || sleep_or_raid(&scene)
    });
    let second = Arc::new(Listener::thread());
    scene.as_worker_thread(own.remove(0), || {
        join(|| second.sleeper().park(), || second.notify());
    });
    worker.join().unwrap();
}

/// Runs a worker until it has the only job or task that there is.
pub(super) fn sleep_or_raid(scene: &Scene) {
    let me = Arc::new(Listener::thread());
    let mut searching = false;
    let job = loop {
        let tally = scene.ledger.of_non_workers();
        if let Found::Task(job, _) = scene.queues.steal_job(&scene.owner, tally) {
            break job;
        }
        if let Found::Task(task, _) = scene.queues.steal_one(&scene.owner, tally) {
            break task;
        }
        if let Some(Raided::Job(task) | Raided::Tasks(task, _)) = raid::raid(&scene.demand, None) {
            break task;
        }
        // Another thief may hold the lock.
        thread::yield_now();
        let last_look = || {
            scene.demand.raise_for_sleeper();
            if scene.queues.has_any(&scene.owner) { LastLook::Work } else { LastLook::Unsure }
        };
        let second_look = || {
            heavy_fence(order::RAID);
            raid::may_raid(&scene.demand)
        };
        match scene.idle.sleep(
            IdleWorker { listener: &me, place: 1, searching, end: None },
            last_look,
            second_look,
            || false,
            || (),
        ) {
            WakeReason::Early | WakeReason::Called => searching = true,
            _ => unreachable!("nobody stops it, and it waits for nothing"),
        }
    };
    if searching {
        scene.idle.leave_search(1, || false);
    }
    scene.run(job);
}

/// A worker that goes to sleep does not look for jobs if it has seen the other worker searching. The other worker,
/// which has found something by now, sees the demand at its first fork. There is no other fence between the two.
fn against_searcher(size: usize) {
    let idle = Arc::new(Idle::new(Clusters::of_size(2, size), 2, true));
    let demand = Arc::new(Demand::new(0, 1));
    idle.add_missing(1);
    assert!(idle.start_search(0));
    let sleeper = thread::spawn({
        let (idle, demand) = (Arc::clone(&idle), Arc::clone(&demand));
        move || {
            demand.raise_for_sleeper();
            idle.is_anybody_busy(2)
        }
    });
    idle.leave_search(0, || false);
    let heard = demand.is_raised();
    let looks = sleeper.join().unwrap();
    assert!(heard || looks, "nobody can have the second half");
}

models! {
    raid_against_owner: against_owner, Some(5), 7_500;
    raid_against_nested: against_nested, Some(5), 14_000;
    raid_against_sleep: against_sleep, Some(6), 6_000;
    raid_against_searcher: || against_searcher(2), None, 10;
    raid_against_searcher_far: || against_searcher(1), None, 10;
}
