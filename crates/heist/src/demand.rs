//! Who wants work: a word for each seat, raised by those who find nothing, answered by the thread in
//! the seat at its next fork.
//!
//! The owner looks at its word at every join, so looking must cost nothing: a load of a line that nobody
//! writes while everybody is busy. Whoever has nothing to do raises the words of all others; a
//! worker that is about to sleep does so *after* it has said that it sleeps. The owner takes one
//! off its word *before* it publishes a job and looks for sleepers. So a demand that is
//! overwritten has been answered: `idle/README.md` has the argument.

use crate::order;
use crate::sync::{AtomicUsize, Ordering, full_fence};

/// How many jobs somebody wants who is looking for work. More than one, because the owner may go on
/// into something long in which it does not look; few enough that an answer costs less than a steal. A
/// guess.
#[cfg(not(any(loom, shuttle)))]
const APPETITE: usize = 16;
/// And somebody who sleeps: will not be up soon, and has time for more. A guess: half a lane.
#[cfg(not(any(loom, shuttle)))]
const HUNGER: usize = 128;
/// Small, so that a checker sees the end of it.
#[cfg(any(loom, shuttle))]
const APPETITE: usize = 1;
/// Likewise.
#[cfg(any(loom, shuttle))]
const HUNGER: usize = 1;

/// In the place of the number of a seat.
pub(crate) const NO_SEAT: usize = usize::MAX;

/// The word of one seat.
pub(crate) struct Demand {
    /// How many more jobs are wanted. Raised by anybody, lowered by the thread in the seat.
    ///
    /// Ordering: relaxed, everywhere. It brings no data with it, and what must be ordered is, by the
    /// fences of the idle protocol.
    wanted: AtomicUsize,
    /// By which a thief is found again.
    pub(crate) seat: usize,
}

impl Demand {
    /// Raised from the beginning, so that the first fork can be stolen at once; unless there is nobody to
    /// do so.
    pub(crate) fn new(seat: usize, workers: usize) -> Self {
        let wanted = if workers == 1 { 0 } else { HUNGER };
        Self { wanted: AtomicUsize::new(wanted), seat }
    }

    #[inline(always)]
    pub(crate) fn is_raised(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) != 0
    }

    /// Not the owner. Writes only if it must: the owner reads this at every join.
    pub(crate) fn raise(&self) {
        if !self.is_raised() {
            self.wanted.store(APPETITE, Ordering::Relaxed);
        }
    }

    /// Likewise, one that sleeps, as it has said.
    pub(crate) fn raise_asleep(&self) {
        if self.wanted.load(Ordering::Relaxed) < HUNGER {
            self.wanted.store(HUNGER, Ordering::Relaxed);
        }
    }

    /// The owner, which has taken back a job that it had published, and nobody else has taken: at least one
    /// is still wanted.
    pub(crate) fn restore(&self) {
        if !self.is_raised() {
            self.wanted.store(1, Ordering::Relaxed);
        }
    }

    /// Not the owner, after it has stolen the last job that was published: there may be one in its stead.
    pub(crate) fn raise_after_steal(&self) {
        full_fence(order::STOLEN);
        self.wanted.store(APPETITE, Ordering::Relaxed);
    }

    /// The owner, before it looks whether a job is published, and publishes more. Either it sees there what a thief has
    /// stolen, or it does not overwrite what that one wants (step D5).
    pub(crate) fn take(&self) -> usize {
        let wanted = self.wanted.load(Ordering::Relaxed);
        self.wanted.store(0, Ordering::Relaxed);
        full_fence(order::OFFER);
        wanted
    }

    /// The owner, which has not so many jobs: the next ones are wanted.
    pub(crate) fn put_back(&self, wanted: usize) {
        self.wanted.store(wanted, Ordering::Relaxed);
    }

    /// The owner, before it publishes a job. It may overwrite a demand that is raised at the same time,
    /// which the look for sleepers after the publication makes good.
    pub(crate) fn lower(&self) {
        let wanted = self.wanted.load(Ordering::Relaxed);
        self.wanted.store(wanted.saturating_sub(1), Ordering::Relaxed);
    }
}
