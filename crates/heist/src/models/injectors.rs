//! Models of a pool with several injectors and with priorities: a worker sleeps while a task is pushed to the injector of
//! another cluster, or to the queue of a priority. The queues and the last look are those of the pool.

use loom::thread;

use super::explore::{Model, models};
use crate::cluster::Clusters;
use crate::idle::{IdleWorker, LastLook, WakeReason};
use crate::priority::Rank;
use crate::queues::{Found, Queues, Stealing};
use crate::sync::Arc;
use crate::task::Task;
use crate::worker::config::Config;
use crate::worker::core::Core;
use crate::worker::shared::Shared;
use crate::worker::thread::WorkerThread;

/// Where the task is that comes from outside.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Where {
    OtherCluster,
    LowPriority,
}

/// What the last look of the worker sees.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sees {
    Everything,
    /// Not the queue of the task.
    Nothing,
}

/// A task comes from outside; the only worker that is there is in the first of two clusters.
fn push_against_sleep(to: Where, sees: Sees) {
    let clusters = Clusters::of_size(2, 1);
    let shared = Arc::new(Shared::<Stealing>::with_clusters(Config::plain(2, 2), clusters));
    let place = shared.enter().expect("for two threads");
    let pusher = thread::spawn({
        let shared = Arc::clone(&shared);
        move || {
            // SAFETY: it borrows nothing.
            let (task, handle) = unsafe { Task::new(|| ()) };
            drop(handle);
            match to {
                Where::OtherCluster => shared.push_remote(1, task, 1),
                Where::LowPriority => shared.push_ranked_unless_stopping(Rank::Low, task, 1),
            }
        }
    });
    let thread = WorkerThread::new(Arc::clone(&shared), place);
    thread.acquire_core(Box::new(Core::new(0, shared.ledger.of_worker(0))));
    let (queues, tally) = (&shared.queues, shared.ledger.of_non_workers());
    let mut searching = false;
    let task = loop {
        if let Found::Task(task, _) = queues.take_injected(&thread.place.own, tally) {
            break task;
        }
        if let Some(task) = queues.pop_ranked(Rank::Low, tally) {
            break task;
        }
        let me = IdleWorker { listener: &thread.listener, place: 0, searching, end: None };
        let last_look = || match sees {
            Sees::Everything => shared.last_look(Some(0), 0, || false),
            Sees::Nothing => LastLook::Nothing,
        };
        match shared.idle.sleep(me, last_look, || false, || false, || ()) {
            WakeReason::Early | WakeReason::Called => searching = true,
            _ => unreachable!("nobody stops the pool, and it waits for nothing"),
        }
    };
    drop(task);
    pusher.join().unwrap();
    drop(thread.release_core());
    let WorkerThread { shared, place, .. } = thread;
    shared.leave(place);
}

models! {
    injectors_push_against_sleep:
        || push_against_sleep(Where::OtherCluster, Sees::Everything), None, 50;
    ranked_push_against_sleep:
        || push_against_sleep(Where::LowPriority, Sees::Everything), None, 30_000;
}

/// A last look that leaves out the injectors of other clusters, or the queues of priorities: these must fail.
pub(crate) const WRONG: &[Model] = &[
    Model {
        name: "injectors_near_look",
        run: || push_against_sleep(Where::OtherCluster, Sees::Nothing),
        preemptions: None,
        floor: 0,
    },
    Model {
        name: "ranked_without_look",
        run: || push_against_sleep(Where::LowPriority, Sees::Nothing),
        preemptions: None,
        floor: 0,
    },
];
