//! Models of sleep, wake-up and shutdown. A lost wake-up is a deadlock, which loom reports.
//!
//! The queue is a relaxed counter, which is the weakest queue possible.

use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;

use super::explore::{Model, models};
use crate::idle::{Announced, Idle, WakeReason};
use crate::sync::Arc;
use crate::task::listener::Listener;

struct Scene {
    idle: Idle,
    queue: AtomicUsize,
}

impl Scene {
    fn new(workers: usize) -> Arc<Self> {
        Arc::new(Self { idle: Idle::new(workers, true), queue: AtomicUsize::new(0) })
    }

    fn any(&self) -> bool {
        self.queue.load(Relaxed) > 0
    }

    /// Takes a task if one is visible.
    fn take(&self) -> bool {
        self.any()
            && self.queue.fetch_update(Relaxed, Relaxed, |waiting| waiting.checked_sub(1)).is_ok()
    }

    /// Pushes a task from outside, unless it is refused: steps P1 to P4.
    fn submit(&self) {
        if !self.idle.is_stopping() {
            self.queue.fetch_add(1, Relaxed);
            if self.idle.work_added() == Announced::Ended {
                self.sweep();
            }
        }
    }

    fn sweep(&self) {
        while self.take() {}
    }

    /// Runs a worker until it has a task (`true`), or until shutdown (`false`).
    fn work(&self) -> bool {
        let me = Arc::new(Listener::thread());
        let mut searching = false;
        loop {
            if self.take() {
                if searching {
                    self.idle.leave_search(|| self.any());
                }
                return true;
            }
            match self.idle.sleep(&me, searching, || self.any(), || false, || ()) {
                WakeReason::Early | WakeReason::Called => searching = true,
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
    let worker = thread::spawn(move || assert!(worker.work(), "there is a task"));
    scene.submit();
    worker.join().unwrap();
}

/// The only searcher has found a task and stays busy for ever; another task is pushed at the same time, and the
/// other worker must get it.
fn last_searcher_against_submit() {
    let scene = Scene::new(2);
    assert!(scene.idle.start_search());
    let worker = Arc::clone(&scene);
    let sleeper = thread::spawn(move || assert!(worker.work(), "there is a task"));
    let submitter = Arc::clone(&scene);
    let submitter = thread::spawn(move || submitter.submit());
    scene.idle.leave_search(|| scene.any());
    submitter.join().unwrap();
    sleeper.join().unwrap();
}

/// A searcher gives up while a task is pushed.
fn searcher_against_submit() {
    let scene = Scene::new(1);
    let worker = Arc::clone(&scene);
    let worker = thread::spawn(move || {
        let me = Arc::new(Listener::thread());
        let searching = worker.idle.start_search();
        assert!(searching, "there is no other");
        let wake_reason = worker.idle.sleep(&me, searching, || worker.any(), || false, || ());
        assert!(matches!(wake_reason, WakeReason::Early | WakeReason::Called));
        worker.idle.leave_search(|| worker.any());
        assert!(worker.work(), "there is a task");
    });
    scene.submit();
    worker.join().unwrap();
}

/// Two tasks are pushed one after the other; each worker takes one and stays busy for ever. The second push may
/// rely on the searcher that the first one has woken.
fn wake_chain() {
    let scene = Scene::new(2);
    let workers = [Arc::clone(&scene), Arc::clone(&scene)]
        .map(|worker| thread::spawn(move || assert!(worker.work(), "there is a task for each")));
    scene.submit();
    scene.submit();
    for worker in workers {
        worker.join().unwrap();
    }
}

/// Each worker gets a broadcast while it goes to sleep. No other worker looks into its broadcast queue.
fn broadcast_against_park() {
    let idle = Arc::new(Idle::new(2, true));
    let broadcasts = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let workers = [0, 1].map(|number| {
        let (idle, broadcasts) = (Arc::clone(&idle), Arc::clone(&broadcasts));
        thread::spawn(move || {
            let me = Arc::new(Listener::thread());
            let has_broadcast = || broadcasts[number].load(Relaxed) > 0;
            let mut searching = false;
            while !has_broadcast() {
                let wake_reason = idle.sleep(&me, searching, has_broadcast, || false, || ());
                assert!(matches!(wake_reason, WakeReason::Early | WakeReason::Called));
                searching = true;
            }
            if searching {
                idle.leave_search(|| false);
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
        assert!(worker.work(), "submitted before the stop");
        assert!(!worker.work(), "and nothing after it");
    });
    if scene.idle.stop(|| scene.any()) {
        scene.sweep();
    }
    worker.join().unwrap();
}

/// A task comes from outside while the pool shuts down: it is run or refused, not left.
fn submit_against_end() {
    let scene = Scene::new(1);
    let worker = Arc::clone(&scene);
    let worker = thread::spawn(move || while worker.work() {});
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
    scene.idle.enter_away();
    assert!(!scene.idle.stop(|| scene.any()), "somebody is away");
    let worker = Arc::clone(&scene);
    let worker = thread::spawn(move || while worker.work() {});
    // The last thing that the thread did was to spawn, which a thread of the pool may do during shutdown.
    scene.queue.fetch_add(1, Relaxed);
    assert_ne!(scene.idle.work_added(), Announced::Ended, "while it is away");
    if scene.idle.retire(|| scene.any()) {
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
    let wake_reason = scene.idle.sleep(&me, false, || false, is_done, || ());
    assert_eq!(wake_reason, WakeReason::Early);
    teller.join().unwrap();
}

models! {
    idle_submit_against_park: submit_against_park, None, 200;
    idle_searcher_against_submit: searcher_against_submit, None, 250;
    idle_last_searcher_against_submit: last_searcher_against_submit, Some(4), 15_000;
    idle_wake_chain: wake_chain, Some(3), 100_000;
    idle_broadcast_against_park: broadcast_against_park, Some(3), 8_000;
    idle_stop_against_park: stop_against_park, None, 60;
    idle_submit_against_end: submit_against_end, Some(4), 33_000;
    idle_retire_against_park: retire_against_park, Some(4), 400;
    idle_done_against_park: done_against_park, None, 40;
}
