//! Models of a trace: what a reader may find while a thread writes.

use loom::thread;

use super::explore::{Model, models};
use crate::sync::Arc;
use crate::trace::Ring;

/// Checks what a reader finds. Events are numbered from 1, and both words of each are its number, so each event that
/// is found must be consistent and in its place.
fn check(ring: &Ring) {
    let kept = ring.read();
    for (expected, event) in (kept.lost + 1..).zip(kept.events) {
        assert_eq!(event, (expected, expected), "after {} that are lost", kept.lost);
    }
}

fn read_against_write(size: usize, events: u64) {
    let ring = Arc::new(Ring::new(size));
    let read = Arc::clone(&ring);
    let reader = thread::spawn(move || check(&read));
    (1..=events).for_each(|number| ring.write(number, number));
    reader.join().unwrap();
    check(&ring);
}

/// A reader reads while a thread writes events, and there is room for all of them.
fn fill() {
    read_against_write(4, 2);
}

/// A reader reads while new events overwrite old ones.
fn overwrite() {
    read_against_write(2, 3);
}

models! {
    trace_fill: fill, None, 40;
    trace_overwrite: overwrite, None, 1_500;
}
