//! Who wants work: a word for each core, raised by those who find nothing, answered by the thread in
//! the core at its next fork.
//!
//! The owner looks at its word at every join, so looking must cost nothing: a load of a line that nobody
//! writes while everybody is busy. Whoever has nothing to do raises the words of all others; a
//! worker that is about to sleep does so *after* it has said that it sleeps. The owner takes one
//! off its word *before* it publishes a job and looks for sleepers. So a demand that is
//! taken away has been answered: `idle/README.md` has the argument.

use crate::fork::raid::Chain;
use crate::idle::Idle;
use crate::order;
use crate::sync::{AtomicUsize, Ordering, full_fence, heavy_fence};

/// How many jobs somebody wants who is looking for work. More than one, because the owner may go on
/// into something long in which it does not look; few enough that an answer costs less than a steal. A
/// guess.
#[cfg(not(any(loom, shuttle)))]
const WANTED_BY_SEARCHER: usize = 16;
/// And somebody who sleeps: will not be up soon, and has time for more. A guess: half a lane.
#[cfg(not(any(loom, shuttle)))]
const WANTED_BY_SLEEPER: usize = 128;
/// Small, so that a checker sees the end of it.
#[cfg(any(loom, shuttle))]
const WANTED_BY_SEARCHER: usize = 1;
/// Likewise.
#[cfg(any(loom, shuttle))]
const WANTED_BY_SLEEPER: usize = 1;

/// In the place of the number of a core.
pub(crate) const NO_WORKER: usize = usize::MAX;

/// Somebody is, or has been, at the owner's private jobs (`raid`): the owner must look again, with the lock.
const RAID: usize = 1 << (usize::BITS - 1);

/// The word of one core.
pub(crate) struct Demand {
    /// How many more jobs are wanted, and [`RAID`]. Raised by anybody, lowered by the thread in the core.
    ///
    /// Ordering: relaxed, everywhere. It brings no data with it, and what must be ordered is, by the
    /// fences of the idle protocol, and by the lock of the chain.
    wanted: AtomicUsize,
    /// By which a thief is found again.
    pub(crate) worker: usize,
    /// The private jobs of the thread in the core, if they can be raided.
    pub(crate) chain: Option<Chain>,
}

impl Demand {
    /// Raised from the beginning, so that the first fork can be stolen at once; unless there is nobody to
    /// do so.
    pub(crate) fn new(worker: usize, workers: usize) -> Self {
        let wanted = if workers == 1 { 0 } else { WANTED_BY_SLEEPER };
        Self { wanted: AtomicUsize::new(wanted), worker, chain: None }
    }

    /// Likewise, where thieves help themselves if need be.
    pub(crate) fn with_raids(self) -> Self {
        Self { chain: Some(Chain::default()), ..self }
    }

    /// For the owner: are jobs wanted, or was there a raid?
    #[inline(always)]
    pub(crate) fn is_raised(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) != 0
    }

    /// How many jobs are wanted.
    pub(crate) fn count(&self) -> usize {
        self.wanted.load(Ordering::Relaxed) & !RAID
    }

    /// Not the owner. Writes only if it must: the owner reads this at every join.
    pub(crate) fn raise(&self) {
        if self.count() == 0 {
            self.wanted.fetch_or(WANTED_BY_SEARCHER, Ordering::Relaxed);
        }
    }

    /// Likewise, one that sleeps, as it has said.
    pub(crate) fn raise_for_sleeper(&self) {
        if self.count() < WANTED_BY_SLEEPER {
            self.wanted.fetch_or(WANTED_BY_SLEEPER, Ordering::Relaxed);
        }
    }

    /// The owner, which has taken back a job that it had published, and nobody else has taken: at least one
    /// is still wanted.
    pub(crate) fn restore(&self) {
        if self.count() == 0 {
            self.wanted.fetch_or(1, Ordering::Relaxed);
        }
    }

    /// The owner, likewise, where whoever is up says again what it wants, and takes it if need be: only for those who
    /// sleep it stands (step D4).
    pub(crate) fn keep_for_sleepers(&self, idle: &Idle) {
        if self.count() == 0 {
            return;
        }
        self.wanted.fetch_and(RAID, Ordering::Relaxed);
        // Whoever has fallen asleep before that, and has raised what was just taken away, is seen.
        full_fence(order::SUBMIT);
        if idle.has_sleeper() {
            self.restore();
        }
    }

    /// Not the owner, after it has stolen the last job that was published: there may be one in its stead.
    pub(crate) fn raise_after_steal(&self) {
        full_fence(order::STOLEN);
        self.wanted.fetch_or(WANTED_BY_SEARCHER, Ordering::Relaxed);
    }

    /// The owner, before it looks whether a job is published, and publishes more. Either it sees there what a thief has
    /// stolen, or it does not take away what that one wants (step D7).
    pub(crate) fn take(&self) -> usize {
        let wanted = self.wanted.fetch_and(RAID, Ordering::Relaxed) & !RAID;
        full_fence(order::OFFER);
        wanted
    }

    /// The owner, which has not so many jobs: the next ones are wanted.
    pub(crate) fn put_back(&self, wanted: usize) {
        self.wanted.fetch_or(wanted, Ordering::Relaxed);
    }

    /// The owner, before it publishes a job. It may take away a demand that is raised at the same time,
    /// which the look for sleepers after the publication makes good.
    pub(crate) fn lower(&self) {
        if self.count() != 0 {
            self.wanted.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Not the owner, with the lock of the chain. The owner will see this and wait, or what it did before is seen
    /// ([`heavy_fence`]). It stays until the owner [has seen it](Self::forget_raid).
    pub(crate) fn announce_raid(&self) {
        self.wanted.fetch_or(RAID, Ordering::Relaxed);
        heavy_fence(order::RAID);
    }

    /// The owner, with the lock of the chain.
    pub(crate) fn forget_raid(&self) {
        self.wanted.fetch_and(!RAID, Ordering::Relaxed);
    }
}
