//! The contract of promptness: finished results are delivered and taken batches are processed, whatever is
//! slow elsewhere.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use heist::pipeline::Pipeline;

use crate::common::pipeline::{Door, Way, stealing_ways, ways};
use crate::common::{Kind, WORKERS, eventually, for_every_strategy};

for_every_strategy! {
    finished_results_are_delivered,
    taken_batches_are_processed,
    taken_batches_are_processed_without_stealing,
    queued_batches_are_processed,
}

/// A slow batch does not delay the results of the batches that are finished.
///
/// What a worker has processed is finished when it begins its next batch. So all that is done is finished but for
/// one batch of each other worker.
fn finished_results_are_delivered(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for way in ways().filter(|way| !way.ordered) {
            let (done, delivered) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let checked = AtomicUsize::new(0);
            let pipeline = Pipeline::new(0..300).batch(1).map(|n| {
                if n % 100 == 99 {
                    let finished = done.load(Ordering::Acquire).saturating_sub(workers - 1);
                    let all = || delivered.load(Ordering::Acquire) >= finished;
                    eventually("all that is finished is delivered", all);
                    checked.fetch_add(finished, Ordering::Relaxed);
                }
                done.fetch_add(1, Ordering::Release);
            });
            let sink = |()| _ = delivered.fetch_add(1, Ordering::Release);
            way.of(pipeline).run(&pool, sink).expect("an end");
            // Before the last one is taken, all but 256 are delivered.
            assert!(checked.into_inner() > 0, "{way:?}: nothing was finished");
        }
    }
}

/// Sends items with pauses, and waits for each result.
fn now_and_then(kind: Kind, workers: usize, ways: impl Iterator<Item = Way>) {
    let pool = kind.pool(workers);
    for way in ways {
        let (send, source) = mpsc::channel();
        let (deliver, delivered) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(move || {
                for burst in (0..20).cycle().take(40) {
                    (0..burst).for_each(|n| send.send(n).expect("a source"));
                    let come = |_| delivered.recv_timeout(Duration::from_secs(15)).is_ok();
                    assert!((0..burst).all(come), "what was taken is not done: {way:?}");
                }
            });
            let sink = |n: usize| _ = deliver.send(n);
            way.of(Pipeline::new(source).batch(1)).run(&pool, sink).expect("an end");
        });
    }
}

/// A blocking source does not delay the items that it has already yielded.
fn taken_batches_are_processed(kind: Kind) {
    WORKERS.into_iter().for_each(|workers| now_and_then(kind, workers, stealing_ways()));
}

fn taken_batches_are_processed_without_stealing(kind: Kind) {
    for workers in WORKERS {
        now_and_then(kind, workers, ways().filter(|way| !way.steals));
    }
}

/// A slow batch does not delay batches that other workers could process.
fn queued_batches_are_processed(kind: Kind) {
    for workers in [2, 4, 11] {
        let pool = kind.pool(workers);
        for (way, slow) in stealing_ways()
            .filter(|way| !way.ordered)
            .flat_map(|way| [0, 50, 150].map(|slow| (way, slow)))
        {
            let (door, mut results) = (Door::default(), 0);
            let pipeline = Pipeline::new(0..200).batch(1).map(|n| {
                if n == slow {
                    door.pass();
                }
            });
            let sink = |()| {
                results += 1;
                if results == 199 {
                    door.open();
                }
            };
            way.of(pipeline).run(&pool, sink).expect("an end");
            assert_eq!(results, 200, "{way:?}");
        }
    }
}
