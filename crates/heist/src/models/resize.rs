//! A model of a pool that is made smaller while a task comes: the worker that is woken for the task may retire, and then the other
//! one runs the task. In the end the pool is stopped, for which the retired worker goes on. The parts are those of the pool.

use loom::thread;

use super::explore::{Model, models};
use crate::cluster::Clusters;
use crate::idle::{IdleWorker, WakeReason};
use crate::queues::{Found, Queues, Stealing};
use crate::sync::Arc;
use crate::task::Task;
use crate::worker::config::Config;
use crate::worker::core::Core;
use crate::worker::shared::Shared;
use crate::worker::table::Place;
use crate::worker::thread::WorkerThread;

/// What a worker does that was woken and retires, and what the one does that stops the pool. The right way comes first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Right,
    /// It passes on what it was woken for to nobody (step T2).
    Silent,
    /// It does that in the right way, but whoever stops the pool leaves the retired worker as it is (step T5).
    Forgotten,
}

/// Works as that worker until the pool has ended. Whoever runs the task stops the pool.
fn work(shared: &Arc<Shared<Stealing>>, place: Place<Stealing>, worker: usize, way: Way) {
    let thread = WorkerThread::new(Arc::clone(shared), place);
    thread.acquire_core(Box::new(Core::new(worker, shared.ledger.of_worker(worker))));
    let mut searching = false;
    loop {
        if let Some(core) = &*thread.core.borrow() {
            if way == Way::Silent && shared.handoff.can_retire(worker) {
                thread.wait_retired(core);
            }
            searching = thread.retire_from_search(core, searching);
        }
        let (own, tally) = (&thread.place.own, shared.ledger.of_non_workers());
        if let Found::Task(task, _) = shared.queues.take_injected(own, tally) {
            drop(task);
            if searching {
                assert_eq!(shared.idle.leave_search(thread.place.index, || false), 0);
                searching = false;
            }
            match way {
                Way::Forgotten => {
                    assert!(!shared.idle.stop(|| shared.any()), "this worker is awake")
                }
                Way::Right | Way::Silent => shared.close(),
            }
        }
        let place = thread.place.index;
        let me = IdleWorker { listener: &thread.listener, place, searching, end: None };
        let last_look = || shared.last_look(Some(worker), place, || false);
        let retires = || shared.handoff.can_retire(worker);
        match shared.idle.sleep(me, last_look, || false, retires, || ()) {
            WakeReason::Early | WakeReason::Called => searching = true,
            WakeReason::Done => searching = false,
            WakeReason::Ended => break,
            WakeReason::EndedHere => {
                shared.finish_shutdown();
                break;
            }
        }
    }
    drop(thread.release_core());
    let WorkerThread { shared, place, .. } = thread;
    shared.leave(place);
}

fn smaller_against_push(way: Way) {
    let clusters = Clusters::of_size(2, 2);
    let shared = Arc::new(Shared::<Stealing>::with_clusters(Config::plain(2, 2), clusters));
    let [first, second] = [(); 2].map(|()| shared.enter().expect("for two threads"));
    let retired = thread::spawn({
        let shared = Arc::clone(&shared);
        move || work(&shared, second, 1, way)
    });
    let outside = thread::spawn({
        let shared = Arc::clone(&shared);
        move || {
            // SAFETY: it borrows nothing.
            let (task, handle) = unsafe { Task::new(|| ()) };
            drop(handle);
            shared.ask_for_workers(1);
            shared.push_remote(0, task, 1);
        }
    });
    work(&shared, first, 0, way);
    retired.join().unwrap();
    outside.join().unwrap();
}

models! {
    resize_against_push: || smaller_against_push(Way::Right), Some(2), 150_000;
}

/// A worker that was woken for a task and retires without a word, and a stop for which a retired worker does not go on: these must
/// fail.
pub(crate) const WRONG: &[Model] = &[
    Model {
        name: "resize_silent",
        run: || smaller_against_push(Way::Silent),
        preemptions: Some(2),
        floor: 0,
    },
    Model {
        name: "resize_forgotten",
        run: || smaller_against_push(Way::Forgotten),
        preemptions: Some(2),
        floor: 0,
    },
];
