//! How a guest is spared the requests of workers that search, as long as its visit may be short.
//!
//! Most visits of a thread that belongs to no pool take less time than a steal. A request costs such a visit more than it
//! brings: the guest would publish a job, and take it back. A raid costs it even more. So a worker that searches asks a guest,
//! or raids it, only if it finds the same visit still there after a while. A worker that sleeps is served at once.

use crate::sync::{AtomicBool, AtomicUsize, Ordering, Padded};

/// So many requests in vain are about a microsecond.
const ASKS: usize = if cfg!(shuttle) { 1 } else { 4 };

/// Whether a guest may be asked and raided. Ordering: relaxed, everywhere. It is a hint.
#[derive(Default)]
pub(super) struct Quiet {
    /// Is the guest to be left alone?
    is_on: AtomicBool,
    /// The number of the guest's visit. Written by the guest for every visit, and seldom read by others. Another number stands
    /// for the time between two visits.
    visit: Padded<AtomicUsize>,
    asks: Padded<Asks>,
}

/// What the workers that search write.
#[derive(Default)]
struct Asks {
    /// The number of requests in vain.
    count: AtomicUsize,
    /// The visit that was seen at the last look.
    seen: AtomicUsize,
}

impl Quiet {
    /// For the guest: begins a visit.
    pub(super) fn begin(&self, is_quiet: bool) {
        self.end();
        if self.is_on.load(Ordering::Relaxed) != is_quiet {
            self.is_on.store(is_quiet, Ordering::Relaxed);
        }
    }

    /// For the guest: ends a visit. The time until the next one counts as another visit.
    pub(super) fn end(&self) {
        let visit = self.visit.load(Ordering::Relaxed);
        self.visit.store(visit.wrapping_add(1), Ordering::Relaxed);
    }

    /// For a worker that searches: returns whether it may ask.
    pub(super) fn may_ask(&self) -> bool {
        if !self.is_on.load(Ordering::Relaxed) {
            return true;
        }
        if self.asks.count.fetch_add(1, Ordering::Relaxed) % ASKS != 0 {
            return false;
        }
        self.is_old()
    }

    /// For a thief: returns whether it may raid. If not, it may when it comes back and finds the same visit.
    pub(super) fn may_raid(&self) -> bool {
        !self.is_on.load(Ordering::Relaxed) || self.is_old()
    }

    /// Returns whether the visit is the one that was there at the last look. Then the guest is not spared any more.
    fn is_old(&self) -> bool {
        let visit = self.visit.load(Ordering::Relaxed);
        let is_old = self.asks.seen.swap(visit, Ordering::Relaxed) == visit;
        if is_old {
            self.is_on.store(false, Ordering::Relaxed);
        }
        is_old
    }
}
