//! Shutdown of an engine: with broadcasts in its queues, attached threads, and threads that start late or
//! never.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread::{self, JoinHandle};

use heist::engine::{Engine, Latch, Worker};
use heist_testkit::test_path;
use heist_testkit::watchdog::watched;

/// Makes a test for each function of `contract`, under the watchdog.
macro_rules! tests {
    ($($(#[$attribute:meta])* $name:ident)*) => {$(
        #[test]
        $(#[$attribute])*
        fn $name() {
            watched(test_path!(stringify!($name)), contract::$name);
        }
    )*};
}

tests! {
    concurrent_broadcasts_have_the_same_order_on_every_thread
    shutdown_waits_for_broadcasts
    a_broadcast_may_broadcast_during_shutdown
    tasks_of_threads_that_never_start_are_dropped
    shutdown_does_not_wait_for_threads_that_never_start
    a_late_thread_runs_the_tasks_left_for_it
    shutdown_does_not_wait_for_an_attached_thread
    the_second_half_of_a_nested_join_can_be_stolen
}

/// Whether thieves can take private jobs: where the system has a fence for the threads of a process.
const HAS_RAIDS: bool = cfg!(all(target_os = "linux", not(heist_no_membarrier)));

/// Calls `engine::join` on a thread of an engine. The second closure receives whether it runs on another
/// thread.
fn join<RA: Send, RB: Send>(
    a: impl FnOnce() -> RA + Send,
    b: impl FnOnce(bool) -> RB + Send,
) -> (RA, RB) {
    heist::engine::join(|_| a(), b, || unreachable!("on a thread of an engine"))
}

fn serve(worker: Worker) -> JoinHandle<()> {
    thread::spawn(|| worker.run(|| (), || ()))
}

/// Calls `f` with an engine. Its threads have ended when this returns.
fn with_engine(threads: usize, f: impl FnOnce(&Engine)) {
    let (engine, workers) = Engine::new(threads, false);
    let workers: Vec<_> = workers.into_iter().map(serve).collect();
    f(&engine);
    engine.close();
    workers.into_iter().for_each(|thread| thread.join().unwrap());
}

fn spawn(engine: &Engine, f: impl FnOnce() + Send + 'static) {
    // SAFETY: it borrows nothing.
    unsafe { engine.spawn(f) };
}

/// Runs `f` once on each thread, without waiting.
fn broadcast_detached(engine: &Engine, f: impl Fn() + Send + Sync + 'static) {
    let f = Arc::new(f);
    let each = (0..engine.threads()).map(|_| {
        let f = Arc::clone(&f);
        move || f()
    });
    // SAFETY: they borrow nothing.
    unsafe { engine.broadcast(each) };
}

/// Runs `f` once on each thread, and waits for all of them.
fn broadcast(engine: &Engine, f: impl Fn() + Sync) {
    let latch = Latch::new();
    let (latch, f) = (&latch, &f);
    let each = (0..engine.threads()).map(|_| {
        latch.one_more();
        move || {
            f();
            // SAFETY: counted above.
            unsafe { Latch::done(latch) };
        }
    });
    // SAFETY: waited for.
    unsafe { engine.broadcast(each) };
    latch.wait();
}

mod contract {
    use super::*;

    /// In each broadcast all threads wait for each other, so all threads must start with the same one.
    pub(crate) fn concurrent_broadcasts_have_the_same_order_on_every_thread() {
        with_engine(6, |engine| {
            let call = || {
                for _ in 0..500 {
                    let barrier = Barrier::new(6);
                    broadcast(engine, || _ = barrier.wait());
                }
            };
            thread::scope(|scope| {
                scope.spawn(call);
                scope.spawn(call);
                call();
            });
        });
    }

    pub(crate) fn shutdown_waits_for_broadcasts() {
        for _ in 0..500 {
            let fetched = Arc::new(AtomicUsize::new(0));
            let (engine, workers) = Engine::new(2, false);
            let threads: Vec<_> = workers
                .into_iter()
                .map(|worker| {
                    let fetched = Arc::clone(&fetched);
                    let stop = move || assert_eq!(fetched.load(Ordering::Relaxed), 2);
                    thread::spawn(|| worker.run(|| (), stop))
                })
                .collect();
            broadcast_detached(&engine, {
                let fetched = Arc::clone(&fetched);
                move || _ = fetched.fetch_add(1, Ordering::Relaxed)
            });
            engine.close();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        }
    }

    pub(crate) fn a_broadcast_may_broadcast_during_shutdown() {
        for _ in 0..500 {
            let count = Arc::new(AtomicUsize::new(0));
            with_engine(2, |engine| {
                let (count, other) = (Arc::clone(&count), engine.clone());
                broadcast_detached(engine, move || {
                    broadcast(&other, || _ = count.fetch_add(1, Ordering::Relaxed));
                });
            });
            assert_eq!(count.load(Ordering::Relaxed), 4);
        }
    }

    pub(crate) fn tasks_of_threads_that_never_start_are_dropped() {
        let kept = Arc::new(());
        let (engine, mut workers) = Engine::new(2, false);
        let broadcast_detached = || {
            let kept = Arc::clone(&kept);
            broadcast_detached(&engine, move || _ = &kept);
        };
        broadcast_detached();
        drop(workers.pop());
        broadcast_detached();
        let thread = serve(workers.pop().unwrap());
        engine.close();
        thread.join().unwrap();
        assert_eq!(Arc::strong_count(&kept), 1);

        let (engine, workers) = Engine::new(2, false);
        for _ in 0..3 {
            let kept = Arc::clone(&kept);
            spawn(&engine, move || _ = kept);
        }
        drop(workers);
        engine.close();
        drop(engine);
        assert_eq!(Arc::strong_count(&kept), 1);
    }

    pub(crate) fn shutdown_does_not_wait_for_threads_that_never_start() {
        let (engine, mut workers) = Engine::new(3, false);
        let thread = serve(workers.pop().unwrap());
        assert_eq!(engine.run(|_| 7), 7);
        engine.close();
        thread.join().unwrap();
        // No task is left for this thread.
        serve(workers.pop().unwrap()).join().unwrap();
        drop(workers);
    }

    pub(crate) fn a_late_thread_runs_the_tasks_left_for_it() {
        let count = Arc::new(AtomicUsize::new(0));
        let (engine, workers) = Engine::new(2, false);
        let more = || {
            let count = Arc::clone(&count);
            move || _ = count.fetch_add(1, Ordering::Relaxed)
        };
        spawn(&engine, more());
        broadcast_detached(&engine, more());
        engine.close();
        let threads: Vec<_> = workers.into_iter().map(serve).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(count.load(Ordering::Relaxed), 3);
    }

    /// The attached thread waits while the other thread runs the last task, and wakes up when the other
    /// one sleeps.
    pub(crate) fn shutdown_does_not_wait_for_an_attached_thread() {
        for _ in 0..20 {
            let (engine, mut workers) = Engine::new(2, true);
            let other = serve(workers.pop().unwrap());
            let caller = workers.pop().unwrap();
            let latch = Arc::new(Latch::new());
            latch.one_more();
            let (ready, is_ready) = mpsc::channel();
            let caller = thread::spawn({
                let latch = Arc::clone(&latch);
                move || {
                    caller.attach();
                    ready.send(()).unwrap();
                    latch.wait();
                }
            });
            is_ready.recv().unwrap();
            // Leaves time for both threads to fall asleep. If they do not, the test checks less.
            thread::sleep(std::time::Duration::from_millis(2));
            engine.close();
            // SAFETY: counted above.
            unsafe { Latch::done(&raw const *latch) };
            caller.join().unwrap();
            other.join().unwrap();
        }
    }

    /// The only other thread is busy when both halves are forked, and takes the outer one first. Where there are raids, it
    /// then takes the inner one, although the thread that has forked it does nothing but wait. Elsewhere only one job is
    /// published, the outer one, and the inner one at that thread's next fork.
    pub(crate) fn the_second_half_of_a_nested_join_can_be_stolen() {
        with_engine(2, |engine| {
            let (begin, begun) = mpsc::channel();
            let (end, ended) = mpsc::channel();
            spawn(engine, move || {
                begin.send(()).unwrap();
                ended.recv().unwrap();
            });
            begun.recv().unwrap();
            engine.run(|_| {
                // Forks until no demand is left for this thread.
                (0..1000).for_each(|_| _ = join(|| (), |_| ()));
                let has_run = AtomicBool::new(false);
                let wait = || {
                    while !has_run.load(Ordering::Acquire) {
                        if HAS_RAIDS {
                            thread::yield_now();
                        } else {
                            join(|| (), |_| ());
                        }
                    }
                };
                let inner = || {
                    let first = || {
                        end.send(()).unwrap();
                        wait();
                    };
                    join(first, |migrated| {
                        has_run.store(true, Ordering::Release);
                        migrated
                    })
                };
                let (((), migrated), ()) = join(inner, |_| ());
                assert!(migrated, "its own thread has run it, while the first half waited");
            });
        });
    }
}
