//! The contract of memory: the memory of a run does not grow with the number of items.

#![cfg(not(any(loom, shuttle)))]

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};

use heist::pipeline::{Distribution, Pipeline};
use heist_testkit::alloc::{CountingAllocator, exclusive, live_bytes, peak_bytes, reset_peak};
use heist_testkit::test_path;

use common::pipeline::{Way, assert_cancelled, ordered_ways, ways};
use common::{Kind, watched};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// The number of items that exist now.
static ITEMS: AtomicUsize = AtomicUsize::new(0);

/// An item that is counted.
struct Counted(usize, [u8; 120]);

impl Counted {
    fn new(number: usize, most: usize) -> Self {
        let items = ITEMS.fetch_add(1, Ordering::Relaxed) + 1;
        assert!(items <= most, "{items} items at once");
        Self(number, [0; 120])
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        ITEMS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Panics if the memory of a run of `items` items is not bounded by the number of items in flight.
fn assert_constant(way: Way, items: usize, batch: usize, bound: usize) {
    let pool = Kind::WORK_STEALING.pool(2);
    let before = reset_peak();
    let mut sum = 0_usize;
    let source = (0..items).map(|n| Counted::new(n, batch * bound));
    let pipeline = Pipeline::new(source).batch(batch).in_flight(bound).map(|item| item);
    way.of(pipeline).run(&pool, |item| sum += item.0 + usize::from(item.1[0])).expect("an end");
    assert_eq!(sum, items * (items - 1) / 2, "{way:?}");
    assert_eq!(ITEMS.load(Ordering::Relaxed), 0, "{way:?}");
    let peak = peak_bytes() - before;
    // Items, their results and empty buffers: a multiple of what is in flight, and far less than all
    // items.
    let enough = 32 * batch * bound * size_of::<Counted>() + (1 << 20);
    assert!(peak <= enough, "{way:?}: {peak} bytes for {items} items, {enough} should do");
}

#[test]
fn every_way() {
    watched(test_path!("every_way"), || {
        let _exclusive = exclusive();
        ways().for_each(|way| assert_constant(way, 60_000, 64, 16));
    });
}

#[test]
fn three_million() {
    watched(test_path!("three_million"), || {
        let _exclusive = exclusive();
        let way = Way { distribution: Distribution::Pull, ordered: true, steals: true };
        assert_constant(way, 3_000_000, 64, 64);
    });
}

/// The memory is also bounded with few large batches in flight.
#[test]
fn large_batches() {
    watched(test_path!("large_batches"), || {
        let _exclusive = exclusive();
        ordered_ways().for_each(|way| assert_constant(way, 600_000, 4000, 2));
    });
}

/// A run leaves nothing behind, neither after a cancellation nor on the token.
#[test]
fn nothing_is_left() {
    watched(test_path!("nothing_is_left"), || {
        let _exclusive = exclusive();
        let pool = Kind::WORK_STEALING.pool(2);
        let token = heist::CancelToken::new();
        let rounds = |count: usize| {
            for way in ways().cycle().take(count) {
                let child = token.child();
                let pipeline = Pipeline::new(0_usize..).batch(3).in_flight(9).cancel_on(&child);
                let mut results = 0;
                let outcome = way.of(pipeline.map(Box::new)).run(&pool, |_| {
                    results += 1;
                    if results == 30 {
                        child.cancel();
                    }
                });
                assert_cancelled(outcome);
                let finite = Pipeline::new(0..50).batch(3).cancel_on(&token);
                way.of(finite).run(&pool, drop).expect("an end");
            }
        };
        rounds(100);
        let before = live_bytes();
        rounds(800);
        let left = live_bytes().saturating_sub(before);
        // The memory that the pool keeps for its tasks varies.
        assert!(left <= 1 << 20, "{left} bytes of 1600 runs");
    });
}
