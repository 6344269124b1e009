//! Models of a pool with several injectors: a worker sleeps while a task is pushed to the injector of another cluster. The
//! queues and the last look are those of the pool.

use loom::thread;

use super::explore::{Model, models};
use crate::cluster::Clusters;
use crate::idle::{IdleWorker, LastLook, WakeReason};
use crate::queues::{Found, Queues, Stealing};
use crate::sync::Arc;
use crate::task::Task;
use crate::worker::core::Core;
use crate::worker::shared::{Config, Shared};
use crate::worker::thread::WorkerThread;

/// A task comes from outside, to the second of two clusters; the only worker that is there is in the first one. With
/// `near`, its last look does not see that injector.
fn push_against_sleep(near: bool) {
    let clusters = Clusters::of_size(2, 1);
    let shared = Arc::new(Shared::<Stealing>::with_clusters(Config::plain(2, 2), clusters));
    let place = shared.enter().expect("for two threads");
    let pusher = thread::spawn({
        let shared = Arc::clone(&shared);
        move || {
            // SAFETY: it borrows nothing.
            let (task, handle) = unsafe { Task::new(|| ()) };
            drop(handle);
            shared.push_remote(1, task, 1);
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
        let me = IdleWorker { listener: &thread.listener, place: 0, searching };
        let last_look =
            || if near { LastLook::Nothing } else { shared.last_look(Some(0), 0, || false) };
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
    injectors_push_against_sleep: || push_against_sleep(false), None, 50;
}

/// A last look that leaves out the injectors of other clusters: this must fail.
pub(crate) const WRONG: &[Model] = &[Model {
    name: "injectors_near_look",
    run: || push_against_sleep(true),
    preemptions: None,
    floor: 0,
}];
