//! A system that refuses threads: at each worker of a pool in turn, at each thread to which a core is handed, and at the threads
//! of pipelines.

use std::ffi::c_void;
use std::fs;
use std::panic::catch_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use heist::pipeline::{Distribution, Pipeline, PipelineError};
use heist::{BuildError, Pool};

use crate::case::{Case, Size};
use crate::work::{STRATEGIES, hand_offs, tree};

/// How many threads were asked for.
static ASKED: AtomicU64 = AtomicU64::new(0);
/// The first one that is refused.
static FIRST: AtomicU64 = AtomicU64::new(u64::MAX);
/// How many are refused from there on.
static COUNT: AtomicU64 = AtomicU64::new(0);

type Create =
    unsafe extern "C" fn(*mut c_void, *const c_void, *mut c_void, *mut c_void) -> libc::c_int;

/// Stands before the function of the C library, which it calls unless the thread is to be refused.
///
/// # Safety
///
/// As for that function.
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_create(
    thread: *mut c_void,
    attributes: *const c_void,
    start: *mut c_void,
    argument: *mut c_void,
) -> libc::c_int {
    let number = ASKED.fetch_add(1, SeqCst);
    let first = FIRST.load(SeqCst);
    if number >= first && number - first < COUNT.load(SeqCst) {
        return libc::EAGAIN;
    }
    // SAFETY: the name is a text that ends with a zero.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"pthread_create".as_ptr()) };
    assert!(!next.is_null(), "there is no pthread_create");
    // SAFETY: the function of that name has this type.
    let next = unsafe { std::mem::transmute::<*mut c_void, Create>(next) };
    // SAFETY: the caller's promise.
    unsafe { next(thread, attributes, start, argument) }
}

/// Refuses so many threads, after that many others that are asked for from now on.
fn refuse(others: u64, count: u64) {
    COUNT.store(count, SeqCst);
    FIRST.store(ASKED.load(SeqCst) + others, SeqCst);
}

/// Refuses none any more. Returns whether one was refused since [`refuse`].
fn refuse_none() -> bool {
    ASKED.load(SeqCst) > FIRST.swap(u64::MAX, SeqCst)
}

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("threads: each worker of a pool", each_worker),
        Case::new("threads: each hand-off", each_hand_off),
        Case::new("threads: all hand-offs from some time on", all_from_then_on),
        Case::new("threads: those of pipelines", of_pipelines),
        Case::new("threads: those of the global pool", of_the_global_pool),
    ]
}

/// Returns how many threads this process has.
fn threads() -> usize {
    fs::read_dir("/proc/self/task").expect("a directory").count()
}

/// Waits until there are only so many threads. One that was joined may be in the system's list for a moment longer.
fn assert_threads(count: usize) {
    let start = Instant::now();
    while threads() > count {
        assert!(start.elapsed() < Duration::from_secs(30), "{} threads are left", threads());
        thread::sleep(Duration::from_millis(1));
    }
}

fn each_worker(_: Size) {
    // The thread that registers the process for fences ends by itself.
    refuse(0, 1);
    let error = Pool::builder().workers(1).build().expect_err("its thread is refused");
    assert!(matches!(error, BuildError::Thread { started: 0, asked: 1, .. }), "{error}");
    refuse_none();
    drop(Pool::builder().workers(1).build().expect("a pool"));
    assert_threads(1);
    for strategy in STRATEGIES {
        for (workers, most) in [(1, 1), (2, 2), (3, 5), (20, 20)] {
            let builder = || Pool::builder().workers(workers).max_workers(most).strategy(strategy);
            // With one more, which follows the CPU limit.
            for refused in 0..=most {
                refuse(refused as u64, 1);
                let error = builder().follow_cgroup().build().expect_err("a thread is refused");
                assert!(refuse_none());
                match error {
                    BuildError::Thread { started, asked, .. } => {
                        assert_eq!((started, asked), (refused, most));
                    }
                    other => panic!("{other}"),
                }
                assert_threads(1);
            }
            let pool = builder().build().expect("a pool");
            assert_eq!(pool.spawn(|| 1).join().expect("a result"), 1);
        }
    }
}

fn with_refusals(first: u64, count: u64) -> bool {
    let mut refused = false;
    for strategy in STRATEGIES {
        for workers in [1, 2, 3] {
            let pool = Pool::builder().workers(workers).strategy(strategy).build().expect("a pool");
            let pool = Arc::new(pool);
            refuse(first, count);
            if workers > 1 {
                hand_offs(&pool, 6);
            }
            assert_eq!(pool.spawn(|| tree(9)).join().expect("a result"), 34);
            refused |= refuse_none();
            pool.stop();
            let total = pool.stats().total;
            assert_eq!(total.tasks_submitted, total.tasks_completed);
            assert_threads(1);
        }
    }
    refused
}

fn each_hand_off(size: Size) {
    drop(Pool::builder().workers(1).build().expect("a pool"));
    let mut first = 0;
    let mut ever = false;
    // On a busy machine there may be no hand-off for a while.
    while !ever || first < size.choose(20, 100) {
        ever |= with_refusals(first % 100, 1);
        first += 1;
    }
}

fn all_from_then_on(size: Size) {
    drop(Pool::builder().workers(1).build().expect("a pool"));
    // On a busy machine there may be no hand-off for a while.
    while !with_refusals(0, u64::MAX) {}
    for first in 1..size.choose(10, 60) {
        with_refusals(first, u64::MAX);
    }
}

fn of_pipelines(_: Size) {
    let pool = Pool::builder().workers(2).build().expect("a pool");
    let pipeline = || {
        let pipeline = Pipeline::new(0..100_u64).batch(5).map(|n| n + 1);
        pipeline.distribute(Distribution::RoundRobin)
    };
    refuse(0, 1);
    let error = pipeline().run(&pool, |_| ()).expect_err("a thread is refused");
    assert!(refuse_none());
    assert!(matches!(error, PipelineError::Thread { .. }), "{error}");
    refuse(0, 1);
    let results: Vec<_> = pipeline().results(&pool).expect("the settings are right").collect();
    assert!(refuse_none());
    assert!(matches!(results[..], [Err(PipelineError::Thread { .. })]), "{}", results.len());
    let mut count = 0;
    pipeline().run(&pool, |_| count += 1).expect("no error");
    assert_eq!(count, 100);
    pool.stop();
    assert_threads(1);
}

fn of_the_global_pool(_: Size) {
    for refused in 0..2 {
        refuse(refused, 1);
        let builder = || Pool::builder().workers(3);
        assert!(builder().build_global().is_err());
        assert!(refuse_none());
    }
    refuse(0, 1);
    let payload = catch_unwind(|| heist::join(|| 1, || 2)).expect_err("a thread is refused");
    assert!(refuse_none());
    let text = payload.downcast_ref::<String>().expect("a text");
    assert!(text.contains("the system refused thread 1"), "{text}");
    assert_eq!(heist::join(|| 1, || 2), (1, 2));
}
