//! Threads that stop for a while at any point: in the middle of a steal, of a raid, of a hand-off, of a push. A signal whose handler
//! sleeps does that. Nothing may depend on a thread that goes on.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use heist::pipeline::Pipeline;
use heist::{Pool, parallel};

use crate::case::Case;
use crate::work::{STRATEGIES, fib, hand_offs, tree};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("stalls: short ones, everywhere", |size| {
            let time = Duration::from_secs(size.choose(4, 120));
            stalled(Duration::from_micros(1_500), Duration::from_micros(300), time);
        }),
        Case::new("stalls: long ones", |size| {
            let time = Duration::from_secs(size.choose(4, 120));
            stalled(Duration::from_millis(700), Duration::from_millis(900), time);
        }),
    ]
}

/// How long a thread sleeps in the handler, in nanoseconds.
static PAUSE: AtomicU64 = AtomicU64::new(0);
static STALLS: AtomicU64 = AtomicU64::new(0);

extern "C" fn stall(_: libc::c_int) {
    STALLS.fetch_add(1, Relaxed);
    let nanoseconds = PAUSE.load(Relaxed);
    let time = libc::timespec {
        tv_sec: (nanoseconds / 1_000_000_000) as libc::time_t,
        tv_nsec: (nanoseconds % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: a handler may make the call.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the place of `errno` belongs to this thread.
    let before = unsafe { errno.read() };
    // SAFETY: the call only sleeps, and a handler may make it.
    unsafe { libc::nanosleep(&raw const time, std::ptr::null_mut()) };
    // SAFETY: as above.
    unsafe { errno.write(before) };
}

/// Stalls random threads of pools, so long and so often, while they work.
fn stalled(pause: Duration, interval: Duration, time: Duration) {
    PAUSE.store(pause.as_nanos() as u64, Relaxed);
    let handler = stall as extern "C" fn(libc::c_int);
    // SAFETY: the handler makes only calls that a handler may make, and touches only atomics and what is the thread's.
    unsafe { libc::signal(libc::SIGUSR1, handler as libc::sighandler_t) };
    let over = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&over);
    let tormentor = thread::spawn(move || {
        let mut random = 1_u64;
        while !stop.load(Relaxed) {
            thread::sleep(interval);
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            signal_one((random >> 33) as usize);
        }
    });
    let start = Instant::now();
    let mut round = 0;
    while start.elapsed() < time {
        work(round);
        round += 1;
    }
    over.store(true, Relaxed);
    tormentor.join().expect("no panic");
    assert!(STALLS.load(Relaxed) > 0, "no thread was stalled");
    println!("  {} stalls in {round} rounds", STALLS.load(Relaxed));
}

/// Sends the signal to one of the threads of pools.
fn signal_one(random: usize) {
    let of_pool = |task: &fs::DirEntry| {
        let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        name.starts_with("heist-") && !name.starts_with("heist-register")
    };
    let tasks: Vec<_> = fs::read_dir("/proc/self/task")
        .expect("a directory")
        .filter_map(|task| task.ok().filter(of_pool))
        .filter_map(|task| task.file_name().to_str()?.parse::<libc::pid_t>().ok())
        .collect();
    let Some(thread) = tasks.get(random % tasks.len().max(1)) else { return };
    let process = std::process::id() as libc::pid_t;
    // SAFETY: the call sends a signal to a thread of this process, or fails because the thread has ended.
    unsafe { libc::syscall(libc::SYS_tgkill, process, *thread, libc::SIGUSR1) };
}

fn work(round: usize) {
    // A pool of several clusters at times.
    let workers = if round % 5 == 4 { 17 } else { 2 + round % 3 };
    let strategy = STRATEGIES[round / 2 % 3];
    let pool = Pool::builder().workers(workers).strategy(strategy).build().expect("a pool");
    let pool = Arc::new(pool);
    assert_eq!(pool.install(|| fib(20)), 6_765);
    hand_offs(&pool, 6);
    assert_eq!(pool.spawn(|| tree(10)).join().expect("a result"), 55);
    let tasks: Vec<_> = (0..2_000_u64).map(|n| pool.spawn(move || n)).collect();
    assert_eq!(
        tasks.into_iter().map(|task| task.join().expect("a result")).sum::<u64>(),
        1_999_000
    );
    let sum = pool.install(|| parallel::reduce(0..200_000_u64, || 0, |a, b| a + b, |a, b| a + b));
    assert_eq!(sum, 19_999_900_000);
    let mut sum = 0;
    let pipeline = Pipeline::new(0..500_u64).batch(5).map(|n| n * 2).ordered();
    pipeline.run(&pool, |n| sum += n).expect("no error");
    assert_eq!(sum, 249_500);
    pool.resize(1).expect("a size");
    assert_eq!(pool.install(|| fib(12)), 144);
    pool.stop();
    let total = pool.stats().total;
    assert_eq!(total.tasks_submitted, total.tasks_completed, "{total:?}");
}
