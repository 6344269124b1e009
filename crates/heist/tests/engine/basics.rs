//! What an API shim relies on: the order of tasks, joins, broadcasts, attached threads and waits between
//! engines.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use heist::Priority;
use heist::engine::{self, Engine, Latch};

/// Calls `f` with an engine. Its threads have ended when this returns.
fn with_engine(threads: usize, f: impl FnOnce(&Engine)) {
    let (engine, workers) = Engine::new(threads, false);
    let workers: Vec<_> =
        workers.into_iter().map(|worker| thread::spawn(|| worker.run(|| (), || ()))).collect();
    f(&engine);
    engine.close();
    workers.into_iter().for_each(|thread| thread.join().unwrap());
}

fn spawn(engine: &Engine, f: impl FnOnce() + Send + 'static) {
    // SAFETY: it borrows nothing.
    unsafe { engine.spawn(f) };
}

/// Calls `engine::join` on a thread of an engine.
fn join<RA: Send, RB: Send>(
    a: impl FnOnce(bool) -> RA + Send,
    b: impl FnOnce(bool) -> RB + Send,
) -> (RA, RB) {
    engine::join(a, b, || unreachable!("on a thread of an engine"))
}

/// Returns the numbers of the tasks that `f` spawns on an engine of one thread, in the order in which
/// they ran.
fn order(f: impl FnOnce(&Engine, &dyn Fn(u32)) + Send) -> Vec<u32> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    with_engine(1, |engine| {
        let seen = Arc::clone(&seen);
        engine.run(move |_| {
            let say = |number| {
                let seen = Arc::clone(&seen);
                spawn(engine, move || seen.lock().unwrap().push(number));
            };
            f(engine, &say);
        });
    });
    Arc::into_inner(seen).unwrap().into_inner().unwrap()
}

#[test]
fn local_tasks_run_newest_first() {
    let seen = order(|_, say| (0..2000).for_each(say));
    assert!(seen.into_iter().eq((0..2000).rev()));
}

#[test]
fn remote_tasks_run_oldest_first() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    with_engine(1, |engine| {
        for number in 0..2000 {
            let seen = Arc::clone(&seen);
            spawn(engine, move || seen.lock().unwrap().push(number));
        }
    });
    assert!(seen.lock().unwrap().iter().copied().eq(0..2000));
}

#[test]
fn tasks_of_the_first_half_run_before_the_second_half() {
    let seen = order(|engine, say| {
        say(0);
        let second = Mutex::new(None);
        let say = |number| say(number);
        // Neither closure leaves this thread: there is no other.
        struct Here<T>(T);
        // SAFETY: the engine has one thread, so the value never leaves it.
        unsafe impl<T> Send for Here<T> {}
        let first = Here(&say);
        join(
            move |_| {
                let first = first;
                (first.0)(2);
                (first.0)(3);
            },
            |elsewhere| *second.lock().unwrap() = Some(elsewhere),
        );
        assert_eq!(*second.lock().unwrap(), Some(false));
        // The spawned tasks have run before the second half. This one comes after both.
        say(1);
        assert_eq!(engine.has_pending(), Some(true));
    });
    assert_eq!(seen, [3, 2, 1, 0]);
}

#[test]
fn an_idle_thread_can_steal_the_second_half() {
    with_engine(2, |engine| {
        for round in 0..2000 {
            let barrier = Barrier::new(2);
            let told = engine.run(|_| {
                // The other thread is busy for a moment, such that there is no demand when the job is
                // forked.
                spawn(engine, move || (0..round % 50).for_each(|_| std::hint::spin_loop()));
                join(
                    |_| {
                        barrier.wait();
                    },
                    |elsewhere| {
                        barrier.wait();
                        elsewhere
                    },
                )
                .1
            });
            assert!(told);
        }
    });
}

#[test]
fn a_broadcast_runs_once_on_each_thread() {
    with_engine(3, |engine| {
        for _ in 0..500 {
            let counts = [const { AtomicUsize::new(0) }; 3];
            let threads = Mutex::new(Vec::new());
            let latch = Latch::new();
            (0..3).for_each(|_| latch.one_more());
            let (counts, threads, latch) = (&counts, &threads, &latch);
            let each = (0..3).map(|index| {
                move || {
                    counts[index].fetch_add(1, Ordering::Relaxed);
                    threads.lock().unwrap().push(thread::current().id());
                    // SAFETY: counted above.
                    unsafe { Latch::done(latch) };
                }
            });
            // SAFETY: waited for below.
            unsafe { engine.broadcast(each) };
            latch.wait();
            assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1));
            let mut threads = threads.lock().unwrap();
            threads.sort_by_key(|id| format!("{id:?}"));
            threads.dedup();
            assert_eq!(threads.len(), 3, "one each");
        }
    });
}

#[test]
fn an_attached_thread_outlives_the_engine() {
    thread::spawn(|| {
        let (engine, mut workers) = Engine::new(2, true);
        let caller = workers.remove(0);
        let other = workers.remove(0);
        caller.attach();
        let other = thread::spawn(|| other.run(|| (), || ()));
        assert!(engine.is_here());
        let barrier = Barrier::new(2);
        let halves = join(
            |_| barrier.wait().is_leader(),
            |elsewhere| {
                barrier.wait();
                elsewhere
            },
        );
        assert!(halves.1);
        engine.close();
        other.join().unwrap();
        // No other thread is left now.
        assert_eq!(join(|_| 1, |_| 2), (1, 2));
    })
    .join()
    .unwrap();
}

#[test]
fn a_worker_that_never_starts_does_not_block_the_others() {
    let (engine, mut workers) = Engine::new(3, false);
    let thread = workers.pop().unwrap();
    let thread = thread::spawn(|| thread.run(|| (), || ()));
    drop(workers.pop());
    assert!(engine.run(|elsewhere| elsewhere));
    engine.close();
    drop(workers);
    thread.join().unwrap();
}

#[test]
fn threads_of_two_engines_wait_for_each_other() {
    with_engine(1, |one| {
        with_engine(1, |two| {
            let deep = one.run(|_| two.run(|_| one.run(|_| two.run(|elsewhere| elsewhere))));
            assert!(deep);
        });
    });
}

#[test]
fn tasks_spawned_by_the_stop_hook_run() {
    let ran = Arc::new(AtomicUsize::new(0));
    let (engine, mut workers) = Engine::new(1, false);
    let worker = workers.pop().unwrap();
    let thread = thread::spawn({
        let (engine, ran) = (engine.clone(), Arc::clone(&ran));
        move || {
            let last = Arc::clone(&ran);
            let count = move || {
                last.fetch_add(1, Ordering::Relaxed);
            };
            worker.run(|| (), || spawn(&engine, count));
            assert!(!engine::is_inside());
        }
    });
    engine.close();
    thread.join().unwrap();
    assert_eq!(ran.load(Ordering::Relaxed), 1);
}

/// A thread of an engine that waits runs a part of a scope on top of that, and then goes on. The scope does not wait for what
/// it does then.
#[test]
fn a_scope_does_not_wait_for_a_thread_that_has_run_a_part() {
    with_engine(2, |engine| {
        let [over, part, other] = [(); 3].map(|()| Arc::new(Barrier::new(2)));
        let latch = Latch::new();
        latch.one_more();
        thread::scope(|threads| {
            threads.spawn(|| {
                engine.run(|_| {
                    heist::scope(|scope| {
                        // The other thread is blocked until this one is in the scope.
                        other.wait();
                        scope.spawn(|_| {
                            part.wait();
                            // SAFETY: counted above; the owner waits for it.
                            unsafe { Latch::done(&latch) };
                        });
                        part.wait();
                    });
                    over.wait();
                });
            });
            engine.run(|_| {
                other.wait();
                // Runs the part meanwhile.
                latch.wait();
                over.wait();
            });
        });
    });
}

/// A thread of an engine that waits for a future, or yields, runs other tasks on top meanwhile.
#[test]
fn a_thread_waits_for_a_future_and_yields() {
    for threads in [1, 2] {
        with_engine(threads, |engine| {
            engine.run(|_| {
                let started = Arc::new(AtomicUsize::new(0));
                let other = Arc::clone(&started);
                let task = heist::spawn(move || other.fetch_add(1, Ordering::SeqCst));
                assert_eq!(heist::block_on(task).unwrap(), 0);
                let other = Arc::clone(&started);
                drop(heist::spawn(move || other.fetch_add(1, Ordering::SeqCst)));
                while started.load(Ordering::SeqCst) < 2 {
                    heist::yield_now();
                }
            });
        });
    }
}

/// An engine has no priorities, but tasks that ask for one run all the same.
#[test]
fn tasks_with_priorities_run() {
    for threads in [1, 2] {
        with_engine(threads, |engine| {
            let sum = engine.run(|_| {
                heist::scope(|scope| {
                    let high = scope.task().priority(Priority::High).spawn(|| 1);
                    let low = scope.task().priority(Priority::Low);
                    let part = low.spawn_in(scope, |_| heist::spawn(|| 2).join().unwrap());
                    high.join().unwrap() + part.join().unwrap()
                })
            });
            assert_eq!(sum, 3);
        });
    }
}
