//! Whole engines, whose workers run on threads of the test.

use std::sync::Arc;

use heist::engine::{Engine, Latch, Worker};
use shuttle::sync::Barrier;
use shuttle::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use shuttle::thread::{self, JoinHandle};

/// Schedules of each kind; an engine takes many steps.
const SCHEDULES: usize = 4_000;

/// A test for each scenario.
macro_rules! scenarios {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[test]
        fn $name() {
            heist_testkit::schedules::check(SCHEDULES, scenarios::$name);
        }
    )*};
}

scenarios! {
    both_halves_run_at_once
    both_halves_run_at_once_in_a_busy_engine
    both_halves_of_a_nested_join_run_at_once
    a_thread_that_yields_in_a_loop_runs_the_second_half
    a_thread_with_tasks_from_outside_runs_the_second_half
    nested_joins
    tasks_spawned_before_shutdown_run
    tasks_spawned_by_the_last_task_run
    broadcast_from_outside
    broadcast_from_inside
    broadcast_before_shutdown
    broadcast_by_a_broadcast_before_shutdown
    broadcast_by_a_task_after_the_close
    concurrent_broadcasts
    engines_that_wait_for_each_other
    an_attached_thread_that_waits_during_shutdown
    broadcasts_to_an_attached_thread
    a_worker_that_is_dropped
    a_worker_that_starts_late
    a_close_by_a_task
    tasks_from_a_thread_of_no_engine
}

/// Calls `engine::join` on a thread of an engine. The second closure receives whether it runs on another
/// thread.
fn join<RA: Send, RB: Send>(
    a: impl FnOnce() -> RA + Send,
    b: impl FnOnce(bool) -> RB + Send,
) -> (RA, RB) {
    heist::engine::join(|_| a(), b, || unreachable!("on a thread of an engine"))
}

fn serve(worker: Worker) -> JoinHandle<()> {
    thread::spawn(move || worker.run(|| (), || ()))
}

/// Calls `f` with an engine. Its threads have ended when this returns. `f` may close the engine.
fn with_engine<R>(threads: usize, f: impl FnOnce(&Engine) -> R) -> R {
    let (engine, workers) = Engine::new(threads, false);
    let workers: Vec<_> = workers.into_iter().map(serve).collect();
    let result = f(&engine);
    engine.close();
    workers.into_iter().for_each(|thread| thread.join().unwrap());
    result
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
fn broadcast(engine: &Engine, f: impl Fn(usize) + Sync) {
    let latch = Latch::new();
    let (latch, f) = (&latch, &f);
    let each = (0..engine.threads()).map(|index| {
        latch.one_more();
        move || {
            f(index);
            // SAFETY: counted above.
            unsafe { Latch::done(latch) };
        }
    });
    // SAFETY: waited for.
    unsafe { engine.broadcast(each) };
    latch.wait();
}

/// Checks that two threads run the halves of a join at the same time.
fn meet() {
    let barrier = Barrier::new(2);
    let ((), elsewhere) = join(
        || _ = barrier.wait(),
        |elsewhere| {
            barrier.wait();
            elsewhere
        },
    );
    assert!(elsewhere);
}

/// Becomes set once.
#[derive(Default)]
struct Flag(AtomicUsize);

impl Flag {
    fn set(&self) {
        self.0.store(1, SeqCst);
    }

    fn is_set(&self) -> bool {
        self.0.load(SeqCst) == 1
    }

    /// Blocks the thread.
    fn wait(&self) {
        while !self.is_set() {
            thread::yield_now();
        }
    }
}

/// Makes a join whose first half waits for the second one, and which no other thread wants before it has begun. The other
/// thread then calls `meanwhile`.
fn wait_for_second_half(meanwhile: fn(&Engine, Arc<Flag>)) {
    with_engine(2, |engine| {
        let [forked, done] = [(); 2].map(|()| Arc::new(Flag::default()));
        let (other, begun, ended) = (engine.clone(), Arc::clone(&forked), Arc::clone(&done));
        spawn(engine, move || {
            begun.wait();
            meanwhile(&other, ended);
        });
        let first = || {
            forked.set();
            done.wait();
        };
        engine.run(|_| {
            // They use up the demand that there is.
            (0..3).for_each(|_| _ = join(|| (), |_| ()));
            join(first, |_| done.set());
        });
    });
}

fn fib(n: u32) -> u32 {
    if n < 2 {
        return n;
    }
    let (a, b) = join(|| fib(n - 1), |_| fib(n - 2));
    a + b
}

mod scenarios {
    use super::*;

    pub(crate) fn both_halves_run_at_once() {
        with_engine(2, |engine| {
            engine.run(|_| {
                meet();
                join(|| (), |_| ());
                meet();
            });
        });
    }

    /// The inner half is still private when the other thread has taken the outer one, and must be
    /// raided.
    pub(crate) fn both_halves_of_a_nested_join_run_at_once() {
        with_engine(2, |engine| {
            engine.run(|_| {
                join(|| join(meet, |_| ()), |_| ());
            });
        });
    }

    /// The thread that takes the second half has another task to run first.
    pub(crate) fn both_halves_run_at_once_in_a_busy_engine() {
        with_engine(2, |engine| {
            spawn(engine, thread::yield_now);
            engine.run(|_| {
                let other = engine.clone();
                spawn(engine, move || spawn(&other, thread::yield_now));
                meet();
            });
        });
    }

    /// The other thread runs a task that yields until the second half has run.
    pub(crate) fn a_thread_that_yields_in_a_loop_runs_the_second_half() {
        wait_for_second_half(|engine, done| {
            while !done.is_set() {
                engine.yield_now();
                thread::yield_now();
            }
        });
    }

    /// The other thread finds a task from outside whenever it looks.
    pub(crate) fn a_thread_with_tasks_from_outside_runs_the_second_half() {
        fn come_again(engine: &Engine, done: Arc<Flag>) {
            if !done.is_set() {
                let other = engine.clone();
                let push = || spawn(engine, move || come_again(&other, done));
                thread::scope(|outside| _ = outside.spawn(push));
            }
        }
        wait_for_second_half(come_again);
    }

    pub(crate) fn nested_joins() {
        with_engine(3, |engine| assert_eq!(engine.run(|_| fib(5)), 5));
    }

    pub(crate) fn tasks_spawned_before_shutdown_run() {
        let ran = Arc::new(AtomicUsize::new(0));
        with_engine(2, |engine| {
            for _ in 0..3 {
                let ran = Arc::clone(&ran);
                spawn(engine, move || _ = ran.fetch_add(1, SeqCst));
            }
        });
        assert_eq!(ran.load(SeqCst), 3);
    }

    pub(crate) fn tasks_spawned_by_the_last_task_run() {
        let ran = Arc::new(AtomicUsize::new(0));
        with_engine(2, |engine| {
            let (ran, other) = (Arc::clone(&ran), engine.clone());
            spawn(engine, move || {
                for _ in 0..2 {
                    let ran = Arc::clone(&ran);
                    spawn(&other, move || _ = ran.fetch_add(1, SeqCst));
                }
            });
        });
        assert_eq!(ran.load(SeqCst), 2);
    }

    pub(crate) fn broadcast_from_outside() {
        with_engine(2, |engine| {
            let counts = [const { AtomicUsize::new(0) }; 2];
            broadcast(engine, |index| _ = counts[index].fetch_add(1, SeqCst));
            broadcast(engine, |index| _ = counts[index].fetch_add(1, SeqCst));
            assert!(counts.iter().all(|count| count.load(SeqCst) == 2));
        });
    }

    pub(crate) fn broadcast_from_inside() {
        with_engine(2, |engine| {
            let count = AtomicUsize::new(0);
            engine.run(|_| broadcast(engine, |_| _ = count.fetch_add(1, SeqCst)));
            assert_eq!(count.load(SeqCst), 2);
        });
    }

    pub(crate) fn broadcast_before_shutdown() {
        let count = Arc::new(AtomicUsize::new(0));
        let ended = Arc::new(AtomicUsize::new(0));
        let (engine, workers) = Engine::new(2, false);
        let serve = |worker: Worker| {
            let ended = Arc::clone(&ended);
            thread::spawn(move || worker.run(|| (), || _ = ended.fetch_add(1, SeqCst)))
        };
        let threads: Vec<_> = workers.into_iter().map(serve).collect();
        broadcast_detached(&engine, {
            let (count, ended) = (Arc::clone(&count), Arc::clone(&ended));
            move || {
                assert_eq!(ended.load(SeqCst), 0, "no thread ends before all have got theirs");
                count.fetch_add(1, SeqCst);
            }
        });
        engine.close();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(count.load(SeqCst), 2);
    }

    pub(crate) fn broadcast_by_a_broadcast_before_shutdown() {
        let count = Arc::new(AtomicUsize::new(0));
        with_engine(2, |engine| {
            let (count, other) = (Arc::clone(&count), engine.clone());
            broadcast_detached(engine, move || {
                broadcast(&other, |_| _ = count.fetch_add(1, SeqCst))
            });
        });
        assert_eq!(count.load(SeqCst), 4);
    }

    pub(crate) fn broadcast_by_a_task_after_the_close() {
        let count = Arc::new(AtomicUsize::new(0));
        with_engine(2, |engine| {
            let (count, other) = (Arc::clone(&count), engine.clone());
            spawn(engine, move || {
                other.close();
                broadcast_detached(&other, move || _ = count.fetch_add(1, SeqCst));
            });
        });
        assert_eq!(count.load(SeqCst), 2);
    }

    /// Two broadcasts at the same time. Each of them ends when every thread has entered it.
    pub(crate) fn concurrent_broadcasts() {
        with_engine(2, |engine| {
            let call = || {
                let barrier = Barrier::new(2);
                broadcast(engine, |_| _ = barrier.wait());
            };
            thread::scope(|scope| {
                scope.spawn(call);
                call();
            });
        });
    }

    pub(crate) fn engines_that_wait_for_each_other() {
        with_engine(1, |one| {
            with_engine(1, |two| {
                let there = || one.run(|_| two.run(|_| one.run(|_| two.run(|_| 1))));
                let back = || two.run(|_| one.run(|_| two.run(|_| one.run(|_| 2))));
                thread::scope(|scope| {
                    let back = scope.spawn(back);
                    assert_eq!((there(), back.join().unwrap()), (1, 2));
                });
            });
        });
    }

    /// The attached thread waits for an unrelated latch while the engine is closed. The other thread
    /// ends all the same.
    pub(crate) fn an_attached_thread_that_waits_during_shutdown() {
        let (engine, mut workers) = Engine::new(2, true);
        let other = serve(workers.pop().unwrap());
        let caller = workers.pop().unwrap();
        let latch = Arc::new(Latch::new());
        latch.one_more();
        let caller = thread::spawn({
            let latch = Arc::clone(&latch);
            move || {
                caller.attach();
                latch.wait();
            }
        });
        engine.close();
        (0..40).for_each(|_| thread::yield_now());
        // SAFETY: counted above.
        unsafe { Latch::done(&raw const *latch) };
        caller.join().unwrap();
        other.join().unwrap();
    }

    pub(crate) fn broadcasts_to_an_attached_thread() {
        let (engine, mut workers) = Engine::new(2, true);
        let other = serve(workers.pop().unwrap());
        let caller = workers.pop().unwrap();
        let caller = thread::spawn(move || {
            caller.attach();
            let count = AtomicUsize::new(0);
            broadcast(&engine, |_| _ = count.fetch_add(1, SeqCst));
            assert_eq!(count.load(SeqCst), 2);
            // The shutdown does not wait for this thread.
            broadcast_detached(&engine, || ());
            engine.close();
        });
        caller.join().unwrap();
        other.join().unwrap();
    }

    pub(crate) fn a_worker_that_is_dropped() {
        let (engine, mut workers) = Engine::new(2, false);
        let dropped = workers.pop().unwrap();
        let other = serve(workers.pop().unwrap());
        let dropped = thread::spawn(move || drop(dropped));
        let ran = Arc::new(AtomicUsize::new(0));
        broadcast_detached(&engine, {
            let ran = Arc::clone(&ran);
            move || _ = ran.fetch_add(1, SeqCst)
        });
        assert_eq!(engine.run(|_| 7), 7);
        engine.close();
        other.join().unwrap();
        dropped.join().unwrap();
        assert_eq!(ran.load(SeqCst), 1);
    }

    /// The other threads do not wait for the late one, and the late one does not wait.
    pub(crate) fn a_worker_that_starts_late() {
        let (engine, mut workers) = Engine::new(2, false);
        let late = workers.pop().unwrap();
        let other = serve(workers.pop().unwrap());
        spawn(&engine, || ());
        engine.close();
        other.join().unwrap();
        serve(late).join().unwrap();
    }

    pub(crate) fn a_close_by_a_task() {
        let (engine, workers) = Engine::new(2, false);
        let threads: Vec<_> = workers.into_iter().map(serve).collect();
        engine.run(|_| {
            join(|| engine.close(), |_| ());
            join(|| (), |_| ());
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }

    /// A thread of no engine spawns a task for a thread that waits in a closed engine.
    pub(crate) fn tasks_from_a_thread_of_no_engine() {
        let (engine, workers) = Engine::new(2, false);
        let threads: Vec<_> = workers.into_iter().map(serve).collect();
        let count = AtomicUsize::new(0);
        engine.run(|_| {
            let latch = Latch::new();
            latch.one_more();
            thread::scope(|scope| {
                let (latch, count, other) = (&latch, &count, &engine);
                scope.spawn(move || {
                    let job = move || {
                        count.fetch_add(1, SeqCst);
                        // SAFETY: counted above.
                        unsafe { Latch::done(latch) };
                    };
                    // SAFETY: waited for below.
                    unsafe { other.spawn(job) };
                });
                engine.close();
            });
            latch.wait();
        });
        assert_eq!(count.load(SeqCst), 1);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}
