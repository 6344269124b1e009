//! Pools that end in odd places: within tasks of other pools, in destructors of thread-locals, together with the process; and stops
//! that race with everything else.

use std::cell::RefCell;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use heist::pipeline::Pipeline;
use heist::{CancelToken, JoinHandle, Pool, Strategy};

use crate::case::{Case, Size, again, run};
use crate::work::{STRATEGIES, fib};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("endings: pools dropped in tasks of other pools", in_other_pools),
        Case::new("endings: pools dropped in destructors of thread-locals", in_thread_locals),
        Case::new("endings: pools that wait for each other", each_other),
        Case::new("endings: everything leaked", leaked),
        Case::new("endings: a stop against everything else", against_everything),
        Case::new("endings: exits with a busy global pool", exits),
        // What those exits start. They end well by themselves, too.
        Case::new("exit: return from main", |_| busy_global()),
        Case::new("exit: in a task", |_| {
            busy_global();
            heist::spawn(|| std::process::exit(0));
            loop {
                thread::park();
            }
        }),
        Case::new("exit: within a visit", |_| {
            busy_global();
            heist::join(|| std::process::exit(0), || fib(20)).0
        }),
        Case::new("exit: with values in thread-locals", |_| {
            busy_global();
            KEPT.with(|kept| *kept.borrow_mut() = Some(UsesGlobal));
        }),
    ]
}

fn build(strategy: Strategy, workers: usize) -> Pool {
    Pool::builder().workers(workers).strategy(strategy).build().expect("a pool")
}

fn in_other_pools(size: Size) {
    for strategy in STRATEGIES {
        for workers in [1, 2, 4] {
            let outer = build(strategy, workers);
            for round in 0..size.choose(20, 500) {
                // Built outside, dropped in a task; built and dropped in a task; nested, with work that is left.
                let inner = build(strategy, 1 + round % 3);
                let left: Vec<_> = (0..20).map(|n| inner.spawn(move || fib(n % 8))).collect();
                outer.spawn(move || drop(inner)).join().expect("no panic");
                assert!(left.iter().all(JoinHandle::is_finished));
                let handle = outer.spawn(move || {
                    let middle = build(strategy, 1);
                    let inner = Arc::new(build(strategy, 2));
                    let own = Arc::clone(&inner);
                    // The inner pool is dropped by its own task, or by the task of the middle one.
                    let of_inner = inner.spawn(move || drop(own));
                    let task = middle.spawn(move || {
                        drop(of_inner);
                        let result = inner.install(|| fib(8));
                        drop(inner);
                        result
                    });
                    task.join().expect("a result")
                });
                assert_eq!(handle.join().expect("a result"), 21);
                // In a part of a scope, in a half of a join, and in a stage of a pipeline.
                let pools: Vec<_> = (0..3).map(|_| Mutex::new(Some(build(strategy, 1)))).collect();
                let take = |n: usize| drop(pools[n].lock().expect("no panic").take());
                outer.scope(|scope| scope.spawn(|_| take(0)));
                outer.join(|| take(1), || fib(5));
                Pipeline::new(2..3).map(take).run(&outer, |()| ()).expect("no error");
            }
        }
    }
}

/// Uses a pool and drops it, when the thread ends.
struct Ends(Option<Pool>);

impl Drop for Ends {
    fn drop(&mut self) {
        let Some(pool) = self.0.take() else { return };
        assert_eq!(pool.install(|| fib(8)), 21);
        assert_eq!(pool.spawn(|| 1).join().expect("a result"), 1);
        drop(pool.spawn(|| thread::sleep(Duration::from_micros(100))));
        drop(pool);
        ENDED.fetch_add(1, SeqCst);
    }
}

static ENDED: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static POOL: RefCell<Ends> = const { RefCell::new(Ends(None)) };
    static OWN: RefCell<Option<Arc<Pool>>> = const { RefCell::new(None) };
    static KEPT: RefCell<Option<UsesGlobal>> = const { RefCell::new(None) };
}

fn in_thread_locals(size: Size) {
    let mut expected = 0;
    for strategy in STRATEGIES {
        for workers in [1, 2, 4] {
            for _ in 0..size.choose(10, 300) {
                let keep = move || {
                    POOL.with(|kept| kept.borrow_mut().0 = Some(build(strategy, workers)));
                };
                // Of a plain thread, and of a worker of another pool.
                thread::spawn(keep).join().expect("no panic");
                let other = build(strategy, 1);
                other.spawn(keep).join().expect("no panic");
                drop(other);
                expected += 2;
                assert_eq!(ENDED.load(SeqCst), expected);
                // A worker drops a reference to its own pool when it ends.
                let own = Arc::new(build(strategy, workers));
                let kept = Arc::clone(&own);
                let task = own.spawn(move || OWN.with(|own| *own.borrow_mut() = Some(kept)));
                task.join().expect("no panic");
                own.stop();
            }
        }
    }
}

/// Tasks of several pools wait for tasks of each other, in a circle of pools, to some depth.
fn each_other(size: Size) {
    fn around(pools: &Arc<Vec<Pool>>, at: usize, depth: usize) -> u64 {
        if depth == 0 {
            return fib(6);
        }
        let (next, here) = ((at + 1) % pools.len(), Arc::clone(pools));
        match depth % 4 {
            0 => {
                pools[next].spawn(move || around(&here, next, depth - 1)).join().expect("a result")
            }
            1 => pools[next].install(|| around(&here, next, depth - 1)),
            2 => pools[next].join(|| around(pools, next, depth - 1), || fib(3)).0,
            _ => {
                let result = Mutex::new(0);
                pools[next].scope(|scope| {
                    let (result, here) = (&result, &here);
                    scope.spawn(move |_| {
                        *result.lock().expect("no panic") = around(here, next, depth - 1);
                    });
                });
                result.into_inner().expect("no panic")
            }
        }
    }
    for strategy in STRATEGIES {
        for (count, workers) in [(2, 1), (3, 1), (2, 2), (5, 2)] {
            let pools: Arc<Vec<_>> =
                Arc::new((0..count).map(|_| build(strategy, workers)).collect());
            for _ in 0..size.choose(5, 100) {
                thread::scope(|scope| {
                    for at in 0..count {
                        let pools = &pools;
                        scope.spawn(move || assert_eq!(around(pools, at, 20), 8));
                    }
                });
            }
        }
    }
}

/// Whatever a program forgets, the pool can be stopped, and the process can end.
fn leaked(_: Size) {
    for strategy in STRATEGIES {
        let pool = build(strategy, 2);
        for n in 0..100 {
            std::mem::forget(pool.spawn(move || fib(n % 10)));
            std::mem::forget(pool.spawn(|| vec![1_u8; 100]).abort_on_drop());
            std::mem::forget(pool.spawn_batch([|| 1, || 2]));
            std::mem::forget(pool.spawn_future(std::future::pending::<()>()));
            std::mem::forget(pool.task().cancel_on(&CancelToken::new()).spawn(|| ()));
            pool.scope(|scope| std::mem::forget(scope.spawn_handle(|_| 1)));
        }
        let results = Pipeline::new(0..1_000).batch(1).map(|n| n).results(&pool).expect("a start");
        std::mem::forget(results);
        let (sender, lines) = Pipeline::fed(NonZero::<usize>::MIN);
        sender.send(1).expect("room");
        std::mem::forget(sender);
        std::mem::forget(lines.map(|n| n).results(&pool).expect("a start"));
        assert_eq!(pool.install(|| fib(10)), 55);
        std::mem::forget(pool.handle());
        // Runs of pipelines that are forgotten end when the pool does.
        pool.stop_now();
        std::mem::forget(build(strategy, 2));
    }
}

/// Many threads do everything that a pool offers while it is stopped. Every call returns, each handle has an outcome, and the
/// counters agree.
fn against_everything(size: Size) {
    for round in 0..size.choose(60, 3_000) {
        let strategy = STRATEGIES[round % 3];
        let pool = Pool::builder().workers(1 + round % 3).max_workers(4).strategy(strategy);
        let pool = Arc::new(pool.max_queued(50).build().expect("a pool"));
        let (start, over) = (Barrier::new(7), AtomicBool::new(false));
        thread::scope(|scope| {
            let users: [fn(&Pool); 6] = [
                |pool| _ = pool.spawn(|| fib(6)).join(),
                |pool| {
                    let task = pool.spawn(|| fib(8));
                    task.cancel();
                    let _ = task.join();
                },
                |pool| _ = pool.join(|| fib(8), || fib(8)),
                |pool| (1..=4).for_each(|workers| pool.resize(workers).expect("a size")),
                |pool| drop(pool.spawn(|| heist::spawn(|| fib(4)).join())),
                |pool| {
                    drop(pool.spawn_future(async { 1 }));
                    let _ = Pipeline::new(0..20).batch(2).map(|n| n).run(pool, |_| ());
                },
            ];
            for user in users {
                let (pool, start, over) = (&pool, &start, &over);
                scope.spawn(move || {
                    start.wait();
                    while !over.load(SeqCst) {
                        // An install may be refused by a panic.
                        let _ = catch_unwind(AssertUnwindSafe(|| user(pool)));
                    }
                });
            }
            start.wait();
            thread::sleep(Duration::from_micros(300 * (round as u64 % 7)));
            match round % 3 {
                0 => pool.stop(),
                1 => pool.stop_now(),
                _ => {
                    thread::scope(|stops| {
                        stops.spawn(|| pool.stop());
                        stops.spawn(|| pool.stop_now());
                    });
                }
            }
            over.store(true, SeqCst);
        });
        let total = pool.stats().total;
        let ended = total.tasks_completed + total.panics + total.cancellations;
        assert_eq!(total.tasks_submitted, ended, "{total:?}");
        assert_eq!(pool.stats().threads, 0);
    }
}

/// Uses the global pool in the destructor of a thread-local.
struct UsesGlobal;

impl Drop for UsesGlobal {
    fn drop(&mut self) {
        assert_eq!(fib(8), 21);
        assert_eq!(heist::spawn(|| 1).join().expect("a result"), 1);
    }
}

/// Keeps the global pool busy until the process ends.
fn busy_global() {
    fn again() {
        fib(8);
        drop(heist::spawn(again));
    }
    for _ in 0..10 {
        drop(heist::spawn(again));
    }
    let (send, receive) = mpsc::channel::<()>();
    std::mem::forget(send);
    // A thread in a visit, which never ends.
    thread::spawn(move || heist::join(move || receive.recv().is_err(), || fib(10)));
    assert_eq!(fib(12), 144);
}

fn exits(size: Size) {
    for _ in 0..size.choose(5, 200) {
        for name in cases().iter().map(|case| case.name).filter(|name| name.starts_with("exit:")) {
            for workers in ["1", "2", "12"] {
                let mut command = again(&["--run", name]);
                command.env("HEIST_WORKERS", workers);
                let ended = run(command, Duration::from_secs(60));
                let status = ended.status.unwrap_or_else(|| panic!("{name}: hangs"));
                assert!(status.success(), "{name}: {status}: {}", ended.text);
            }
        }
    }
}
