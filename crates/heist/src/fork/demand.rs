//! The demand for a thread's private jobs: one word per thread, raised by workers that find nothing, answered by the
//! thread at its next fork.
//!
//! The owner looks at its word at every join, so looking must cost nothing: it is a load of a cache line that no
//! thread writes while all workers are busy. An idle worker raises the words of others; a worker that is about
//! to sleep raises those of all others, *after* it has announced that it sleeps. The owner lowers its word by one *before* it publishes
//! a job and looks for sleepers. So a demand that was lowered has been answered: `idle/README.md` has the argument.

use crate::fork::private::PrivateTasks;
use crate::fork::quiet::Quiet;
use crate::fork::raid::{Chain, Guard};
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

/// The bit of the word by which the owner says that it has looked and has kept its few private tasks to itself. It will look
/// again soon, as a rule, so that there is no need for a raid. A thief clears the bit, and raids if it is not set again.
const SEEN: usize = 1 << (usize::BITS - 2);

/// The bit of the word that a worker sets before it sleeps. The owner clears it with the last of what is wanted, and when it
/// finds that no worker sleeps.
const SLEEPER: usize = 1 << (usize::BITS - 3);

/// The bits of the word that are no number.
const FLAGS: usize = RAID | SEEN | SLEEPER;

/// The demand for the private jobs and tasks of one thread.
pub(crate) struct Demand {
    /// How many more jobs and tasks are wanted, and the [`FLAGS`]. Any thread raises it; only the owner lowers it. Thieves
    /// clear [`SEEN`].
    ///
    /// Ordering: relaxed, everywhere. No data is passed with it; what must be ordered is ordered by the
    /// fences of the idle protocol and by the lock of the chain.
    wanted: AtomicUsize,
    /// Whether workers that search leave the thread alone for now, if it is a guest.
    quiet: Option<Box<Quiet>>,
    /// The thread's place in the table, or [`NO_PLACE`]. A join learns from it which thread has stolen its job.
    pub(crate) worker: usize,
    /// The private jobs of the thread, if they can be raided.
    pub(crate) chain: Option<Chain>,
    /// The private tasks of the thread, if it keeps any. They can be raided. In a box, because their owner writes there for
    /// every task, and others look here.
    pub(crate) tasks: Option<Box<PrivateTasks>>,
}

impl Demand {
    /// Returns a demand that is raised, so that the first fork can be stolen at once; but not if there is no other
    /// worker that could steal it.
    pub(crate) fn new(worker: usize, workers: usize) -> Self {
        let wanted = if workers == 1 { 0 } else { WANTED_BY_SLEEPER | SLEEPER };
        let wanted = AtomicUsize::new(wanted);
        Self { wanted, quiet: None, worker, chain: None, tasks: None }
    }

    /// Lets thieves raid the thread's private jobs.
    pub(crate) fn with_raids(self) -> Self {
        Self { chain: Some(Chain::default()), ..self }
    }

    /// Lets the thread be a guest, which is spared requests while its visit may be short. Only with raids.
    pub(crate) fn of_guest(self) -> Self {
        Self { quiet: self.chain.is_some().then(Box::default), ..self }
    }

    /// For the owner, which is a guest: begins a visit. If that `may_be_short`, workers that search ask later.
    pub(crate) fn begin_visit(&self, may_be_short: bool) {
        if let Some(quiet) = &self.quiet {
            quiet.begin(may_be_short);
        }
    }

    /// For the owner, which is a guest: ends a visit.
    pub(crate) fn end_visit(&self) {
        if let Some(quiet) = &self.quiet {
            quiet.end();
        }
    }

    /// Lets the thread keep tasks private. Only with raids.
    pub(crate) fn with_private_tasks(self) -> Self {
        debug_assert!(self.chain.is_some(), "what is private must be reached by raids");
        Self { tasks: Some(Box::new(PrivateTasks::new())), ..self }
    }

    /// For the owner: locks the chain, if it can be raided.
    pub(crate) fn guard(&self) -> Option<Guard<'_>> {
        self.chain.as_ref().map(Chain::guard)
    }

    /// For the owner: locks the chain, if it can be raided, when a raid that is under way has ended; and removes its
    /// announcement.
    pub(crate) fn guard_after_raid(&self) -> Option<Guard<'_>> {
        let guard = self.guard();
        if guard.is_some() {
            self.forget_raid();
        }
        guard
    }

    /// For the owner: returns whether jobs are wanted, or there was a raid.
    #[inline(always)]
    pub(crate) fn is_raised(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) != 0
    }

    /// For the owner: returns whether there was a raid.
    pub(crate) fn is_raided(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) & RAID != 0
    }

    /// Returns how many jobs are wanted.
    pub(crate) fn count(&self) -> usize {
        self.wanted.load(Ordering::Relaxed) & !FLAGS
    }

    /// For a thief: returns whether the owner has looked since this was last called, and has kept a few private tasks.
    pub(crate) fn take_seen(&self) -> bool {
        let seen = self.wanted.load(Ordering::Relaxed) & SEEN != 0;
        if seen {
            self.wanted.fetch_and(!SEEN, Ordering::Relaxed);
        }
        seen
    }

    /// For other threads: requests jobs. Writes only if needed, because the owner reads the word at every join.
    pub(crate) fn raise(&self) {
        if self.count() == 0 && self.quiet.as_ref().is_none_or(|quiet| quiet.may_ask()) {
            self.wanted.fetch_or(WANTED_BY_SEARCHER, Ordering::Relaxed);
        }
    }

    /// For a thief: returns whether it may raid the owner now. If not, it may when it comes back after a while.
    pub(crate) fn may_be_raided(&self) -> bool {
        self.quiet.as_ref().is_none_or(|quiet| quiet.may_raid())
    }

    /// For a thread that has something else to do: requests one job or task.
    pub(crate) fn ask(&self) {
        if self.count() == 0 {
            self.wanted.fetch_or(1, Ordering::Relaxed);
        }
    }

    /// For a worker that has announced that it sleeps: requests jobs.
    pub(crate) fn raise_for_sleeper(&self) {
        let now = self.wanted.load(Ordering::Relaxed);
        if now & !FLAGS < WANTED_BY_SLEEPER || now & SLEEPER == 0 {
            self.wanted.fetch_or(WANTED_BY_SLEEPER | SLEEPER, Ordering::Relaxed);
        }
    }

    /// For the owner, after it took back a job that it had published and no other worker had taken: restores a demand
    /// of at least one job, because one is still wanted.
    pub(crate) fn restore(&self) {
        let now = self.wanted.load(Ordering::Relaxed);
        if now & !FLAGS == 0 || now & SLEEPER == 0 {
            self.wanted.fetch_or(1 | SLEEPER, Ordering::Relaxed);
        }
    }

    /// For the owner, which has a few private tasks: returns whether it may keep them although they are wanted. It may not
    /// if there was a raid, or if a worker sleeps. Workers that are awake ask again, and can raid.
    pub(crate) fn may_keep(&self, idle: &Idle) -> bool {
        let now = self.wanted.load(Ordering::Relaxed);
        if now & RAID != 0 {
            return false;
        }
        if now & SLEEPER != 0 {
            self.wanted.fetch_and(!SLEEPER, Ordering::Relaxed);
            // A worker that fell asleep before this, and set the bit that was just cleared, is seen below.
            full_fence(order::SUBMIT);
            if idle.has_sleeper() {
                self.wanted.fetch_or(1 | SLEEPER, Ordering::Relaxed);
                return false;
            }
        }
        if now & SEEN == 0 {
            self.wanted.fetch_or(SEEN, Ordering::Relaxed);
        }
        true
    }

    /// For the owner: returns whether [`may_keep`](Self::may_keep) has returned `true` and no thief has come by since. If one
    /// has, it searches, and what the owner does takes longer than a part of a search.
    pub(crate) fn was_seen(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) & SEEN != 0
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
        let wanted = self.wanted.fetch_and(RAID, Ordering::Relaxed) & !FLAGS;
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
        if self.count() != 0 && self.wanted.fetch_sub(1, Ordering::Relaxed) & !FLAGS == 1 {
            self.wanted.fetch_and(RAID, Ordering::Relaxed);
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
