//! The contract of waiting inside a task: it blocks the task, never the pool. Other tasks run, however many
//! tasks wait and however deeply they are nested.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use heist::{JoinHandle, Pool};

use crate::common::{
    Gate, Kind, ThreadGroup, WORKERS, assert_balanced, assert_counts, eventually,
    for_every_strategy,
};

for_every_strategy! {
    smoke,
    several_times,
    oldest_first,
    newest_first,
    elsewhere,
    not_blocked_by_a_task_on_top,
    lock_is_held,
    diamonds,
    pools_in_turn,
    pools_of_each_other,
    fib,
    many_waiters,
    waiters_come_and_go,
    no_thread_to_take_over,
    while_stopping,
}

fn smoke(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for n in 0..100 {
            let outer = pool.spawn(move || heist::spawn(move || n).join().expect("a result") + 1);
            assert_eq!(outer.join().expect("a result"), n + 1);
        }
        assert_counts(&pool, 200, 0, 0);
    }
}

/// A task whose core was handed off while it waited waits again, several times.
fn several_times(kind: Kind) {
    for workers in WORKERS {
        let (here, there) = (kind.pool(workers), kind.pool(1));
        for _ in 0..20 {
            let gates = [(); 3].map(|()| mpsc::channel::<()>());
            let (open, slow): (Vec<_>, Vec<_>) = gates
                .into_iter()
                .map(|(open, opened)| (open, there.spawn(move || _ = opened.recv())))
                .unzip();
            let (tick, ticks) = mpsc::channel();
            let waiter = here.spawn(move || {
                for handle in slow {
                    tick.send(()).expect("a test that listens");
                    handle.join().expect("a result");
                }
            });
            for open in open {
                ticks.recv().expect("a task that is about to wait");
                // While it waits, other tasks run on its core.
                let others = (0..workers).map(|_| here.spawn(|| ())).collect::<Vec<_>>();
                others.into_iter().for_each(|other| other.join().expect("a result"));
                drop(open);
            }
            waiter.join().expect("a result");
        }
        assert_counts(&here, 20 * (1 + 3 * workers as u64), 0, 0);
    }
}

fn all_in_order(kind: Kind, newest_first: bool) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let sum = pool.spawn(move || {
            let mut handles: Vec<_> = (0..2000_u64).map(|n| heist::spawn(move || n)).collect();
            if newest_first {
                handles.reverse();
            }
            handles.into_iter().map(|handle| handle.join().expect("a result")).sum::<u64>()
        });
        assert_eq!(sum.join().expect("a result"), 1999 * 1000);
        assert_counts(&pool, 2001, 0, 0);
    }
}

fn oldest_first(kind: Kind) {
    all_in_order(kind, false);
}

fn newest_first(kind: Kind) {
    all_in_order(kind, true);
}

/// Every worker here waits for a task on another pool, which needs a task that is queued here. The
/// queued task must run nevertheless.
fn elsewhere(kind: Kind) {
    for workers in WORKERS {
        let (here, there) = (kind.pool(workers), kind.pool(workers));
        for _ in 0..20 {
            let (tick, ticks) = mpsc::channel();
            let ticks = Arc::new(Mutex::new(ticks));
            let waiters: Vec<_> = (0..workers)
                .map(|n| {
                    let ticks = Arc::clone(&ticks);
                    let slow = there.spawn(move || {
                        ticks.lock().expect("no panic").recv().expect("a tick");
                        n
                    });
                    here.spawn(move || slow.join().expect("a result"))
                })
                .collect();
            (0..workers).for_each(|_| {
                let tick = tick.clone();
                here.spawn(move || tick.send(()).expect("a task that waits"));
            });
            for (n, waiter) in waiters.into_iter().enumerate() {
                assert_eq!(waiter.join().expect("a result"), n);
            }
        }
    }
}

/// While a task waits, another task runs that ends only after the first one has continued. If it ran on
/// the stack of the waiting task, neither would ever end.
fn not_blocked_by_a_task_on_top(kind: Kind) {
    for workers in WORKERS {
        let (here, there) = (kind.pool(workers), kind.pool(1));
        for _ in 0..20 {
            let (start, started) = mpsc::channel::<()>();
            let slow = there.spawn(move || started.recv().expect("a start"));
            let (go, gone) = mpsc::channel::<()>();
            let first = here.spawn(move || {
                slow.join().expect("a result");
                go.send(()).expect("the task that took the place");
            });
            let second = here.spawn(move || {
                start.send(()).expect("a task that waits");
                gone.recv().expect("the first goes on");
            });
            first.join().expect("a result");
            second.join().expect("a result");
        }
    }
}

/// A task that holds a lock waits; other tasks want the same lock.
fn lock_is_held(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let lock = Arc::new(Mutex::new(0));
        let handles: Vec<_> = (0..200)
            .map(|_| {
                let lock = Arc::clone(&lock);
                pool.spawn(move || {
                    let mut count = lock.lock().expect("no panic");
                    *count += heist::spawn(|| 1).join().expect("a result");
                })
            })
            .collect();
        for handle in handles {
            handle.join().expect("a result");
        }
        assert_eq!(*lock.lock().expect("no panic"), 200);
        assert_counts(&pool, 400, 0, 0);
    }
}

/// A result that several tasks wait for: the first one joins the handle under a lock.
#[derive(Clone)]
struct Shared(Arc<Mutex<Result<u64, JoinHandle<u64>>>>);

impl Shared {
    fn new(handle: JoinHandle<u64>) -> Self {
        Self(Arc::new(Mutex::new(Err(handle))))
    }

    fn get(&self) -> u64 {
        let mut state = self.0.lock().expect("no panic");
        match std::mem::replace(&mut *state, Ok(0)) {
            Ok(value) => {
                *state = Ok(value);
                value
            }
            Err(handle) => {
                let value = handle.join().expect("a result");
                *state = Ok(value);
                value
            }
        }
    }
}

/// Layers of tasks, each of which waits for two tasks of the layer before.
fn diamonds(kind: Kind) {
    const WIDTH: usize = 8;
    const DEPTH: u32 = 30;
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for gated in [false, true] {
            let gate = gated.then(|| Gate::close(&pool));
            let mut layer: Vec<_> = (0..WIDTH).map(|_| Shared::new(pool.spawn(|| 1))).collect();
            for _ in 0..DEPTH {
                let above = |n: usize| (layer[n].clone(), layer[(n + 1) % WIDTH].clone());
                let next = (0..WIDTH)
                    .map(above)
                    .map(|(left, right)| Shared::new(pool.spawn(move || left.get() + right.get())));
                layer = next.collect();
            }
            drop(gate);
            assert!(layer.iter().all(|last| last.get() == 1 << DEPTH));
        }
    }
}

/// Tasks wait for the other pool in turn, to a great depth, with one worker or a few in each pool.
fn pools_in_turn(kind: Kind) {
    fn bounce(here: &Pool, there: &Pool, times: u32) -> u32 {
        if times == 0 {
            return 0;
        }
        here.install(|| bounce(there, here, times - 1)) + 1
    }
    for workers in WORKERS {
        let (one, two) = (kind.pool(workers), kind.pool(workers));
        assert_eq!(bounce(&one, &two, 50), 50);
        thread::scope(|scope| {
            for n in 0..4 {
                let (one, two) = if n % 2 == 0 { (&one, &two) } else { (&two, &one) };
                scope.spawn(move || assert_eq!(bounce(one, two, 20), 20));
            }
        });
    }
}

fn pools_of_each_other(kind: Kind) {
    for workers in WORKERS {
        let pools = [(); 2].map(|()| Arc::new(kind.pool(workers)));
        let handles: Vec<_> = (0..50_usize)
            .map(|n| {
                let (here, there) = (&pools[n % 2], Arc::clone(&pools[1 - n % 2]));
                let back = Arc::clone(here);
                here.spawn(move || {
                    let middle =
                        there.spawn(move || back.spawn(move || n).join().expect("a result") + 1);
                    middle.join().expect("a result") + 1
                })
            })
            .collect();
        for (n, handle) in handles.into_iter().enumerate() {
            assert_eq!(handle.join().expect("a result"), n + 2);
        }
        for pool in pools {
            eventually("the pool is ours alone", || Arc::strong_count(&pool) == 1);
            assert_counts(&pool, 75, 0, 0);
        }
    }
}

fn fib(kind: Kind) {
    fn fib(n: u32) -> u64 {
        if n < 2 {
            return n.into();
        }
        let first = heist::spawn(move || fib(n - 1));
        fib(n - 2) + first.join().expect("a result")
    }
    for workers in WORKERS {
        let pool = kind.pool(workers);
        assert_eq!(pool.spawn(|| fib(18)).join().expect("a result"), 2584);
        pool.stop();
        assert_balanced(&pool.stats());
    }
}

/// Two hundred tasks wait at the same time, and the pool still has all its workers.
fn many_waiters(kind: Kind) {
    const WAITERS: usize = 200;
    for workers in WORKERS {
        let group = ThreadGroup::new();
        let (here, there) =
            (kind.builder_in(&group, workers).build().expect("a pool"), kind.pool(1));
        let gate = Gate::close(&there);
        let waiting = Arc::new(AtomicUsize::new(0));
        let waiters: Vec<_> = (0..WAITERS)
            .map(|n| {
                let slow = there.spawn(move || n);
                let waiting = Arc::clone(&waiting);
                here.spawn(move || {
                    waiting.fetch_add(1, Ordering::Relaxed);
                    slow.join().expect("a result")
                })
            })
            .collect();
        eventually("all of them wait", || waiting.load(Ordering::Relaxed) == WAITERS);
        // As many tasks as there are workers can run at the same time.
        Gate::close(&here).open();
        gate.open();
        for (n, waiter) in waiters.into_iter().enumerate() {
            assert_eq!(waiter.join().expect("a result"), n);
        }
        assert_counts(&here, (WAITERS + workers) as u64, 0, 0);
        group.assert_gone();
    }
}

/// Standby threads exit or are reused: many waits do not lead to many threads.
fn waiters_come_and_go(kind: Kind) {
    let group = ThreadGroup::new();
    let (here, there) = (kind.builder_in(&group, 2).build().expect("a pool"), kind.pool(1));
    let mut most = 0;
    for _ in 0..500 {
        let waiters = [(); 2].map(|()| {
            let slow = there.spawn(thread::yield_now);
            here.spawn(move || slow.join().expect("a result"))
        });
        waiters.into_iter().for_each(|waiter| waiter.join().expect("a result"));
        most = most.max(group.count());
    }
    assert!(most < 50, "{most} threads for two that wait");
    here.stop();
    group.assert_gone();
}

/// The function that names a standby thread panics. The wait must neither panic nor return early.
fn no_thread_to_take_over(kind: Kind) {
    for workers in WORKERS {
        let named = kind.builder(workers).thread_name(move |n| {
            assert!(n < workers, "planned: no name for {n}");
            format!("heist-{n}")
        });
        let (here, there) = (named.build().expect("a pool"), kind.pool(1));
        let gate = Gate::close(&there);
        let waiters: Vec<_> = (0..2 * workers)
            .map(|n| {
                let slow = there.spawn(move || n);
                here.spawn(move || slow.join().expect("a result"))
            })
            .collect();
        let others: Vec<_> = (0..100).map(|n| here.spawn(move || n)).collect();
        // Leaves time for all of them to block.
        thread::sleep(Duration::from_millis(20));
        gate.open();
        for (n, waiter) in waiters.into_iter().enumerate() {
            assert_eq!(waiter.join().expect("a result"), n);
        }
        for (n, other) in others.into_iter().enumerate() {
            assert_eq!(other.join().expect("a result"), n);
        }
        assert_counts(&here, 2 * workers as u64 + 100, 0, 0);
    }
}

/// The pool stops while tasks wait for each other.
fn while_stopping(kind: Kind) {
    fn grow(depth: u32) -> u64 {
        if depth == 0 {
            return 1;
        }
        let others = [(); 2].map(|()| heist::spawn(move || grow(depth - 1)));
        others.map(|other| other.join().expect("a result")).iter().sum()
    }
    for workers in WORKERS {
        let group = ThreadGroup::new();
        let pool = kind.builder_in(&group, workers).build().expect("a pool");
        let handles = [(); 4].map(|()| pool.spawn(|| grow(7)));
        pool.stop();
        for handle in handles {
            assert_eq!(handle.join().expect("a result"), 128);
        }
        assert_counts(&pool, 4 * 255, 0, 0);
        group.assert_gone();
    }
}
