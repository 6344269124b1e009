//! The contract of the builder: it builds what was asked for, or returns an error that says why. An error
//! leaves no thread behind.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::error::Error;
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use heist::{BuildError, Pool, Strategy};

use crate::common::{Gate, Kind, ThreadGroup, WORKERS, for_every_strategy};

for_every_strategy! {
    smoke,
    zero_workers,
    too_many_workers,
    absurd_stacks,
    names,
    name_that_panics,
    name_with_zero,
    hooks,
    hooks_run_first_and_last,
    stack_size,
    inside_a_task,
    several_at_once,
}

fn smoke(kind: Kind) {
    for workers in WORKERS {
        let builder = kind.builder(workers);
        assert!(!format!("{builder:?}").is_empty());
        let pool = builder.build().expect("a pool");
        assert_eq!(pool.workers(), workers);
        assert_eq!(pool.strategy(), kind.strategy);
        assert_eq!(pool.stats().per_worker.len(), workers);
        assert!(format!("{pool:?}").starts_with("Pool"));
    }
}

fn zero_workers(kind: Kind) {
    for builder in [kind.builder(0), kind.builder(0).max_workers(4)] {
        let error = builder.build().expect_err("no pool without workers");
        assert!(matches!(error, BuildError::ZeroWorkers), "{error:?}");
        assert!(!error.to_string().is_empty());
    }
}

/// The number is refused before any thread is started.
fn too_many_workers(kind: Kind) {
    for workers in [1_000_000, usize::MAX / 2, usize::MAX - 1, usize::MAX] {
        match kind.builder(workers).build() {
            Err(error @ BuildError::TooManyWorkers { asked, limit }) => {
                assert_eq!(asked, workers);
                assert!((1..workers).contains(&limit));
                assert!(error.to_string().contains(&limit.to_string()), "{error}");
            }
            other => panic!("{workers} workers: {other:?}"),
        }
    }
}

/// No system has that much memory, so no thread starts.
fn absurd_stacks(kind: Kind) {
    for bytes in [1 << 47, usize::MAX / 2, usize::MAX - 1, usize::MAX] {
        let group = ThreadGroup::new();
        let calls = Arc::new(AtomicUsize::new(0));
        let builder = kind.builder_in(&group, 3).stack_size(bytes).on_thread_start({
            let calls = Arc::clone(&calls);
            move |_| _ = calls.fetch_add(1, Ordering::Relaxed)
        });
        match builder.build() {
            Err(error @ BuildError::Thread { started: 0, asked: 3, .. }) => {
                assert!(error.source().is_some());
                assert!(!error.to_string().is_empty());
            }
            other => panic!("stacks of {bytes} bytes: {other:?}"),
        }
        group.assert_gone();
        assert_eq!(calls.load(Ordering::Relaxed), 0);
    }
}

/// Returns the names of the workers' threads.
fn names_of(pool: &Pool) -> BTreeSet<String> {
    let (tell, told) = mpsc::channel();
    let gate = Arc::new(Barrier::new(pool.workers()));
    for _ in 0..pool.workers() {
        let (tell, gate) = (tell.clone(), Arc::clone(&gate));
        // No worker runs two of these tasks: each blocks its worker until all have started.
        pool.spawn(move || {
            gate.wait();
            tell.send(thread::current().name().map(str::to_owned)).expect("a test that listens");
        });
    }
    drop(tell);
    told.iter().map(|name| name.expect("a name")).collect()
}

fn names(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        assert_eq!(names_of(&pool), (0..workers).map(|n| format!("heist-{n}")).collect());
        let named = kind.builder(workers).thread_name(|n| format!("grüße-{}", n * 10));
        let pool = named.build().expect("a pool");
        assert_eq!(names_of(&pool), (0..workers).map(|n| format!("grüße-{}", n * 10)).collect());
    }
}

/// The threads get no name, and the pool is built.
fn name_that_panics(kind: Kind) {
    let group = ThreadGroup::new();
    let stops = Arc::new(AtomicUsize::new(0));
    let [started, stopped] = [1, usize::MAX].map(|step| {
        let stops = Arc::clone(&stops);
        move |_: usize| _ = stops.fetch_add(step, Ordering::Relaxed)
    });
    let name = group.prefix().to_owned();
    let builder = kind.builder(4).on_thread_start(started).on_thread_stop(stopped);
    let builder = builder.thread_name(move |n| {
        assert!(n < 2, "planned: no name for {n}");
        format!("{name}{n}")
    });
    let pool = builder.build().expect("a name is not needed");
    assert_eq!(pool.spawn(|| 1).join().expect("it runs"), 1);
    drop(pool);
    let_them_start();
    group.assert_gone();
    assert_eq!(stops.load(Ordering::Relaxed), 0, "starts less stops");
}

/// The system rejects a name with a zero byte.
fn name_with_zero(kind: Kind) {
    let group = ThreadGroup::new();
    let name = group.prefix().to_owned();
    let named = kind
        .builder(3)
        .thread_name(move |n| if n == 2 { "two\0three".to_owned() } else { format!("{name}{n}") });
    if let Ok(Ok(pool)) = catch_unwind(AssertUnwindSafe(|| named.build())) {
        assert_eq!(pool.spawn(|| 1).join().expect("a result"), 1);
    }
    let_them_start();
    group.assert_gone();
}

/// Lets threads start: a thread gets its name when it first runs, and is not counted before.
fn let_them_start() {
    thread::sleep(Duration::from_millis(20));
}

/// Each hook runs once for each worker, on the thread of the worker, with its index.
fn hooks(kind: Kind) {
    for workers in WORKERS {
        let group = ThreadGroup::new();
        let seen = [(); 2].map(|()| Arc::new(Mutex::new(Vec::new())));
        let [started, stopped] = [0, 1].map(|hook| {
            let seen = Arc::clone(&seen[hook]);
            move |n| {
                let name = thread::current().name().expect("a name").to_owned();
                seen.lock().expect("no panic").push((n, name));
            }
        });
        let builder = kind.builder_in(&group, workers);
        let pool = builder.on_thread_start(started).on_thread_stop(stopped).build();
        let pool = pool.expect("a pool");
        // Makes sure that every worker has run.
        Gate::close(&pool).open();
        pool.stop();
        for seen in seen {
            let mut seen = seen.lock().expect("no panic");
            seen.sort_unstable();
            let name = |n| (n, format!("{}{n}", group.prefix()));
            assert_eq!(*seen, (0..workers).map(name).collect::<Vec<_>>());
        }
        group.assert_gone();
    }
}

thread_local! {
    static PHASE: Cell<&'static str> = const { Cell::new("before") };
}

fn hooks_run_first_and_last(kind: Kind) {
    let ends = Arc::new(AtomicUsize::new(0));
    let builder = kind.builder(2).on_thread_start(|_| PHASE.set("during")).on_thread_stop({
        let ends = Arc::clone(&ends);
        move |_| {
            assert_eq!(PHASE.replace("after"), "during");
            ends.fetch_add(1, Ordering::Relaxed);
        }
    });
    let pool = builder.build().expect("a pool");
    let handles: Vec<_> = (0..1000).map(|_| pool.spawn(|| PHASE.get())).collect();
    for handle in handles {
        assert_eq!(handle.join().expect("a result"), "during");
    }
    drop(pool);
    assert_eq!(ends.load(Ordering::Relaxed), 2);
}

/// Recurses until the stack has grown by this many bytes, and returns by how many it has grown.
fn dive(bytes: usize, top: usize) -> usize {
    let frame = black_box([0_u8; 1024]);
    let depth = top.abs_diff(frame.as_ptr().addr());
    let deepest = if depth < bytes { dive(bytes, top) } else { depth };
    deepest.max(usize::from(black_box(frame)[0]))
}

fn stack_size(kind: Kind) {
    const MIB: usize = 1 << 20;
    let pool = kind.builder(2).stack_size(8 * MIB).build().expect("a pool");
    let deepest = pool.spawn(|| dive(6 * MIB, here()));
    assert!(deepest.join().expect("a result") >= 6 * MIB);
    // The default stack size is 2 MiB.
    let deepest = kind.pool(1).spawn(|| dive(3 * MIB / 2, here()));
    assert!(deepest.join().expect("a result") >= 3 * MIB / 2);
}

/// An address in the current frame of the stack.
#[inline(never)]
fn here() -> usize {
    let mark = black_box(0_u8);
    (&raw const mark).addr()
}

fn inside_a_task(kind: Kind) {
    let pool = kind.pool(1);
    let sum = pool.spawn(move || {
        let inner = kind.pool(2);
        let handles: Vec<_> = (0..100).map(|n| inner.spawn(move || n)).collect();
        handles.into_iter().map(|handle| handle.join().expect("a result")).sum::<u32>()
    });
    assert_eq!(sum.join().expect("a result"), 4950);
}

fn several_at_once(kind: Kind) {
    thread::scope(|scope| {
        for n in 0..8_usize {
            scope.spawn(move || {
                let pool = kind.pool(1 + n % 3);
                assert_eq!(pool.spawn(move || n).join().expect("a result"), n);
            });
        }
    });
}

/// The strategies that the tests cover are those of the crate.
#[test]
fn strategies() {
    let tested = [Strategy::WorkStealing, Strategy::LockedDeques, Strategy::GlobalQueue];
    assert_eq!(Strategy::ALL, tested);
    assert_eq!(Strategy::default(), Strategy::WorkStealing);
    let names: BTreeSet<_> = Strategy::ALL.iter().map(Strategy::to_string).collect();
    assert_eq!(names.len(), 3);
}
