//! What a worker does when a stage has failed and is called again, or the item is skipped.

use std::time::Duration;

use super::Control;
use crate::sync::{AtomicU64, Instant, Ordering, lock};
use crate::task::Promise;
use crate::worker::limited::Limited;

/// The longest pause: no more than can be added to any reading of the clock.
const LONGEST: Duration = Duration::from_secs(1 << 30);

/// What the workers count. Ordering: relaxed. They are statistics.
#[derive(Default)]
pub(super) struct Errors {
    skipped: AtomicU64,
    retried: AtomicU64,
}

impl Errors {
    /// Returns how many items were skipped, and how many calls were repeated.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.skipped.load(Ordering::Relaxed), self.retried.load(Ordering::Relaxed))
    }
}

impl Control {
    /// Counts the items of a batch that have failed and are left out, and the calls that were repeated.
    pub(crate) fn count_errors(&self, skipped: u64, retried: u64) {
        if skipped > 0 {
            self.errors.skipped.fetch_add(skipped, Ordering::Relaxed);
        }
        if retried > 0 {
            self.errors.retried.fetch_add(retried, Ordering::Relaxed);
        }
    }

    /// Has the worker that processes this batch wait. The wait ends early if the batch becomes one to discard.
    pub(crate) fn pause(&self, batch: u64, length: Duration) {
        let end = Instant::now() + length.min(LONGEST);
        loop {
            let mut state = lock(&self.state.0);
            let left = end.saturating_duration_since(Instant::now());
            // A failure sets the cutoff, and takes the promises, under the same lock.
            if left.is_zero() || self.cutoff() <= batch {
                return;
            }
            let (promise, handle) = Promise::new();
            // Several workers may process parts of one batch.
            let ticket = state.next_pause;
            state.next_pause += 1;
            state.paused.push((ticket, promise));
            drop(state);
            let is_woken = Limited::new(&handle, left).wait();
            drop(handle);
            let mut state = lock(&self.state.0);
            let at = state.paused.iter().position(|(paused, _)| *paused == ticket);
            let promise = at.map(|at| state.paused.swap_remove(at));
            drop(state);
            drop(promise);
            // A checker has no time: there, the pause is over.
            if !is_woken {
                return;
            }
        }
    }
}
