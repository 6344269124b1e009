//! The owner's loop: what a push and a pop cost. Here with no thief in sight.

use std::hint::black_box;
use std::time::Instant;

use harness::item::{Item, Tally, forget_memory};
use harness::row::Sample;

use super::{ALONE, Owner, USUAL};

/// `DEPTH` pushes, then as many pops, and so on, on top of `BELOW` items that stay.
pub(super) fn measure<T: Item, O: Owner<T>, const DEPTH: u64, const BELOW: u64>() -> Sample {
    let (worker, _thief) = O::new(USUAL);
    let mut seen = Tally::default();
    for number in ALONE + 1..=ALONE + BELOW {
        push_or_panic(&worker, T::new(number));
    }
    let start = Instant::now();
    push_and_pop::<T, O, DEPTH>(&worker, 0, ALONE, push_or_panic, &mut seen);
    let time = start.elapsed();
    while let Some(item) = worker.pop() {
        seen.add(item);
    }
    seen.check::<T>(O::NAME, ALONE + BELOW, 1);
    Sample::new(time, ALONE)
}

/// Pushes the `count` items after number `before`, a multiple of `DEPTH`. Inlined, so that to the
/// compiler the worker is a variable of the function that measures.
#[inline(always)]
pub(super) fn push_and_pop<T: Item, O: Owner<T>, const DEPTH: u64>(
    worker: &O,
    before: u64,
    count: u64,
    push: impl Fn(&O, T),
    seen: &mut Tally,
) {
    let mut number = before;
    for _ in 0..count / DEPTH {
        for _ in 0..DEPTH {
            number += 1;
            push(worker, T::new(black_box(number)));
        }
        forget_memory();
        for _ in 0..DEPTH {
            if let Some(item) = worker.pop() {
                seen.add(item);
            }
        }
    }
}

/// Without thieves a queue is full only if this program has asked too much of it.
#[inline(always)]
pub(super) fn push_or_panic<T, O: Owner<T>>(worker: &O, item: T) {
    if worker.push(item).is_err() {
        full(O::NAME);
    }
}

#[cold]
#[inline(never)]
fn full(queue: &str) -> ! {
    panic!("{queue} is full: the benchmark made it too small");
}
