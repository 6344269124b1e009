//! The cost of an item on its way through an injector.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Instant;

use harness::cores;
use harness::item::{Item, Tally, forget_memory};
use harness::row::Sample;
use harness::threads::{Finally, Padded, relay};

use super::{ALONE, DRAINED, DRAINS, MOVED, PRODUCERS, Shared};
use crate::deque::{Outcome, Owner};

/// The capacity of the deque that takes a batch: room for one batch, and a reserve.
const ROOM: usize = 256;

/// Measures one thread that pushes an item and steals it.
pub(super) fn alone<T: Item, S: Shared<T>>() -> Sample {
    let queue = S::new();
    let mut seen = Tally::default();
    let start = Instant::now();
    for number in 1..=ALONE {
        queue.push(T::new(black_box(number)));
        forget_memory();
        let _ = queue.steal(|item| seen.add(item));
    }
    let time = start.elapsed();
    seen.check::<T>(S::NAME, ALONE, 1);
    Sample::new(time, ALONE)
}

/// Measures two threads that push and two that steal, until all items have moved: the time from the start of the
/// first thread to the end of the last.
pub(super) fn crowd<T: Item, S: Shared<T>>() -> Sample {
    let queue = S::new();
    let gate = Barrier::new(2 * PRODUCERS as usize);
    let producing = Padded(AtomicU64::new(PRODUCERS));
    let seen = Mutex::new(Tally::default());
    // With two processors, each has a producer and a consumer.
    let timed = |processor: u64, task: &dyn Fn()| {
        cores::pin(processor as usize);
        gate.wait();
        let start = Instant::now();
        task();
        (start, Instant::now())
    };
    let produce = |first: u64| {
        // Ordering: release, the partner of the load in `steal_all`. A consumer that sees that no producer is left
        // sees all that they pushed.
        let _end = Finally(|| _ = producing.0.fetch_sub(1, Ordering::Release));
        for number in (first..=MOVED).step_by(PRODUCERS as usize) {
            queue.push(T::new(black_box(number)));
        }
    };
    let consume = || {
        let stolen = steal_all(&queue, &producing.0);
        seen.lock().unwrap().merge(stolen);
    };
    let times: Vec<_> = thread::scope(|scope| {
        let (timed, produce, consume) = (&timed, &produce, &consume);
        let threads: Vec<_> = (1..=PRODUCERS)
            .flat_map(|first| {
                [
                    scope.spawn(move || timed(first, &|| produce(first))),
                    scope.spawn(move || timed(PRODUCERS + first, consume)),
                ]
            })
            .collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| thread.join();
        threads.into_iter().map(join).collect::<Result<_, _>>()
    })
    .expect("a thread panicked; its message is above");
    seen.into_inner().unwrap().check::<T>(S::NAME, MOVED, 1);
    let start = times.iter().map(|&(start, _)| start).min();
    let end = times.iter().map(|&(_, end)| end).max();
    let time = end.zip(start).map(|(end, start)| end - start);
    Sample::new(time.expect("there are threads"), MOVED)
}

/// Steals until no producer is left and the queue is empty.
#[inline(always)]
fn steal_all<T: Item, S: Shared<T>>(queue: &S, producing: &AtomicU64) -> Tally {
    let mut stolen = Tally::default();
    loop {
        // Ordering: acquire, the partner of a producer's decrement at its end. It comes before the look into the
        // queue, because a queue that is empty after the last push stays empty.
        let last = producing.load(Ordering::Acquire) == 0;
        loop {
            match queue.steal(|item| stolen.add(item)) {
                Outcome::Taken => {}
                Outcome::Retry => std::hint::spin_loop(),
                Outcome::Empty => break,
            }
        }
        if last {
            return stolen;
        }
        // There are more threads than processors, so this lets a producer continue.
        thread::yield_now();
    }
}

/// Measures a thief that empties what another thread has pushed, into a deque of its own, which it empties before
/// the next batch.
pub(super) fn drain_batch<T: Item, S: Shared<T>>() -> Sample {
    let queue = S::new();
    let (mine, _) = S::Worker::new(ROOM);
    let mut seen = Tally::default();
    let fill = || (1..=DRAINED).for_each(|number| queue.push(T::new(number)));
    let (from, seen_by_thief) = (&queue, &mut seen);
    let time = relay(DRAINS, fill, move || {
        let mut lap = Tally::default();
        loop {
            match from.steal_batch_and_pop(&mine, |item| lap.add(item)) {
                Outcome::Taken => {
                    while let Some(item) = mine.pop() {
                        lap.add(item);
                    }
                }
                Outcome::Retry => {}
                Outcome::Empty => break,
            }
        }
        seen_by_thief.merge(lap);
    });
    seen.check::<T>(S::NAME, DRAINED, DRAINS);
    Sample::new(time, DRAINED * DRAINS)
}
