//! The demand for a thread's private jobs: one word per thread, raised by workers that find nothing, answered by the
//! thread at its next fork.
//!
//! The owner looks at its word at every join, so looking must cost nothing: it is a load of a cache line that no
//! thread writes while all workers are busy. An idle worker raises the words of others; a worker that is about
//! to sleep raises those of all others, *after* it has announced that it sleeps. The owner lowers its word by one *before* it publishes
//! a job and looks for sleepers. So a demand that was lowered has been answered: `idle/README.md` has the argument.

use crate::fork::raid::Chain;
use crate::idle::Idle;
use crate::order;
use crate::sync::{AtomicUsize, Ordering, full_fence, heavy_fence};

/// The number of jobs that a searching worker requests. More than one, because the owner may continue with
/// something long in which it does not look; few enough that an answer costs less than a steal. A guess.
#[cfg(not(any(loom, shuttle)))]
const WANTED_BY_SEARCHER: usize = 16;
/// The number of jobs that a worker requests before it sleeps. It takes time to wake up, in which the owner can
/// publish more. A guess.
#[cfg(not(any(loom, shuttle)))]
const WANTED_BY_SLEEPER: usize = 128;
/// Small, so that a checker sees a demand that is used up.
#[cfg(any(loom, shuttle))]
const WANTED_BY_SEARCHER: usize = 1;
/// Small, so that a checker sees a demand that is used up.
#[cfg(any(loom, shuttle))]
const WANTED_BY_SLEEPER: usize = 1;

/// The bit of the word that announces a raid: a thief accesses, or has accessed, the owner's private jobs (`raid`).
/// The owner must look again while it holds the lock of the chain.
const RAID: usize = 1 << (usize::BITS - 1);

/// The demand for the private jobs of one thread.
pub(crate) struct Demand {
    /// How many more jobs are wanted, and the bit [`RAID`]. Any thread raises it; only the owner lowers it.
    ///
    /// Ordering: relaxed, everywhere. No data is passed with it; what must be ordered is ordered by the
    /// fences of the idle protocol and by the lock of the chain.
    wanted: AtomicUsize,
    /// The thread's place in the table, or [`NO_PLACE`]. A join learns from it which thread has stolen its job.
    pub(crate) worker: usize,
    /// The private jobs of the thread, if they can be raided.
    pub(crate) chain: Option<Chain>,
}

impl Demand {
    /// Returns a demand that is raised, so that the first fork can be stolen at once; but not if there is no other
    /// worker that could steal it.
    pub(crate) fn new(worker: usize, workers: usize) -> Self {
        let wanted = if workers == 1 { 0 } else { WANTED_BY_SLEEPER };
        Self { wanted: AtomicUsize::new(wanted), worker, chain: None }
    }

    /// Lets thieves raid the thread's private jobs.
    pub(crate) fn with_raids(self) -> Self {
        Self { chain: Some(Chain::default()), ..self }
    }

    /// For the owner: returns whether jobs are wanted, or there was a raid.
    #[inline(always)]
    pub(crate) fn is_raised(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) != 0
    }

    /// Returns how many jobs are wanted.
    pub(crate) fn count(&self) -> usize {
        self.wanted.load(Ordering::Relaxed) & !RAID
    }

    /// For other threads: requests jobs. Writes only if needed, because the owner reads the word at every join.
    pub(crate) fn raise(&self) {
        if self.count() == 0 {
            self.wanted.fetch_or(WANTED_BY_SEARCHER, Ordering::Relaxed);
        }
    }

    /// For a worker that has announced that it sleeps: requests jobs.
    pub(crate) fn raise_for_sleeper(&self) {
        if self.count() < WANTED_BY_SLEEPER {
            self.wanted.fetch_or(WANTED_BY_SLEEPER, Ordering::Relaxed);
        }
    }

    /// For the owner, after it took back a job that it had published and no other worker had taken: restores a demand
    /// of at least one job, because one is still wanted.
    pub(crate) fn restore(&self) {
        if self.count() == 0 {
            self.wanted.fetch_or(1, Ordering::Relaxed);
        }
    }

    /// For the owner, after it took back a job that it had published, in a pool whose idle workers repeat their
    /// requests and can raid: keeps the demand only if a worker sleeps (step D4).
    pub(crate) fn keep_for_sleepers(&self, idle: &Idle) {
        if self.count() == 0 {
            return;
        }
        self.wanted.fetch_and(RAID, Ordering::Relaxed);
        // A worker that fell asleep before this, and raised the demand that was just lowered, is seen below.
        full_fence(order::SUBMIT);
        if idle.has_sleeper() {
            self.restore();
        }
    }

    /// For the owner, after it took back a job that it had published, in a pool with raids: forgets what workers that are
    /// awake want, and keeps a demand of at least one job if a worker sleeps (step D4).
    pub(crate) fn taken_back(&self, idle: &Idle) {
        self.keep_for_sleepers(idle);
        // A worker that slept when the job was published may still sleep, although that has used up the demand.
        if idle.has_sleeper() {
            self.restore();
        }
    }

    /// For a thief that has stolen the last published job: requests that the owner publishes another one.
    pub(crate) fn raise_after_steal(&self) {
        full_fence(order::STOLEN);
        self.wanted.fetch_or(WANTED_BY_SEARCHER, Ordering::Relaxed);
    }

    /// For the owner: takes the whole demand, before it looks whether a job is published and publishes more. Either it
    /// sees there that a thief has stolen the job, or it does not take away what that thief requests (step D7).
    pub(crate) fn take(&self) -> usize {
        let wanted = self.wanted.fetch_and(RAID, Ordering::Relaxed) & !RAID;
        full_fence(order::OFFER);
        wanted
    }

    /// For the owner, which had fewer jobs than were wanted: puts back the rest of the demand.
    pub(crate) fn put_back(&self, wanted: usize) {
        self.wanted.fetch_or(wanted, Ordering::Relaxed);
    }

    /// For the owner: lowers the demand by one, before it publishes a job. It may take away a demand that is raised at
    /// the same time; the look for sleepers after the publication makes up for that.
    pub(crate) fn lower(&self) {
        if self.count() != 0 {
            self.wanted.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// For a thief that holds the lock of the chain: announces a raid. Either the owner sees this and waits for the
    /// lock, or the thief sees what the owner did before ([`heavy_fence`]). The announcement stays until the owner
    /// [has seen it](Self::forget_raid).
    pub(crate) fn announce_raid(&self) {
        self.wanted.fetch_or(RAID, Ordering::Relaxed);
        heavy_fence(order::RAID);
    }

    /// For the owner, while it holds the lock of the chain: removes the announcement of a raid.
    pub(crate) fn forget_raid(&self) {
        self.wanted.fetch_and(!RAID, Ordering::Relaxed);
    }
}
