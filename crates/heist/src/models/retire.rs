//! Models of a worker that retires (`worker/retire.rs`): beside a thread that keeps its core while it waits (step T3), beside a
//! broadcast (step T4), and when it is about to sleep (step T6). `resize` has the steps T1, T2 and T5. The parts are those of the
//! pool. A worker that is missed is a deadlock, which loom reports.

use loom::thread;

use super::explore::{Model, models};
use super::handoff::{pool, thread_of};
use crate::cluster::Clusters;
use crate::idle::{IdleWorker, LastLook, WakeReason};
use crate::queues::{Queues, Stealing};
use crate::sync::Arc;
use crate::task::Task;
use crate::task::listener::Listener;
use crate::worker::config::Config;
use crate::worker::core::Core;
use crate::worker::shared::Shared;
use crate::worker::thread::WorkerThread;

/// What the other thread does, or the worker itself before it sleeps. The right way comes first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Right,
    /// It leaves out its part of the step.
    Silent,
}

/// Runs something as worker 1, on a thread of its own.
fn as_worker(
    shared: &Arc<Shared<Stealing>>,
    run: impl FnOnce(&WorkerThread<Stealing>, &Core) + 'static,
) -> thread::JoinHandle<()> {
    let shared = Arc::clone(shared);
    thread::spawn(move || {
        let thread = thread_of(&shared);
        thread.acquire_core(Box::new(Core::new(1, shared.ledger.of_worker(1))));
        run(&thread, thread.core.borrow().as_ref().expect("acquired"));
        drop(thread.release_core());
        let WorkerThread { shared, place, .. } = thread;
        shared.leave(place);
    })
}

/// A task of the first worker waits, and keeps its core because there may be no more threads. What it waits for needs the second
/// worker, which is to retire.
fn against_keep(way: Way) {
    let shared = pool(2, 2);
    shared.ask_for_workers(1);
    let awaited = Arc::new(Listener::thread());
    let retiring = as_worker(&shared, {
        let awaited = Arc::clone(&awaited);
        move |thread, core| {
            thread.retire(core);
            awaited.notify();
            // If the wait is over by now, until the pool is stopped.
            thread.retire(core);
        }
    });
    if way == Way::Right {
        assert!(shared.handoff.keep_core(), "there is another core");
    }
    awaited.sleeper().park();
    if way == Way::Right {
        shared.handoff.use_core();
    }
    shared.use_all_cores();
    retiring.join().unwrap();
}

/// A worker retires while something is broadcast to it.
fn against_broadcast(way: Way) {
    let shared = pool(2, 2);
    shared.ask_for_workers(1);
    let retiring = as_worker(&shared, |thread, core| {
        thread.retire(core);
        drop(thread.next_broadcast(core).expect("it is needed for nothing else"));
    });
    // SAFETY: it borrows nothing.
    let (task, handle) = unsafe { Task::new(|| ()) };
    drop(handle);
    match way {
        Way::Right => shared.broadcast_to(vec![(1, task)]),
        Way::Silent => {
            shared.idle.enter_away(1);
            shared.queues.push_broadcast(1, task);
        }
    }
    retiring.join().unwrap();
}

/// A worker goes to sleep while the pool, with clusters of that size, is made smaller, so that it is to retire.
fn against_sleep(size: usize, way: Way) {
    let clusters = Clusters::of_size(2, size);
    let shared = Arc::new(Shared::<Stealing>::with_clusters(Config::plain(2, 2), clusters));
    let retiring = as_worker(&shared, move |thread, _| {
        let shared = &*thread.shared;
        let can_retire = || shared.handoff.can_retire(1);
        let place = thread.place.index;
        let me = IdleWorker { listener: &thread.listener, place, searching: false, end: None };
        let is_done = || way == Way::Right && can_retire();
        match shared.idle.sleep(me, || LastLook::Nothing, || false, is_done, || ()) {
            WakeReason::Done => {}
            WakeReason::Called => _ = shared.idle.leave_search(place, || false),
            reason => unreachable!("there is no work and no end: {reason:?}"),
        }
        assert!(can_retire(), "it was woken for that");
    });
    shared.ask_for_workers(1);
    retiring.join().unwrap();
}

models! {
    retire_against_keep: || against_keep(Way::Right), Some(3), 60;
    retire_against_broadcast: || against_broadcast(Way::Right), Some(3), 75;
    retire_against_sleep: || against_sleep(2, Way::Right), None, 1_100;
    retire_against_sleep_in_clusters: || against_sleep(1, Way::Right), None, 260;
}

/// A thread that keeps its core and does not say so, a broadcast of which a retired worker is not told, and a worker that falls
/// asleep without a look at the size: these must fail.
pub(super) const WRONG: &[Model] = &[
    Model {
        name: "retire_silent_keep",
        run: || against_keep(Way::Silent),
        preemptions: Some(2),
        floor: 0,
    },
    Model {
        name: "retire_silent_broadcast",
        run: || against_broadcast(Way::Silent),
        preemptions: Some(2),
        floor: 0,
    },
    Model {
        name: "retire_without_a_look",
        run: || against_sleep(2, Way::Silent),
        preemptions: Some(2),
        floor: 0,
    },
];
