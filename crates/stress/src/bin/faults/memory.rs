//! Each allocation of a run fails in turn. A program whose memory is refused is aborted, as the standard library does it, or
//! goes on if the error can be returned. It never hangs, and its results are right.

use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use heist::pipeline::Pipeline;
use heist::{Pool, Priority, parallel};

use crate::alloc::{refuse_after, refuse_none};
use crate::case::{Case, Size};
use crate::work::{STRATEGIES, fib, hand_offs, tree};

/// A process counts as hanging after this time.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("memory: each allocation of building a pool", |size| in_turn(size, build)),
        Case::new("memory: each allocation of tasks", |size| in_turn(size, tasks)),
        Case::new("memory: each allocation of forks and loops", |size| in_turn(size, forks)),
        Case::new("memory: each allocation of waits in tasks", |size| in_turn(size, waits)),
        Case::new("memory: each allocation of a pipeline", |size| in_turn(size, pipelines)),
        Case::new("memory: each allocation of many tasks", |size| in_turn(size, many)),
    ]
}

/// A run, which calls the closure when it has begun: only later allocations fail.
type Run = fn(&dyn Fn());

/// Runs the same again and again, in a process of its own each time, with another allocation that fails. Ends with a run that
/// makes fewer allocations than that.
fn in_turn(size: Size, run: Run) {
    let (mut aborted, mut survived) = (0, 0);
    let mut at = 0;
    loop {
        let (status, text) = child(|| {
            run(&|| refuse_after(at));
            // An exit code that says that nothing was refused.
            if refuse_none() { 0 } else { 9 }
        });
        if status.code() == Some(9) {
            break;
        }
        // The crate with the futures has a message of its own.
        let says_why = ["memory allocation of", "async_task"].iter().any(|why| text.contains(why));
        let is_abort = status.signal() == Some(libc::SIGABRT) && says_why;
        assert!(is_abort || status.success(), "allocation {at}: {status}: {text}");
        assert!(!text.contains("please report"), "allocation {at}: {text}");
        aborted += u32::from(is_abort);
        survived += u32::from(!is_abort);
        // A run of many threads makes a few allocations more or fewer each time.
        at += if at < 400 { 1 } else { size.choose(at / 40, 1) };
    }
    assert!(aborted > 0, "no allocation has failed");
    println!("  {at} allocations: {aborted} aborts, {survived} runs went on");
}

/// Calls `f` in a child of this process, which has one thread. Returns how the child has ended, with its errors.
fn child(f: impl FnOnce() -> libc::c_int) -> (ExitStatus, String) {
    let file = tempfile();
    // SAFETY: this process has one thread.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "no child");
    if child == 0 {
        // SAFETY: both are open.
        unsafe { libc::dup2(file.as_raw_fd(), 2) };
        let code = f();
        // SAFETY: nothing of this process is used afterwards.
        unsafe { libc::_exit(code) };
    }
    let (start, mut status) = (Instant::now(), 0);
    // SAFETY: a child of this process, and a place for a number.
    while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == 0 {
        if start.elapsed() > PATIENCE {
            // SAFETY: a child of this process that was not waited for.
            unsafe { libc::kill(child, libc::SIGKILL) };
            panic!("a process hangs: {}", text_of(file));
        }
        thread::sleep(Duration::from_micros(100));
    }
    (ExitStatus::from_raw(status), text_of(file))
}

/// Returns a file without a name.
fn tempfile() -> std::fs::File {
    use std::os::fd::FromRawFd;
    // SAFETY: the name is a text that ends with a zero.
    let file = unsafe { libc::memfd_create(c"faults".as_ptr(), 0) };
    assert!(file >= 0, "no file");
    // SAFETY: just opened, and nobody else's.
    unsafe { std::fs::File::from_raw_fd(file) }
}

fn text_of(mut file: std::fs::File) -> String {
    use std::io::{Read, Seek};
    let mut text = String::new();
    file.rewind().expect("a file");
    file.read_to_string(&mut text).expect("a text");
    text
}

fn build(begin: &dyn Fn()) {
    begin();
    for strategy in STRATEGIES {
        let pool = Pool::builder().workers(2).strategy(strategy).trace(100).build();
        // A pool that cannot be built says so, and the next one can be.
        let Ok(pool) = pool else { continue };
        assert_eq!(pool.spawn(|| 1).join().expect("a result"), 1);
    }
    let large = Pool::builder().workers(17).build();
    drop(large);
}

fn pool() -> Pool {
    Pool::builder().workers(2).build().expect("a pool")
}

fn tasks(begin: &dyn Fn()) {
    let pool = pool();
    begin();
    for _ in 0..3 {
        let large = [1_u64; 64];
        let tasks: Vec<_> = (0..20).map(|n| pool.spawn(move || n + large[3])).collect();
        let prior = pool.task().priority(Priority::High).spawn(|| 2);
        let low = pool.task().priority(Priority::Low).spawn(|| 3);
        let near = pool.task().near(1).spawn(|| 4);
        let batch = pool.spawn_batch((0..20).map(|n| move || n));
        let future = pool.spawn_future(async { 5 });
        let panics = pool.spawn(|| std::panic::resume_unwind(Box::new("planned")));
        let sum: u64 = tasks.into_iter().map(|task| task.join().expect("a result")).sum();
        assert_eq!(sum, 210);
        assert_eq!(prior.join().expect("a result"), 2);
        assert_eq!(low.join().expect("a result"), 3);
        assert_eq!(near.join().expect("a result"), 4);
        assert_eq!(batch.join().expect("results").len(), 20);
        assert_eq!(future.join().expect("a result"), 5);
        assert!(panics.join().is_err());
    }
    pool.stop();
}

fn forks(begin: &dyn Fn()) {
    let pool = pool();
    begin();
    for _ in 0..20 {
        assert_eq!(pool.install(|| fib(12)), 144);
        let count = AtomicU64::new(0);
        pool.scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|_| _ = count.fetch_add(1, Ordering::Relaxed));
            }
        });
        assert_eq!(count.into_inner(), 20);
        let mut numbers: Vec<u64> = (0..5_000).rev().collect();
        pool.install(|| parallel::sort(&mut numbers));
        assert!(numbers.is_sorted());
        let squares = pool.install(|| parallel::map(0..1_000_u64, |n| n * n));
        assert_eq!(squares[999], 998_001);
    }
    pool.stop();
}

/// Tasks that wait for others, so that cores change hands and threads are started.
fn waits(begin: &dyn Fn()) {
    let pool = Arc::new(pool());
    begin();
    // On one processor, few of them hand on their cores.
    for _ in 0..3 {
        hand_offs(&pool, 8);
        if pool.stats().total.hand_offs > 0 {
            break;
        }
    }
    assert_eq!(pool.spawn(|| tree(9)).join().expect("a result"), 34);
    pool.resize(1).expect("a size");
    assert_eq!(pool.spawn(|| tree(9)).join().expect("a result"), 34);
    pool.stop();
}

fn pipelines(begin: &dyn Fn()) {
    let pool = pool();
    begin();
    let mut sum = 0;
    let run = Pipeline::new(0..200_u64).batch(10).map(|n| n * 2).run(&pool, |n| sum += n);
    // A producer thread that cannot be started is an error.
    if run.is_ok() {
        assert_eq!(sum, 39_800);
    }
    let results = Pipeline::new(0..100_u64).map(|n| n + 1).results(&pool);
    if let Ok(results) = results {
        assert_eq!(results.filter_map(Result::ok).count(), 100);
    }
    pool.stop();
}

/// So many tasks that every queue grows.
fn many(begin: &dyn Fn()) {
    for strategy in STRATEGIES {
        let pool = Pool::builder().workers(2).strategy(strategy).build().expect("a pool");
        if strategy == STRATEGIES[0] {
            begin();
        }
        let inside = pool.spawn(|| {
            let tasks: Vec<_> = (0..3_000_u64).map(|n| heist::spawn(move || n)).collect();
            tasks.into_iter().map(|task| task.join().expect("a result")).sum::<u64>()
        });
        let tasks: Vec<_> = (0..3_000_u64).map(|n| pool.spawn(move || n)).collect();
        let sum: u64 = tasks.into_iter().map(|task| task.join().expect("a result")).sum();
        assert_eq!((sum, inside.join().expect("a result")), (4_498_500, 4_498_500));
    }
}
