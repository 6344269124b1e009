//! Random mixes of all operations. A failure reports the seed.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use heist::{JoinError, JoinHandle, Pool};

use crate::common::{Kind, Rng, ThreadGroup, assert_balanced, block_on, for_every_strategy};

for_every_strategy! {
    two_workers,
    four_workers,
    short_lived_pools,
}

const SEEDS: u64 = 20;
/// The most tasks that one seed submits.
const BUDGET: u64 = 3000;

/// Counts what happened, for comparison with the counters of the pool.
#[derive(Default)]
struct Tally {
    submitted: AtomicU64,
    completed: AtomicU64,
    panicked: AtomicU64,
}

impl Tally {
    /// Returns whether one more task may be submitted.
    fn admit(&self) -> bool {
        let admitted = self.submitted.fetch_add(1, Ordering::Relaxed) < BUDGET;
        if !admitted {
            self.submitted.fetch_sub(1, Ordering::Relaxed);
        }
        admitted
    }
}

/// Runs one task: it submits some children, handles them in random ways, and returns or panics. Returns
/// how many tasks of its tree it knows of.
fn node(pool: &Arc<Pool>, tally: &Arc<Tally>, seed: u64) -> u64 {
    let mut rng = Rng::new(seed);
    let mut size = 1;
    let mut kept = Vec::new();
    for child in 0..rng.below(6) as u64 {
        if !tally.admit() {
            break;
        }
        let handle = spawn_node(pool, tally, seed.wrapping_mul(31).wrapping_add(child));
        match rng.below(5) {
            0 => drop(handle),
            1 => size += known(handle.join()),
            _ => kept.push(handle),
        }
    }
    if rng.below(2) == 0 {
        kept.reverse();
    }
    for handle in kept {
        match rng.below(4) {
            0 => drop(handle),
            _ => size += known(handle.join()),
        }
    }
    if rng.below(20) == 0 {
        tally.panicked.fetch_add(1, Ordering::Relaxed);
        panic!("planned: {seed}");
    }
    tally.completed.fetch_add(1, Ordering::Relaxed);
    size
}

fn spawn_node(pool: &Arc<Pool>, tally: &Arc<Tally>, seed: u64) -> JoinHandle<u64> {
    let (inner, tally) = (Arc::clone(pool), Arc::clone(tally));
    match Rng::new(!seed).below(3) {
        0 => {
            let ballast = [seed; 20];
            pool.spawn(move || node(&inner, &tally, ballast[7]))
        }
        _ => pool.spawn(move || node(&inner, &tally, seed)),
    }
}

fn known(result: Result<u64, JoinError>) -> u64 {
    match result {
        Ok(size) => size,
        Err(JoinError::Panicked(panic)) => {
            assert!(panic.message().starts_with("planned"), "{}", panic.message());
            0
        }
        Err(other) => panic!("{other:?}"),
    }
}

fn run(kind: Kind, workers: usize, seed: u64) {
    let group = ThreadGroup::new();
    let told = Arc::new(AtomicU64::new(0));
    let builder = kind.builder_in(&group, workers).on_panic({
        let told = Arc::clone(&told);
        move |panic| {
            assert!(panic.message().starts_with("planned"), "{}", panic.message());
            told.fetch_add(1, Ordering::Relaxed);
        }
    });
    let pool = Arc::new(builder.build().expect("a pool"));
    let tally = Arc::new(Tally::default());
    thread::scope(|scope| {
        for outsider in 0..3 {
            let (pool, tally) = (&pool, &tally);
            scope.spawn(move || {
                for root in 0..40 {
                    if !tally.admit() {
                        break;
                    }
                    let handle = spawn_node(pool, tally, seed << 20 | outsider << 10 | root);
                    match root % 3 {
                        0 => drop(handle),
                        1 => _ = known(handle.join()),
                        _ => _ = known(block_on(handle)),
                    }
                }
            });
        }
    });
    pool.stop();
    let stats = pool.stats();
    assert_balanced(&stats);
    let counted = [
        stats.total.tasks_submitted,
        stats.total.tasks_completed,
        stats.total.panics,
        stats.total.cancellations,
    ];
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    assert_eq!(counted, [of(&tally.submitted), of(&tally.completed), of(&tally.panicked), 0]);
    assert!(of(&told) <= of(&tally.panicked));
    drop(pool);
    group.assert_gone();
}

fn seeds(kind: Kind, workers: usize) {
    for seed in 0..SEEDS {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| run(kind, workers, seed))) {
            eprintln!("{} with {workers} workers: seed {seed}", kind.strategy);
            resume_unwind(payload);
        }
    }
}

fn two_workers(kind: Kind) {
    seeds(kind, 2);
}

fn four_workers(kind: Kind) {
    seeds(kind, 4);
}

/// Pools that live only for a short time.
fn short_lived_pools(kind: Kind) {
    let group = ThreadGroup::new();
    let runs = Arc::new(AtomicU64::new(0));
    let mut rng = Rng::new(1);
    let mut submitted = 0;
    for _ in 0..500 {
        let pool = kind.builder_in(&group, 1 + rng.below(4)).build().expect("a pool");
        for _ in 0..rng.below(4) {
            let runs = Arc::clone(&runs);
            submitted += 1;
            pool.spawn(move || runs.fetch_add(1, Ordering::Relaxed));
        }
        if rng.below(2) == 0 {
            pool.stop();
        }
    }
    assert_eq!(runs.load(Ordering::Relaxed), submitted);
    group.assert_gone();
}
