//! Random trees of forks, scopes, tasks, isolation and panics, compared with the same tree on one thread. A
//! failure reports the seed.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::common::{Kind, Rng, ThreadGroup, assert_balanced, for_every_strategy, panic_message};

for_every_strategy! {
    one_worker,
    two_workers,
    four_workers,
    threads_of_no_pool,
}

const SEEDS: u64 = if cfg!(debug_assertions) { 40 } else { 200 };
const DEPTH: u32 = 9;

/// How the tree is run.
#[derive(Clone, Copy, PartialEq)]
enum By {
    Pool,
    One,
}

fn child(seed: u64, number: u64) -> u64 {
    seed.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(2 * number + 1)
}

/// Returns the value of a tree. A panic counts with its message, which is the seed of the node that
/// panicked.
fn node(by: By, seed: u64, depth: u32) -> u64 {
    let mut rng = Rng::new(seed);
    if depth == 0 {
        return seed >> 40;
    }
    let [a, b, c] = [0, 1, 2].map(|number| child(seed, number));
    let below = move |seed| node(by, seed, depth - 1);
    let value = match (rng.below(12), by) {
        (0..5, By::Pool) => fold(heist::join(|| below(a), || below(b)).into()),
        (0..5, By::One) => fold([below(a), below(b)]),
        (5, By::Pool) => heist::isolate(|| fold(heist::join(|| below(a), || below(b)).into())),
        (5, By::One) => fold([below(a), below(b)]),
        (6 | 7, By::Pool) => in_scope([a, b, c], &below),
        (6 | 7, By::One) => [a, b, c].map(below).into_iter().fold(0, u64::wrapping_add),
        (8, By::Pool) => {
            let task = heist::spawn(move || below(a));
            let (left, right) = heist::join(|| below(b), || below(c));
            fold([fold([left, right]), given(task.join())])
        }
        (8, By::One) => {
            let (task, left, right) = (below(a), below(b), below(c));
            fold([fold([left, right]), task])
        }
        (9, _) => [caught(|| below(a)), caught(|| below(b))].into_iter().fold(7, u64::wrapping_mul),
        (10, By::Pool) => heist::join(|| (), || below(a)).1,
        (10, By::One) => below(a),
        _ => below(a) ^ seed,
    };
    assert!(rng.below(60) > 0, "planned: {}", seed >> 44);
    value
}

fn fold(pair: [u64; 2]) -> u64 {
    pair[0].wrapping_mul(31).wrapping_add(pair[1])
}

fn in_scope(seeds: [u64; 3], below: &(impl Fn(u64) -> u64 + Sync)) -> u64 {
    let sum = AtomicU64::new(0);
    heist::scope(|scope| {
        let [a, b, c] = seeds;
        let add = |value| _ = sum.fetch_add(value, Ordering::Relaxed);
        let (sum, below) = (&sum, below);
        scope.spawn(move |scope| {
            scope.spawn(move |_| _ = sum.fetch_add(below(b), Ordering::Relaxed));
            sum.fetch_add(below(a), Ordering::Relaxed);
        });
        add(below(c));
    });
    sum.into_inner()
}

fn given(result: Result<u64, heist::JoinError>) -> u64 {
    match result {
        Ok(value) => value,
        Err(heist::JoinError::Panicked(panic)) => panic.resume(),
        Err(other) => panic!("{other:?}"),
    }
}

/// Which of several panics is propagated may depend on timing, so all count the same.
fn caught(f: impl FnOnce() -> u64) -> u64 {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|payload| {
        assert!(panic_message(&*payload).starts_with("planned"), "{}", panic_message(&*payload));
        3
    })
}

fn run(kind: Kind, workers: usize, threads: u64, seed: u64) {
    let group = ThreadGroup::new();
    let pool = kind.builder_in(&group, workers).on_panic(|_| ()).build().expect("a pool");
    thread::scope(|scope| {
        for outsider in 0..threads {
            let pool = &pool;
            scope.spawn(move || {
                let seed = seed << 8 | outsider;
                let alone = caught(|| node(By::One, seed, DEPTH));
                let shared = caught(|| pool.install(|| node(By::Pool, seed, DEPTH)));
                assert_eq!(shared, alone, "seed {seed}");
            });
        }
    });
    pool.stop();
    assert_balanced(&pool.stats());
    drop(pool);
    group.assert_gone();
}

fn seeds(kind: Kind, workers: usize, threads: u64) {
    for seed in 0..SEEDS {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| run(kind, workers, threads, seed))) {
            eprintln!("{} with {workers} workers: seed {seed}", kind.strategy);
            resume_unwind(payload);
        }
    }
}

fn one_worker(kind: Kind) {
    seeds(kind, 1, 1);
}

fn two_workers(kind: Kind) {
    seeds(kind, 2, 1);
}

fn four_workers(kind: Kind) {
    seeds(kind, 4, 1);
}

fn threads_of_no_pool(kind: Kind) {
    seeds(kind, 2, 3);
}
