//! The cost of a push and a pop for an owner without thieves.

use std::hint::black_box;
use std::time::Instant;

use harness::item::{Item, Tally, forget_memory};
use harness::row::Sample;

use super::{ALONE, Owner, USUAL};

/// Measures `DEPTH` pushes, then as many pops, repeatedly, above `BELOW` items that stay.
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

/// Pushes the `count` items after number `before`, a multiple of `DEPTH`. It is inlined, so that the compiler sees
/// the worker as a local variable of the measuring function.
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

/// Pushes an item. Without thieves, a queue is full only if this program made it too small.
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
