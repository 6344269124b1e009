//! The contract of memory: what a run holds does not grow with what goes through it.

#![cfg(not(any(loom, shuttle)))]

mod common;
#[path = "common/flow.rs"]
mod flow;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use common::{Kind, WorkStealing, watched};
use flow::{Way, ordered_ways, ways};
use heist::pipeline::{Distribution, Pipeline};

/// The system's allocator, which knows how much is allocated, and what was the most.
struct Meter;

#[global_allocator]
static METER: Meter = Meter;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: memory comes from `System` and goes back there with the same layout; the counters
// allocate nothing.
unsafe impl GlobalAlloc for Meter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller's promise is the same as ours.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }
}

/// The meter is everybody's: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Items that are there just now.
static ITEMS: AtomicUsize = AtomicUsize::new(0);

/// An item that is counted, of some size.
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

/// Panics if a run of so many items needs more memory than what is in flight has a right to.
fn assert_constant(way: Way, items: usize, batch: usize, bound: usize) {
    let pool = WorkStealing::pool(2);
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let mut sum = 0_usize;
    let source = (0..items).map(|n| Counted::new(n, batch * bound));
    let pipeline = Pipeline::new(source).batch(batch).in_flight(bound).map(|item| item);
    way.of(pipeline).run(&pool, |item| sum += item.0 + usize::from(item.1[0])).expect("an end");
    assert_eq!(sum, items * (items - 1) / 2, "{way:?}");
    assert_eq!(ITEMS.load(Ordering::Relaxed), 0, "{way:?}");
    let peak = PEAK.load(Ordering::Relaxed) - before;
    // Items as they come, their results, and buffers that are empty: some times what is in flight, and
    // far from all.
    let enough = 32 * batch * bound * size_of::<Counted>() + (1 << 20);
    assert!(peak <= enough, "{way:?}: {peak} bytes for {items} items, {enough} should do");
}

#[test]
fn every_way() {
    watched("pipeline_memory::every_way", || {
        let _alone = alone();
        ways().for_each(|way| assert_constant(way, 60_000, 64, 16));
    });
}

#[test]
fn three_million() {
    watched("pipeline_memory::three_million", || {
        let _alone = alone();
        let way = Way { distribution: Distribution::Pull, ordered: true, steals: true };
        assert_constant(way, 3_000_000, 64, 64);
    });
}

/// Few batches, and large ones.
#[test]
fn large_batches() {
    watched("pipeline_memory::large_batches", || {
        let _alone = alone();
        ordered_ways().for_each(|way| assert_constant(way, 600_000, 4000, 2));
    });
}

/// A run leaves nothing: neither where it was cancelled, nor on the token.
#[test]
fn nothing_is_left() {
    watched("pipeline_memory::nothing_is_left", || {
        let _alone = alone();
        let pool = WorkStealing::pool(2);
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
                flow::assert_cancelled(outcome);
                let finite = Pipeline::new(0..50).batch(3).cancel_on(&token);
                way.of(finite).run(&pool, drop).expect("an end");
            }
        };
        rounds(100);
        let before = LIVE.load(Ordering::Relaxed);
        rounds(800);
        let left = LIVE.load(Ordering::Relaxed).saturating_sub(before);
        // What the pool keeps for its tasks is not the same at every moment.
        assert!(left <= 1 << 20, "{left} bytes of 1600 runs");
    });
}
