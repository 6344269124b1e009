//! The contract of a task: it runs exactly once, whatever it captures and returns and wherever it was
//! submitted.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use heist::Pool;

use crate::common::{Kind, ThreadGroup, WORKERS, assert_counts, eventually, for_every_strategy};

for_every_strategy! {
    smoke,
    from_inside,
    many,
    sizes,
    alignments,
    results,
    no_size,
    functions,
    overflow,
    nested,
    threads_of_no_pool,
    other_pool,
    fairness,
}

fn smoke(kind: Kind) {
    for workers in WORKERS {
        let group = Arc::new(ThreadGroup::new());
        let pool = kind.builder_in(&group, workers).build().expect("a pool");
        let here = Arc::clone(&group);
        assert!(pool.spawn(move || here.has_current()).join().expect("a result"));
        assert_eq!(pool.spawn(|| 6 * 7).join().expect("a result"), 42);
        let text = String::from("owned");
        assert_eq!(pool.spawn(move || text + " by it").join().expect("a result"), "owned by it");
        assert_counts(&pool, 3, 0, 0);
    }
}

/// Tasks submit tasks through `Pool::spawn` and through `heist::spawn`.
fn from_inside(kind: Kind) {
    for workers in WORKERS {
        let group = Arc::new(ThreadGroup::new());
        let pool = Arc::new(kind.builder_in(&group, workers).build().expect("a pool"));
        let (inner, here) = (Arc::clone(&pool), Arc::clone(&group));
        let outer = pool.spawn(move || {
            let also_here = Arc::clone(&here);
            let by_pool = inner.spawn(move || also_here.has_current());
            let by_place = heist::spawn(move || here.has_current());
            by_pool.join().expect("a result") && by_place.join().expect("a result")
        });
        assert!(outer.join().expect("a result"));
        // The task may not have dropped its `Arc` of the pool yet.
        eventually("the pool is ours alone", || Arc::strong_count(&pool) == 1);
        assert_counts(&pool, 3, 0, 0);
    }
}

fn many(kind: Kind) {
    for (workers, tasks) in [(1, 20_000), (2, 100_000), (4, 20_000)] {
        let pool = kind.pool(workers);
        let handles: Vec<_> = (0..tasks).map(|n: u64| pool.spawn(move || n)).collect();
        let results = handles.into_iter().map(|handle| handle.join().expect("a result"));
        assert!(results.eq(0..tasks));
        assert_counts(&pool, tasks, 0, 0);
    }
}

/// Closures around the largest size that fits into a task slot, and far larger.
fn sizes(kind: Kind) {
    fn check<const N: usize>(pool: &Pool) {
        let pattern: [u8; N] = std::array::from_fn(|n| (n * 7 + N) as u8);
        let handles = [(); 3].map(|()| {
            pool.spawn(move || {
                assert_eq!(size_of_val(&pattern), N);
                pattern
            })
        });
        let [joined, within, detached] = handles;
        drop(detached);
        assert_eq!(joined.join().expect("a result"), pattern);
        let within = pool.spawn(move || within.join().expect("a result"));
        assert_eq!(within.join().expect("a result"), pattern);
    }
    for workers in WORKERS {
        let pool = kind.pool(workers);
        check::<0>(&pool);
        check::<1>(&pool);
        check::<7>(&pool);
        check::<8>(&pool);
        check::<39>(&pool);
        check::<40>(&pool);
        check::<41>(&pool);
        check::<47>(&pool);
        check::<48>(&pool);
        check::<49>(&pool);
        check::<56>(&pool);
        check::<64>(&pool);
        check::<65>(&pool);
        check::<1024>(&pool);
        check::<65_536>(&pool);
        assert_counts(&pool, 15 * 4, 0, 0);
    }
}

/// Captured values and results are aligned as their types require.
fn alignments(kind: Kind) {
    macro_rules! check {
        ($pool:expr, $($align:literal)*) => { $({
            #[repr(align($align))]
            struct Aligned(u8);
            let place = |value: &Aligned| (&raw const *value).addr() % $align;
            for number in 0..20 {
                let value = Aligned(number);
                let result = $pool.spawn(move || {
                    assert_eq!(place(&value), 0);
                    value
                });
                let result = result.join().expect("a result");
                assert_eq!((place(&result), result.0), (0, number));
                // Other captured values come before and after.
                let (first, last) = (number, vec![number]);
                let sum = $pool.spawn(move || {
                    assert_eq!(place(&result), 0);
                    first + result.0 + last[0]
                });
                assert_eq!(sum.join().expect("a result"), 3 * number);
            }
        })* };
    }
    for workers in WORKERS {
        let pool = kind.pool(workers);
        check!(pool, 2 8 16 32 64 128 256 4096);
    }
}

fn results(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let large = pool.spawn(|| [3_u64; 4096]).join().expect("a result");
        assert!(large.iter().all(|&word| word == 3));
        assert_eq!(pool.spawn(|| vec![1; 1000]).join().expect("a result").len(), 1000);
        let nested: Result<u8, String> =
            pool.spawn(|| Err("mine".into())).join().expect("a result");
        assert_eq!(nested, Err("mine".into()));
        assert_eq!(pool.spawn(|| None::<Box<u8>>).join().expect("a result"), None);
        // A result that is itself a handle.
        let handle = pool.spawn(|| heist::spawn(|| 5)).join().expect("a result");
        assert_eq!(handle.join().expect("a result"), 5);
    }
}

fn no_size(kind: Kind) {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    struct Nothing;
    let before = RUNS.load(Ordering::Relaxed);
    let pool = kind.pool(2);
    for _ in 0..1000 {
        let nothing = Nothing;
        pool.spawn(move || {
            let _nothing = nothing;
            Nothing
        });
        pool.spawn(|| _ = RUNS.fetch_add(1, Ordering::Relaxed));
    }
    assert_counts(&pool, 2000, 0, 0);
    // The tests of the other strategies use the same counter.
    assert!(RUNS.load(Ordering::Relaxed) - before >= 1000);
}

/// Every kind of callable can be spawned.
fn functions(kind: Kind) {
    fn nine() -> i32 {
        9
    }
    let pool = kind.pool(2);
    assert_eq!(pool.spawn(nine).join().expect("a result"), 9);
    assert_eq!(pool.spawn(nine as fn() -> i32).join().expect("a result"), 9);
    let boxed: Box<dyn FnOnce() -> i32 + Send> = Box::new(|| 10);
    assert_eq!(pool.spawn(boxed).join().expect("a result"), 10);
    assert_eq!(pool.spawn(String::new).join().expect("a result"), "");
}

/// One task submits more than a worker's own queue can hold.
fn overflow(kind: Kind) {
    const TASKS: u64 = 100_000;
    for workers in [1, 2] {
        let pool = kind.pool(workers);
        let runs = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&runs);
        pool.spawn(move || {
            for _ in 0..TASKS {
                let runs = Arc::clone(&counter);
                heist::spawn(move || runs.fetch_add(1, Ordering::Relaxed));
            }
        });
        assert_counts(&pool, TASKS + 1, 0, 0);
        assert_eq!(runs.load(Ordering::Relaxed) as u64, TASKS);
    }
}

/// A tree of detached tasks.
fn nested(kind: Kind) {
    fn grow(depth: u32, leaves: Arc<AtomicUsize>) {
        if depth == 0 {
            leaves.fetch_add(1, Ordering::Relaxed);
            return;
        }
        for _ in 0..3 {
            let leaves = Arc::clone(&leaves);
            heist::spawn(move || grow(depth - 1, leaves));
        }
    }
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let leaves = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&leaves);
        pool.spawn(move || grow(8, counter));
        assert_counts(&pool, (3_u64.pow(9) - 1) / 2, 0, 0);
        assert_eq!(leaves.load(Ordering::Relaxed), 3_usize.pow(8));
    }
}

fn threads_of_no_pool(kind: Kind) {
    const TASKS: usize = 2000;
    for workers in WORKERS {
        let pool = kind.pool(workers);
        thread::scope(|scope| {
            for thread in 0..6 {
                let pool = &pool;
                scope.spawn(move || {
                    let task = |n| pool.spawn(move || thread * TASKS + n);
                    let handles: Vec<_> = (0..TASKS).map(task).collect();
                    for (n, handle) in handles.into_iter().enumerate() {
                        assert_eq!(handle.join().expect("a result"), thread * TASKS + n);
                    }
                });
            }
        });
        assert_counts(&pool, 6 * TASKS as u64, 0, 0);
    }
}

/// To other pools, a worker is an external thread.
fn other_pool(kind: Kind) {
    let group = Arc::new(ThreadGroup::new());
    let theirs = Arc::new(kind.builder_in(&group, 2).build().expect("a pool"));
    let ours = kind.pool(2);
    let handles: Vec<_> = (0..500)
        .map(|_| {
            let (theirs, group) = (Arc::clone(&theirs), Arc::clone(&group));
            ours.spawn(move || {
                assert!(!group.has_current());
                theirs.spawn(move || group.has_current())
            })
        })
        .collect();
    for handle in handles {
        assert!(handle.join().expect("a handle").join().expect("a result"));
    }
    assert_counts(&ours, 500, 0, 0);
    assert_counts(&theirs, 500, 0, 0);
}

/// Tasks that keep spawning tasks do not starve a task from outside.
fn fairness(kind: Kind) {
    fn renew(until: Arc<mpsc::Sender<()>>) {
        if until.send(()).is_ok() {
            heist::spawn(move || renew(until));
        }
    }
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let (tick, ticks) = mpsc::channel();
        let tick = Arc::new(tick);
        for _ in 0..2 * workers {
            let tick = Arc::clone(&tick);
            pool.spawn(move || renew(tick));
        }
        ticks.recv().expect("a tick");
        pool.spawn(move || drop(ticks)).join().expect("a turn for the outsider");
        pool.stop();
    }
}
