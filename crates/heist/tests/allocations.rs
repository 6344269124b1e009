//! The contract of memory: a warm pool runs small tasks without allocating, wherever they are submitted and
//! run.

#![cfg(not(any(loom, shuttle)))]

mod common;

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use heist::{CancelToken, JoinHandle, Pool};
use heist_testkit::alloc::{
    CountingAllocator, allocations, allocations_here, exclusive, live_bytes, live_bytes_here,
};

use common::{Kind, eventually, for_every_strategy, held_task};

for_every_strategy! {
    counter_works,
    inside_detached,
    inside_joined,
    one_by_one,
    outside_detached,
    outside_joined,
    stolen_detached,
    stolen_joined,
    large_results,
    joined_without_a_core,
    joined_from_outside,
    private_joins,
    joins_of_two_workers,
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// The largest number of tasks that are pending at once.
const WAVE: usize = 10_000;
/// A million tasks in total; fewer in a build without optimizations.
const WAVES: usize = if cfg!(debug_assertions) { 20 } else { 100 };
/// The number of waves until every queue and every cache of memory has reached its largest size.
const WARM_UP: usize = 5;

/// Returns the number of allocations per task, with two decimals.
fn per_task(pool: &Pool, mut waves: impl FnMut(&Pool, usize)) -> String {
    waves(pool, WARM_UP);
    let before = allocations();
    waves(pool, WAVES);
    let count = allocations() - before;
    format!("{:.2}", count as f64 / (WAVES * WAVE) as f64)
}

/// Returns a small task: its closure has 48 bytes, the most that fit into a task slot.
fn small(sum: &Arc<AtomicUsize>) -> impl FnOnce() -> usize + Send + 'static {
    let (sum, ballast) = (Arc::clone(sum), [1_usize; 5]);
    move || {
        sum.fetch_add(black_box(ballast)[4], Ordering::Relaxed);
        ballast[0]
    }
}

/// Detached tasks from inside the pool: the last task of a wave starts the next wave.
fn detached_inside(pool: &Pool, waves: usize) {
    fn wave(left: usize, pending: Arc<AtomicUsize>, done: mpsc::Sender<()>) {
        if left == 0 {
            done.send(()).expect("a test that waits");
            return;
        }
        pending.store(WAVE, Ordering::Relaxed);
        for _ in 0..WAVE {
            // 32 bytes.
            let (pending, done) = (Arc::clone(&pending), done.clone());
            heist::spawn(move || {
                if pending.fetch_sub(1, Ordering::AcqRel) == 1 {
                    wave(left - 1, pending, done);
                }
            });
        }
    }
    let (done, is_done) = mpsc::channel();
    pool.spawn(move || wave(waves, Arc::default(), done));
    is_done.recv().expect("an end");
}

fn joined_inside(pool: &Pool, waves: usize) {
    let total = pool.spawn(move || {
        let sum = Arc::default();
        let mut handles = Vec::with_capacity(WAVE);
        for _ in 0..waves {
            handles.extend((0..WAVE).map(|_| heist::spawn(small(&sum))));
            handles.drain(..).for_each(|handle| assert_eq!(handle.join().expect("a result"), 1));
        }
        sum.load(Ordering::Relaxed)
    });
    assert_eq!(total.join().expect("a result"), waves * WAVE);
}

fn detached_outside(pool: &Pool, waves: usize) {
    let sum = Arc::default();
    for wave in 1..=waves {
        (0..WAVE).for_each(|_| drop(pool.spawn(small(&sum))));
        eventually("the wave is over", || sum.load(Ordering::Relaxed) == wave * WAVE);
    }
}

fn joined_outside(pool: &Pool, waves: usize) {
    let sum = Arc::default();
    let mut handles: Vec<JoinHandle<usize>> = Vec::with_capacity(WAVE);
    for _ in 0..waves {
        handles.extend((0..WAVE).map(|_| pool.spawn(small(&sum))));
        handles.drain(..).for_each(|handle| assert_eq!(handle.join().expect("a result"), 1));
    }
    assert_eq!(sum.load(Ordering::Relaxed), waves * WAVE);
}

/// A closure that does not fit allocates, and the counter shows it.
fn counter_works(kind: Kind) {
    let _exclusive = exclusive();
    let pool = kind.pool(1);
    let per_task = per_task(&pool, |pool, waves| {
        for _ in 0..waves {
            for _ in 0..WAVE {
                let ballast = [1_u8; 49];
                pool.spawn(move || _ = black_box(ballast));
            }
            pool.spawn(|| ()).join().expect("a result");
        }
    });
    assert!(per_task.parse::<f64>().expect("a number") >= 0.99, "{per_task}");
}

fn inside_detached(kind: Kind) {
    let _exclusive = exclusive();
    assert_eq!(per_task(&kind.pool(1), detached_inside), "0.00");
}

fn inside_joined(kind: Kind) {
    let _exclusive = exclusive();
    assert_eq!(per_task(&kind.pool(1), joined_inside), "0.00");
}

/// One task submits and waits in a loop, on a pool of one worker. The memory of the tasks that it has
/// waited for is freed at once, not when the task ends.
fn one_by_one(kind: Kind) {
    let _exclusive = exclusive();
    let pool = kind.pool(1);
    let grown = pool.install(|| {
        let sum = Arc::default();
        let turns = |turns| {
            (0..turns).for_each(|_| _ = heist::spawn(small(&sum)).join().expect("a result"));
            live_bytes()
        };
        let warm = turns(WARM_UP * WAVE);
        turns(WAVES * WAVE).saturating_sub(warm)
    });
    assert!(grown < 1 << 20, "{grown} bytes more after {} tasks, none outstanding", WAVES * WAVE);
}

fn outside_detached(kind: Kind) {
    let _exclusive = exclusive();
    // Twenty workers are several clusters, which exchange memory.
    for workers in [1, 2, 20] {
        assert_eq!(per_task(&kind.pool(workers), detached_outside), "0.00", "{workers} workers");
    }
}

fn outside_joined(kind: Kind) {
    let _exclusive = exclusive();
    for workers in [1, 2, 20] {
        assert_eq!(per_task(&kind.pool(workers), joined_outside), "0.00", "{workers} workers");
    }
}

/// Memory that moves to another thread with its task is reused.
fn stolen(kind: Kind, waves: fn(&Pool, usize)) {
    let _exclusive = exclusive();
    let pool = kind.pool(2);
    assert_eq!(per_task(&pool, waves), "0.00");
    if kind.steals {
        // On a busy machine the other worker may not have had a processor so far.
        eventually("something is stolen", || {
            waves(&pool, 1);
            pool.stats().total.successful_steals > 0
        });
    }
}

fn stolen_detached(kind: Kind) {
    stolen(kind, detached_inside);
}

fn stolen_joined(kind: Kind) {
    stolen(kind, joined_inside);
}

/// A small closure may have a result that does not fit. It costs at most one allocation.
fn large_results(kind: Kind) {
    let _exclusive = exclusive();
    let pool = kind.pool(1);
    let per_task = per_task(&pool, |pool, waves| {
        for _ in 0..waves {
            (0..WAVE).for_each(|_| drop(pool.spawn(|| [1_u64; 100])));
            pool.spawn(|| ()).join().expect("a result");
        }
    });
    assert!(per_task.parse::<f64>().expect("a number") < 1.1, "{per_task}");
}

/// Nothing is left of a long chain of tokens, whatever is dropped first and whether or not it was cancelled.
#[test]
fn long_chains_of_tokens() {
    const LONG: usize = 1_000_000;
    // The other tests count what all threads allocate.
    let _exclusive = exclusive();
    let next = |token: &CancelToken| Some(token.child());
    let chain = |tokens| -> Vec<_> {
        std::iter::successors(Some(CancelToken::new()), next).take(tokens).collect()
    };
    let from_the_first = |tokens: Vec<_>| drop(tokens);
    let from_the_last = |tokens: Vec<_>| tokens.into_iter().rev().for_each(drop);
    let all_at_once = |mut tokens: Vec<CancelToken>| {
        let last = tokens.pop();
        drop(tokens);
        drop(last);
    };
    let by_the_cancellation = |mut tokens: Vec<CancelToken>| {
        tokens.drain(1..tokens.len() - 1);
        tokens[0].cancel();
        assert!(tokens[1].is_cancelled());
    };
    let when_cancelled = |tokens: Vec<CancelToken>| {
        tokens[0].cancel();
        assert!(tokens.iter().all(CancelToken::is_cancelled));
    };
    let ends: [fn(Vec<CancelToken>); 5] =
        [from_the_first, from_the_last, all_at_once, by_the_cancellation, when_cancelled];
    for (n, end) in ends.into_iter().enumerate() {
        let before = live_bytes_here();
        let tokens = chain(LONG);
        assert!(live_bytes_here() - before > 64 * LONG as isize, "the chain is counted");
        end(tokens);
        assert_eq!(live_bytes_here() - before, 0, "bytes are left after the end {n}");
    }
}

/// Forks until there are `leaves` leaves.
fn fork(leaves: usize) -> usize {
    if leaves == 1 {
        return black_box(leaves);
    }
    // Captures as much as fits into a job without an allocation.
    let ballast = [leaves, 0, 0, 0];
    let (left, right) = heist::join(
        move || fork(black_box(ballast)[0] / 2),
        move || fork(ballast[0] - black_box(ballast)[0] / 2),
    );
    left + right
}

fn forks(pool: &Pool, waves: usize) {
    (0..waves).for_each(|_| assert_eq!(pool.install(|| fork(WAVE)), WAVE));
}

/// Private joins do not allocate, however many there are: no other worker takes a half.
fn private_joins(kind: Kind) {
    let _exclusive = exclusive();
    let pool = kind.pool(1);
    forks(&pool, WARM_UP);
    let allocations = pool.install(|| {
        let before = allocations_here();
        (0..WAVES).for_each(|_| _ = fork(WAVE));
        allocations_here() - before
    });
    assert_eq!(allocations, 0);
}

/// Some halves are published, and some of these are stolen.
fn joins_of_two_workers(kind: Kind) {
    let _exclusive = exclusive();
    let pool = kind.pool(2);
    assert_eq!(per_task(&pool, forks), "0.00");
}

/// A task that has handed off its core spawns tasks and joins each, while the only worker is busy. The queues do
/// not remember tasks that have ended.
fn joined_without_a_core(kind: Kind) {
    const ROUNDS: usize = 50_000;
    /// Far less than one word for each round.
    const MOST: usize = 128 << 10;
    let _guard = exclusive();
    let (here, there) = (kind.pool(1), kind.pool(1));
    let (open, slow) = held_task(&there);
    let (wait, waits) = mpsc::channel();
    let growth = here.spawn(move || {
        wait.send(()).expect("a test that waits");
        slow.join().expect("a result");
        let joined = |rounds| {
            (0..rounds).for_each(|n| assert_eq!(heist::spawn(move || n).join().ok(), Some(n)))
        };
        joined(ROUNDS / 10);
        let before = live_bytes();
        joined(ROUNDS);
        live_bytes().saturating_sub(before)
    });
    waits.recv().expect("a task that is about to wait");
    let (enter, entered) = mpsc::channel();
    let (end, ended) = mpsc::channel::<()>();
    let busy = here.spawn(move || {
        enter.send(()).expect("a test that waits");
        _ = ended.recv();
    });
    entered.recv().expect("a task that runs on the core");
    drop(open);
    let growth = growth.join().expect("a result");
    drop(end);
    busy.join().expect("a result");
    assert!(growth < MOST, "{growth} bytes more after {ROUNDS} rounds");
}

/// A task joins tasks that come from outside, while no worker looks into the queue that they are in. That queue does
/// not remember tasks that have ended.
fn joined_from_outside(kind: Kind) {
    const ROUNDS: usize = 50_000;
    const WARM_UP: usize = ROUNDS / 10;
    /// Far less than one word for each round.
    const MOST: usize = 128 << 10;
    let _guard = exclusive();
    let pool = kind.pool(1);
    let (give, given) = mpsc::sync_channel::<JoinHandle<usize>>(16);
    let growth = pool.spawn(move || {
        let mut before = 0;
        for (n, handle) in given.into_iter().enumerate() {
            if n == WARM_UP {
                before = live_bytes();
            }
            assert_eq!(handle.join().ok(), Some(n));
        }
        live_bytes().saturating_sub(before)
    });
    (0..ROUNDS + WARM_UP)
        .for_each(|n| give.send(pool.spawn(move || n)).expect("a task that joins"));
    drop(give);
    let growth = growth.join().expect("a result");
    assert!(growth < MOST, "{growth} bytes more after {ROUNDS} rounds");
}
