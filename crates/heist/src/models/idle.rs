//! Models of sleep, wake-up and shutdown. A lost wake-up is a deadlock, which loom reports.
//!
//! The queue is a relaxed counter, which is the weakest queue possible.

use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;

use super::explore::{Model, models};
use crate::cluster::Clusters;
use crate::idle::{Announced, Idle, IdleWorker, LastLook, WakeReason};
use crate::sync::Arc;
use crate::task::listener::Listener;

pub(super) struct Scene {
    pub(super) idle: Idle,
    queue: AtomicUsize,
    /// Counts what a model wants to have counted.
    noted: AtomicUsize,
}

impl Scene {
    /// Returns a pool whose workers are one cluster.
    pub(super) fn new(workers: usize) -> Arc<Self> {
        Self::in_clusters(workers, workers)
    }

    fn in_clusters(workers: usize, size: usize) -> Arc<Self> {
        let idle = Idle::new(Clusters::of_size(workers, size), workers, true);
        Arc::new(Self { idle, queue: AtomicUsize::new(0), noted: AtomicUsize::new(0) })
    }

    fn look(&self) -> LastLook {
        if self.any() { LastLook::Work } else { LastLook::Nothing }
    }

    pub(super) fn any(&self) -> bool {
        self.queue.load(Relaxed) > 0
    }

    /// Takes a task if one is visible.
    fn take(&self) -> bool {
        self.any()
            && self.queue.fetch_update(Relaxed, Relaxed, |waiting| waiting.checked_sub(1)).is_ok()
    }

    /// Pushes a task from outside, unless it is refused: steps P1 to P4. The thread turns to the first cluster.
    pub(super) fn submit(&self) {
        if !self.idle.is_stopping() {
            self.queue.fetch_add(1, Relaxed);
            if self.idle.work_added(0) == Announced::Ended {
                self.sweep();
            }
        }
    }

    fn sweep(&self) {
        while self.take() {}
    }

    /// Runs the worker in that place until it has a task (`true`), or until shutdown (`false`).
    pub(super) fn work(&self, place: usize) -> bool {
        let me = Arc::new(Listener::thread());
        let mut searching = false;
        loop {
            if self.take() {
                if searching {
                    self.idle.leave_search(place, || self.any());
                }
                return true;
            }
            match self.idle.sleep(
                IdleWorker { listener: &me, place, searching, end: None },
                || self.look(),
                || false,
                || false,
                || (),
            ) {
                WakeReason::Early | WakeReason::Called => searching = true,
                WakeReason::Done => unreachable!("it waits for nothing"),
                WakeReason::Ended => return false,
                WakeReason::EndedHere => {
                    self.sweep();
                    return false;
                }
            }
        }
    }
}

/// A worker goes to sleep while a task is pushed.
fn submit_against_park() {
    let scene = Scene::new(1);
    let worker = Arc::clone(&scene);
    let worker = thread::spawn(move || assert!(worker.work(0), "there is a task"));
    scene.submit();
    worker.join().unwrap();
}

/// The only searcher has found a task and stays busy for ever; another task is pushed at the same time, and the
/// other worker must get it.
fn last_searcher_against_submit(size: usize) {
    let scene = Scene::in_clusters(2, size);
    assert!(scene.idle.start_search(0));
    let worker = Arc::clone(&scene);
    let sleeper = thread::spawn(move || assert!(worker.work(1), "there is a task"));
    let submitter = Arc::clone(&scene);
    let submitter = thread::spawn(move || submitter.submit());
    scene.idle.leave_search(0, || scene.any());
    submitter.join().unwrap();
    sleeper.join().unwrap();
}

/// A searcher gives up while a task is pushed.
fn searcher_against_submit() {
    let scene = Scene::new(1);
    let worker = Arc::clone(&scene);
    let worker = thread::spawn(move || {
        let me = Arc::new(Listener::thread());
        let searching = worker.idle.start_search(0);
        assert!(searching, "there is no other");
        let wake_reason = worker.idle.sleep(
            IdleWorker { listener: &me, place: 0, searching, end: None },
            || worker.look(),
            || false,
            || false,
            || (),
        );
        assert!(matches!(wake_reason, WakeReason::Early | WakeReason::Called));
        worker.idle.leave_search(0, || worker.any());
        assert!(worker.work(0), "there is a task");
    });
    scene.submit();
    worker.join().unwrap();
}

/// Two tasks are pushed one after the other; each worker takes one and stays busy for ever. The second push may
/// rely on the searcher that the first one has woken.
fn wake_chain(size: usize) {
    let scene = Scene::in_clusters(2, size);
    let workers = [0, 1].map(|place| {
        let worker = Arc::clone(&scene);
        thread::spawn(move || assert!(worker.work(place), "there is a task for each"))
    });
    scene.submit();
    scene.submit();
    for worker in workers {
        worker.join().unwrap();
    }
}

/// Each worker gets a broadcast while it goes to sleep. No other worker looks into its broadcast queue.
fn broadcast_against_park(size: usize) {
    let idle = Arc::new(Idle::new(Clusters::of_size(2, size), 2, true));
    let broadcasts = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let workers = [0, 1].map(|number| {
        let (idle, broadcasts) = (Arc::clone(&idle), Arc::clone(&broadcasts));
        thread::spawn(move || {
            let me = Arc::new(Listener::thread());
            let has_broadcast = || broadcasts[number].load(Relaxed) > 0;
            let mut searching = false;
            while !has_broadcast() {
                let look = || if has_broadcast() { LastLook::Work } else { LastLook::Nothing };
                let wake_reason = idle.sleep(
                    IdleWorker { listener: &me, place: number, searching, end: None },
                    look,
                    || false,
                    || false,
                    || (),
                );
                assert!(matches!(wake_reason, WakeReason::Early | WakeReason::Called));
                searching = true;
            }
            if searching {
                idle.leave_search(number, || false);
            }
        })
    });
    broadcasts.iter().for_each(|queue| queue.store(1, Relaxed));
    idle.broadcast_added();
    for worker in workers {
        worker.join().unwrap();
    }
}

/// The pool is stopped while its worker goes to sleep.
fn stop_against_park() {
    let scene = Scene::new(1);
    scene.queue.fetch_add(1, Relaxed);
    let worker = Arc::clone(&scene);
    let worker = thread::spawn(move || {
        assert!(worker.work(0), "submitted before the stop");
        assert!(!worker.work(0), "and nothing after it");
    });
    if scene.idle.stop(|| scene.any()) {
        scene.sweep();
    }
    worker.join().unwrap();
}

/// A task is pushed and then the pool is stopped, by the same thread, while both workers go to sleep: the task is run.
fn stop_after_submit(size: usize) {
    let scene = Scene::in_clusters(2, size);
    let workers = [0, 1].map(|place| {
        let worker = Arc::clone(&scene);
        thread::spawn(move || {
            while worker.work(place) {
                worker.noted.fetch_add(1, Relaxed);
            }
        })
    });
    scene.submit();
    if scene.idle.stop(|| scene.any()) {
        scene.sweep();
    }
    for worker in workers {
        worker.join().unwrap();
    }
    assert_eq!(scene.noted.load(Relaxed), 1, "submitted before the stop");
}

/// A task comes from outside while the pool shuts down: it is run or refused, not left.
fn submit_against_end() {
    let scene = Scene::new(1);
    let worker = Arc::clone(&scene);
    let worker = thread::spawn(move || while worker.work(0) {});
    let submitter = Arc::clone(&scene);
    let submitter = thread::spawn(move || submitter.submit());
    if scene.idle.stop(|| scene.any()) {
        scene.sweep();
    }
    worker.join().unwrap();
    submitter.join().unwrap();
    assert_eq!(scene.queue.load(Relaxed), 0, "a task was left behind");
}

/// A thread that has handed off its core retires while the thread that has the core goes to sleep, and the pool is
/// stopping: one of the two finds that this is the end.
fn retire_against_park() {
    let scene = Scene::new(1);
    scene.idle.enter_away(0);
    assert!(!scene.idle.stop(|| scene.any()), "somebody is away");
    let worker = Arc::clone(&scene);
    let worker = thread::spawn(move || while worker.work(0) {});
    // The last thing that the thread did was to spawn, which a thread of the pool may do during shutdown.
    scene.queue.fetch_add(1, Relaxed);
    assert_ne!(scene.idle.work_added(0), Announced::Ended, "while it is away");
    if scene.idle.retire(0, || scene.any()) {
        scene.sweep();
    }
    worker.join().unwrap();
    assert_eq!(scene.queue.load(Relaxed), 0, "a task was left behind");
}

/// A worker that waits for something is notified of it while it goes to sleep.
fn done_against_park() {
    let scene = Scene::new(1);
    let me = Arc::new(Listener::thread());
    let done = Arc::new(AtomicUsize::new(0));
    let (listener, tell) = (Arc::clone(&me), Arc::clone(&done));
    let teller = thread::spawn(move || {
        tell.store(1, Relaxed);
        listener.notify();
    });
    let is_done = || done.load(Relaxed) == 1;
    let look = || LastLook::Nothing;
    let wake_reason = scene.idle.sleep(
        IdleWorker { listener: &me, place: 0, searching: false, end: None },
        look,
        || false,
        is_done,
        || (),
    );
    assert_eq!(wake_reason, WakeReason::Done);
    teller.join().unwrap();
}

/// A worker that waits is notified that it waits no longer, while a task is pushed for which it may be called. It is busy
/// for ever after that, and the other worker must get the task. With `forgets`, it does not end the search for which it was
/// called. With `gives_up`, the pusher wakes nobody if another thread has the lock.
fn done_against_submit(size: usize, forgets: bool, gives_up: bool) {
    let scene = Scene::in_clusters(2, size);
    let done = Arc::new(AtomicUsize::new(0));
    let me = Arc::new(Listener::thread());
    let teller = thread::spawn({
        let (listener, tell) = (Arc::clone(&me), Arc::clone(&done));
        move || {
            tell.store(1, Relaxed);
            listener.notify();
        }
    });
    let worker = Arc::clone(&scene);
    let worker = thread::spawn(move || assert!(worker.work(1), "there is a task"));
    let submitter = Arc::clone(&scene);
    let submitter = thread::spawn(move || {
        if gives_up {
            submitter.queue.fetch_add(1, Relaxed);
            assert_eq!(submitter.idle.work_added_unless_locked(0), Announced::Quiet);
        } else {
            submitter.submit();
        }
    });
    let is_done = || done.load(Relaxed) == 1;
    let reason = scene.idle.sleep(
        IdleWorker { listener: &me, place: 0, searching: false, end: None },
        || scene.look(),
        || false,
        is_done,
        || (),
    );
    if reason != WakeReason::Done && !forgets {
        scene.idle.leave_search(0, || scene.any());
    }
    teller.join().unwrap();
    submitter.join().unwrap();
    worker.join().unwrap();
}

/// Two workers in two clusters shut down: the pool ends when both sleep, and not before the last task is done. With two
/// tasks, each of them may wake the other.
fn end_of_clusters() {
    let scene = Scene::in_clusters(2, 1);
    scene.queue.fetch_add(1, Relaxed);
    let workers = [0, 1].map(|place| {
        let worker = Arc::clone(&scene);
        thread::spawn(move || {
            while worker.work(place) {
                // The first task spawns another one.
                if worker.noted.swap(1, Relaxed) == 0 {
                    worker.queue.fetch_add(1, Relaxed);
                    assert_ne!(worker.idle.work_added(place), Announced::Ended, "a worker runs");
                }
            }
        })
    });
    if scene.idle.stop(|| scene.any()) {
        scene.sweep();
    }
    for worker in workers {
        worker.join().unwrap();
    }
    assert_eq!(scene.noted.load(Relaxed), 1, "submitted before the stop");
    assert_eq!(scene.queue.load(Relaxed), 0, "a task was left behind");
}

models! {
    idle_submit_against_park: submit_against_park, None, 200;
    idle_searcher_against_submit: searcher_against_submit, None, 250;
    idle_last_searcher_against_submit: || last_searcher_against_submit(2), Some(4), 13_000;
    idle_last_searcher_of_cluster: || last_searcher_against_submit(1), Some(4), 10_000;
    idle_wake_chain: || wake_chain(2), Some(3), 100_000;
    idle_wake_chain_of_clusters: || wake_chain(1), Some(2), 15_000;
    idle_broadcast_against_park: || broadcast_against_park(2), Some(3), 5_000;
    idle_broadcast_to_clusters: || broadcast_against_park(1), Some(3), 15_000;
    idle_stop_against_park: stop_against_park, None, 60;
    idle_stop_after_submit: || stop_after_submit(1), Some(2), 15_000;
    idle_submit_against_end: submit_against_end, Some(4), 33_000;
    idle_retire_against_park: retire_against_park, Some(4), 400;
    idle_done_against_park: done_against_park, None, 40;
    idle_done_against_submit: || done_against_submit(2, false, false), Some(2), 50_000;
    idle_done_in_cluster: || done_against_submit(1, false, false), Some(1), 4_000;
    idle_end_of_clusters: end_of_clusters, Some(2), 15_000;
}

/// A worker that is called while what it waits for is done must end its search as any searcher does. And the lock of a list may
/// be held by a worker that leaves it because it waits no longer, so that a pusher must not rely on whoever holds it.
pub(super) const WRONG: &[Model] = &[
    Model {
        name: "idle_forgotten_search",
        run: || done_against_submit(2, true, false),
        preemptions: Some(2),
        floor: 0,
    },
    Model {
        name: "idle_reliance_on_lock",
        run: || done_against_submit(2, false, true),
        preemptions: Some(2),
        floor: 0,
    },
];
