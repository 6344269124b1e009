//! Batches that can only be processed at the same time, also on pools of more than eight workers, where workers take batches from
//! each other by other rules.

use std::sync::atomic::{AtomicUsize, Ordering};

use heist::Pool;
use heist::pipeline::Pipeline;

use crate::common::pipeline::{Way, stealing_ways};
use crate::common::{Kind, eventually, for_every_strategy};

for_every_strategy! {
    batches_before_a_pause_of_the_source_run_side_by_side,
    the_last_batches_run_side_by_side,
    short_batches_are_delivered_once,
}

/// More than eight, and not a multiple of it.
const MANY: usize = 11;

/// Batches that wait for each other.
#[derive(Default)]
struct Meeting {
    came: AtomicUsize,
}

impl Meeting {
    /// Waits until this many batches have come.
    fn attend(&self, all: usize) {
        self.came.fetch_add(1, Ordering::AcqRel);
        self.wait_for(all);
    }

    fn wait_for(&self, all: usize) {
        let came = || self.came.load(Ordering::Acquire);
        eventually("all of these batches run at the same time", || came() >= all);
    }
}

/// What a source does after its last item.
#[derive(Clone, Copy, PartialEq)]
enum Last {
    Ends,
    /// It blocks until the last batches run.
    Blocks,
}

/// Runs pipelines whose first batches are short, so that workers take many at once, and whose last `long` batches end only
/// when all of them run.
fn meet(pool: &Pool, way: Way, weighed: bool, long: usize, last: Last) {
    const SHORT: usize = 2_000;
    let meeting = Meeting::default();
    let end = std::iter::from_fn(|| {
        if last == Last::Blocks {
            meeting.wait_for(long);
        }
        None
    });
    let pipeline = Pipeline::new((0..SHORT + long).chain(end)).batch(1);
    let process = |n: usize| {
        if n >= SHORT {
            meeting.attend(long);
        }
        n
    };
    let mut results = Vec::new();
    if weighed {
        // Heavy ones would come first.
        let weighed = pipeline.weigh(|_| 1, 200).map(process);
        way.of(weighed).run(pool, |n| results.push(n)).expect("an end");
    } else {
        way.of(pipeline.map(process)).run(pool, |n| results.push(n)).expect("an end");
    }
    way.assert_all(results, &(0..SHORT + long).collect::<Vec<_>>());
}

/// Does so on a small pool and on a large one, with and without weights. `most` is how many batches can run at the same time.
fn meet_everywhere(kind: Kind, last: Last, most: impl Fn(usize) -> usize) {
    for workers in [2, 4, MANY] {
        let pool = kind.pool(workers);
        for (way, weighed) in stealing_ways().flat_map(|way| [(way, false), (way, true)]) {
            for long in [1, 2, 3, 7, most(workers)].into_iter().filter(|n| *n <= most(workers)) {
                meet(&pool, way, weighed, long, last);
            }
        }
    }
}

/// A source that blocks keeps no worker from the batches that it has yielded before, whoever has pulled them.
fn batches_before_a_pause_of_the_source_run_side_by_side(kind: Kind) {
    // One worker may be at the source.
    meet_everywhere(kind, Last::Blocks, |workers| workers - 1);
}

/// No worker leaves a run while another one has more batches than it can process.
fn the_last_batches_run_side_by_side(kind: Kind) {
    meet_everywhere(kind, Last::Ends, |workers| workers);
}

/// Many batches that take next to no time, so that workers often find nothing, with sizes at which a run ends in all ways.
fn short_batches_are_delivered_once(kind: Kind) {
    let pool = kind.pool(MANY);
    for way in stealing_ways() {
        for items in [0, 1, 10, 11, 12, 100, 1_000, 20_000] {
            let mut results = Vec::new();
            let pipeline = way.of(Pipeline::new(0..items).batch(1).map(|n| n));
            let report = pipeline.run(&pool, |n| results.push(n)).expect("an end");
            assert_eq!(report.results, items as u64, "{way:?}");
            way.assert_all(results, &(0..items).collect::<Vec<_>>());
        }
    }
}
