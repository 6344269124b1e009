//! Models of inboxes: a near task comes while workers go to sleep, or while the worker that it is near runs a long task. The parts
//! are those of the pool. A task that is stranded is a deadlock, which loom reports.

use loom::thread;

use super::explore::{Model, models};
use crate::cluster::Clusters;
use crate::idle::{IdleWorker, LastLook, WakeReason};
use crate::queues::{NO_GROUP, Stealing};
use crate::sync::Arc;
use crate::task::Task;
use crate::worker::config::Config;
use crate::worker::core::Core;
use crate::worker::inbox::Patience;
use crate::worker::shared::Shared;
use crate::worker::table::Place;
use crate::worker::thread::WorkerThread;

type Pool = Arc<Shared<Stealing>>;

/// What the threads do. The right way comes first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Right,
    /// A push wakes nobody if the worker does not sleep (step N5).
    Unannounced,
    /// The last look passes over the inboxes (step S3).
    Overlooked,
    /// A worker that has found a task passes over the inboxes at step F3.
    Forgotten,
}

fn pool(size: usize) -> (Pool, [Place<Stealing>; 2]) {
    let clusters = Clusters::of_size(2, size);
    let shared = Arc::new(Shared::with_clusters(Config::plain(2, 2), clusters));
    let places = [(); 2].map(|()| shared.enter().expect("for two threads"));
    (shared, places)
}

/// Pushes a task near that worker, from outside.
fn push(shared: &Pool, worker: usize, way: Way) {
    // SAFETY: it borrows nothing.
    let (task, handle) = unsafe { Task::new(|| ()) };
    drop(handle);
    if way == Way::Unannounced {
        return shared.inboxes.push(worker, task, NO_GROUP);
    }
    shared.push_near_unless_stopping(worker, task);
}

/// Looks for a near task as that worker does: at the end of a task, or in a search.
fn search(thread: &WorkerThread<Stealing>, core: &Core, searching: bool) -> Option<Task> {
    let mut patience = Patience::default();
    loop {
        let taken = thread.next_near(core);
        let mut others = || thread.take_near_in_time(core, &mut patience);
        let taken = taken.or_else(|| if searching { others() } else { None });
        if taken.is_some() || !patience.goes_on() {
            return taken;
        }
        thread::yield_now();
    }
}

/// Works as that worker until it has taken a task, with which it is busy for ever; or until the pool has ended. Returns whether
/// it has taken a task.
fn work(shared: &Pool, place: Place<Stealing>, worker: usize, way: Way) -> bool {
    let thread = WorkerThread::new(Arc::clone(shared), place);
    thread.acquire_core(Box::new(Core::new(worker, shared.ledger.of_worker(worker))));
    let index = thread.place.index;
    let mut searching = false;
    let found = loop {
        let task = search(&thread, thread.core.borrow().as_ref().expect("acquired"), searching);
        if let Some(task) = task {
            drop(task);
            break true;
        }
        let last_look = || match way {
            Way::Overlooked => LastLook::Nothing,
            _ => shared.last_look(Some(worker), index, || false),
        };
        let me = IdleWorker { listener: &thread.listener, place: index, searching, end: None };
        match shared.idle.sleep(me, last_look, || false, || false, || ()) {
            WakeReason::Early | WakeReason::Called => searching = true,
            WakeReason::Done => unreachable!("it waits for nothing"),
            WakeReason::Ended => break false,
            WakeReason::EndedHere => {
                shared.finish_shutdown();
                break false;
            }
        }
    };
    if found && searching {
        let _ = shared.idle.leave_search(index, || way != Way::Forgotten && shared.has_remote());
    }
    drop(thread.release_core());
    let WorkerThread { shared, place, .. } = thread;
    shared.leave(place);
    found
}

/// The worker goes to sleep while a task comes that is near it. The other one is busy for ever.
fn against_sleep(way: Way) {
    let (shared, [first, _second]) = pool(2);
    let outside = thread::spawn({
        let shared = Arc::clone(&shared);
        move || push(&shared, 0, way)
    });
    assert!(work(&shared, first, 0, way));
    outside.join().unwrap();
}

/// The worker runs a long task while a task comes that is near it, and the other one goes to sleep.
fn behind_a_long_task(size: usize, way: Way) {
    let (shared, [_first, second]) = pool(size);
    let outside = thread::spawn({
        let shared = Arc::clone(&shared);
        move || push(&shared, 0, way)
    });
    assert!(work(&shared, second, 1, way));
    outside.join().unwrap();
}

/// Two tasks come that are near the same worker. Each worker takes one and is busy with it for ever.
fn against_a_thief(size: usize, way: Way) {
    let (shared, [first, second]) = pool(size);
    let thief = thread::spawn({
        let shared = Arc::clone(&shared);
        move || assert!(work(&shared, second, 1, way))
    });
    let outside = thread::spawn({
        let shared = Arc::clone(&shared);
        move || {
            push(&shared, 0, way);
            push(&shared, 0, way);
        }
    });
    assert!(work(&shared, first, 0, way));
    thief.join().unwrap();
    outside.join().unwrap();
    assert!(!shared.inboxes.any());
}

/// A near task comes while the pool shuts down: it is taken or refused, not left.
fn against_the_end() {
    let (shared, [first, second]) = pool(2);
    // There is one worker only: the other one is missing.
    shared.idle.add_missing(1);
    drop(second);
    let outside = thread::spawn({
        let shared = Arc::clone(&shared);
        move || push(&shared, 0, Way::Right)
    });
    let worker = thread::spawn({
        let shared = Arc::clone(&shared);
        move || {
            if work(&shared, first, 0, Way::Right) {
                // It would go on to look, and sleep, in the end.
                shared.idle.add_missing(1);
                shared.close();
            }
        }
    });
    shared.close();
    outside.join().unwrap();
    worker.join().unwrap();
    assert!(!shared.inboxes.any(), "a task was left behind");
}

models! {
    near_against_sleep: || against_sleep(Way::Right), None, 7_000;
    near_behind_a_long_task: || behind_a_long_task(2, Way::Right), Some(3), 400;
    near_in_another_cluster: || behind_a_long_task(1, Way::Right), Some(3), 280;
    near_against_a_thief: || against_a_thief(2, Way::Right), Some(2), 70_000;
    near_against_a_far_thief: || against_a_thief(1, Way::Right), Some(1), 40_000;
    near_against_the_end: against_the_end, Some(3), 55_000;
}

/// Each of these strands a task behind a worker that is busy for ever: these must fail.
pub(super) const WRONG: &[Model] = &[
    Model {
        name: "near_unannounced",
        run: || behind_a_long_task(2, Way::Unannounced),
        preemptions: Some(2),
        floor: 0,
    },
    Model {
        name: "near_overlooked",
        run: || behind_a_long_task(2, Way::Overlooked),
        preemptions: Some(2),
        floor: 0,
    },
    Model {
        name: "near_forgotten",
        run: || against_a_thief(2, Way::Forgotten),
        preemptions: Some(2),
        floor: 0,
    },
];
