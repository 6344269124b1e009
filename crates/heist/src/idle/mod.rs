//! Which workers search and sleep, which of them is woken for new work, and when the pool ends.
//!
//! `README.md` has the protocol with its argument. The comments here name its steps.

use crate::order;
use crate::sync::{Arc, AtomicU64, Mutex, Ordering, Padded, full_fence, lock};
use crate::task::listener::Listener;

/// One sleeping worker. The lowest 16 bits of the word count the sleepers.
const SLEEPER: u64 = 1;
/// One worker that searches for work. The next 16 bits count the searchers.
const SEARCHER: u64 = 1 << 16;
/// One thread that is away: it has unfinished tasks on its stack, and sleeps or has handed its core to another
/// thread. A task in a broadcast queue counts as one as well. The next 30 bits count them. The pool does not end
/// while the count is not zero.
const AWAY: u64 = 1 << 32;
/// The pool accepts no more tasks from outside.
const STOPPING: u64 = 1 << 62;
/// The pool has ended: all workers sleep, and there is no more work.
const ENDED: u64 = 1 << 63;

/// The largest number of workers: the counts above have 16 bits.
pub(crate) const MAX_WORKERS: usize = 0xFFFF;

/// One value of the word: the counts and flags at some moment.
#[derive(Clone, Copy)]
struct Word(u64);

impl Word {
    fn sleepers(self) -> u64 {
        self.0 & (SEARCHER - 1)
    }

    fn searchers(self) -> u64 {
        (self.0 & (AWAY - 1)) / SEARCHER
    }

    fn away(self) -> u64 {
        (self.0 & (STOPPING - 1)) / AWAY
    }

    fn has(self, flag: u64) -> bool {
        self.0 & flag != 0
    }
}

/// The idle state of a pool: which workers sleep, how many search, and whether the pool is stopping or has ended.
pub(crate) struct Idle {
    /// The counts and flags. The number of sleepers and the flags change only under the lock of `asleep`. The number
    /// of searchers and the number of threads that are away also change without it.
    ///
    /// Ordering: relaxed, everywhere. The fences and that lock order what must be ordered.
    word: Padded<AtomicU64>,
    /// The sleepers. The one that fell asleep last is at the end and is woken first, because its cache is the warmest.
    asleep: Mutex<Vec<Arc<Listener>>>,
    /// The number of workers that must sleep before the pool ends: all but attached threads.
    workers: u64,
    /// The largest number of workers that may start to search: half of the workers and at least one, or no limit.
    max_searchers: u64,
    /// Does a push rely on a searcher that finds the task? If not, every push wakes a sleeper, and workers do not
    /// search.
    relies_on_searchers: bool,
}

/// Why a worker does not sleep any more.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WakeReason {
    /// The worker itself found work, or what it waits for is done. It is now a searcher.
    Early,
    /// Another thread has woken it to search for work. It is now a searcher.
    Called,
    /// The pool has ended.
    Ended,
    /// The pool has ended, and this worker has detected it. It must sweep (step E4).
    EndedHere,
}

/// What a thread that has pushed a task learns from the idle state.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Announced {
    /// No sleeper had to be woken: a searcher will find the task, or all workers are busy.
    Quiet,
    /// A sleeper was woken.
    Called,
    /// The pool has ended. A thread that pushed from outside must sweep (step E4).
    Ended,
}

impl Idle {
    /// Returns the state of a pool in which no worker sleeps. `relies_on_searchers` is `Queues::PATIENT`.
    pub(crate) fn new(workers: usize, relies_on_searchers: bool) -> Self {
        debug_assert!(workers <= MAX_WORKERS, "sleepers and searchers are counted in 16 bits");
        Self {
            word: Padded(AtomicU64::new(0)),
            asleep: Mutex::new(Vec::with_capacity(workers)),
            workers: workers as u64,
            max_searchers: (workers as u64 / 2).max(1),
            relies_on_searchers,
        }
    }

    /// Lets all workers search at once.
    pub(crate) fn where_all_search(self) -> Self {
        Self { max_searchers: u64::MAX, ..self }
    }

    fn word(&self) -> Word {
        Word(self.word.load(Ordering::Relaxed))
    }

    /// Wakes a sleeper if needed, after a task was pushed to a queue (steps P2 to P4).
    #[inline]
    pub(crate) fn work_added(&self) -> Announced {
        full_fence(order::SUBMIT);
        let now = self.word();
        if now.has(ENDED) {
            return Announced::Ended;
        }
        if !self.should_wake(now) {
            return Announced::Quiet;
        }
        if self.wake_one() { Announced::Called } else { Announced::Quiet }
    }

    /// Returns whether a worker searches for work.
    pub(crate) fn has_searcher(&self) -> bool {
        self.word().searchers() > 0
    }

    /// Returns whether a worker sleeps.
    pub(crate) fn has_sleeper(&self) -> bool {
        self.word().sleepers() > 0
    }

    /// Returns whether at least one of that many workers neither sleeps nor searches. A worker that stops searching
    /// after this call sees what the caller has written before it (step D6).
    pub(crate) fn is_anybody_busy(&self, workers: usize) -> bool {
        full_fence(order::SLEEP);
        let now = self.word();
        now.sleepers() + now.searchers() < workers as u64
    }

    /// Returns whether no worker sleeps or searches.
    pub(crate) fn all_busy(&self) -> bool {
        let now = self.word();
        now.sleepers() == 0 && now.searchers() == 0
    }

    /// Returns whether a new task requires that a sleeper is woken.
    fn should_wake(&self, now: Word) -> bool {
        now.sleepers() > 0 && (now.searchers() == 0 || !self.relies_on_searchers)
    }

    /// Wakes one sleeper and counts it as a searcher, unless a worker searches by now (step P4). Returns whether it
    /// did.
    #[cold]
    #[inline(never)]
    fn wake_one(&self) -> bool {
        let mut asleep = lock(&self.asleep);
        if !self.should_wake(self.word()) {
            return false;
        }
        let Some(listener) = asleep.pop() else { return false };
        self.word.fetch_add(SEARCHER.wrapping_sub(SLEEPER), Ordering::Relaxed);
        listener.sleeper().mark_called();
        drop(asleep);
        listener.notify();
        true
    }

    /// Wakes all sleepers, after a task was pushed to each worker's broadcast queue (step P5). Returns how many it
    /// has woken.
    pub(crate) fn broadcast_added(&self) -> u64 {
        full_fence(order::SUBMIT);
        if self.word().sleepers() == 0 {
            return 0;
        }
        let mut asleep = lock(&self.asleep);
        let count = asleep.len() as u64;
        self.word.fetch_add(SEARCHER.wrapping_sub(SLEEPER).wrapping_mul(count), Ordering::Relaxed);
        for listener in asleep.drain(..) {
            listener.sleeper().mark_called();
            listener.notify();
        }
        count
    }

    /// Counts the calling worker as a searcher, if one more may search. Returns whether it did.
    pub(crate) fn start_search(&self) -> bool {
        let mut now = self.word();
        loop {
            if !self.relies_on_searchers || now.searchers() >= self.max_searchers {
                return false;
            }
            let exchanged = self.word.compare_exchange_weak(
                now.0,
                now.0 + SEARCHER,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            match exchanged {
                Ok(_) => return true,
                Err(found) => now = Word(found),
            }
        }
    }

    /// Ends the search of the calling worker, which has found a task or has what it waited for (steps F1 to F3).
    /// `has_work` says whether there is a task in a queue. Returns whether this has woken another worker.
    pub(crate) fn leave_search(&self, has_work: impl FnOnce() -> bool) -> bool {
        let before = Word(self.word.fetch_sub(SEARCHER, Ordering::Relaxed));
        full_fence(order::FOUND);
        if before.searchers() > 1 || before.sleepers() == 0 {
            return false;
        }
        has_work() && self.wake_one()
    }

    /// Sleeps until the worker is called, the pool ends, or `done` returns `true` (steps S1 to S5). Does not sleep if
    /// `has_work` finds work. With `searching`, the caller was a searcher, and is none while it sleeps. The thread
    /// that makes `done` true notifies `me`. `parking` is called before the thread parks for the first time.
    pub(crate) fn sleep(
        &self,
        me: &Arc<Listener>,
        searching: bool,
        has_work: impl Fn() -> bool,
        done: impl Fn() -> bool,
        parking: impl FnOnce(),
    ) -> WakeReason {
        let sleeper = me.sleeper();
        {
            let mut asleep = lock(&self.asleep);
            if self.word().has(ENDED) {
                return WakeReason::Ended;
            }
            sleeper.prepare_sleep();
            asleep.push(Arc::clone(me));
            let change = if searching { SLEEPER.wrapping_sub(SEARCHER) } else { SLEEPER };
            self.word.fetch_add(change, Ordering::Relaxed);
        }
        full_fence(order::SLEEP);
        if has_work() || done() {
            return self.leave_sleep(me);
        }
        if self.word().has(STOPPING) && self.end_if_all_sleep(&has_work) {
            return WakeReason::EndedHere;
        }
        parking();
        while !sleeper.is_called() {
            if done() {
                return self.leave_sleep(me);
            }
            sleeper.park();
        }
        self.leave_sleep(me)
    }

    /// Ends the sleep of the calling worker, whether it was called or not (step S4). It is a searcher in both cases,
    /// because a thread that pushed a task may have relied on the searcher that it was before.
    fn leave_sleep(&self, me: &Arc<Listener>) -> WakeReason {
        let mut asleep = lock(&self.asleep);
        match asleep.iter().rposition(|other| Arc::ptr_eq(other, me)) {
            Some(place) => {
                asleep.remove(place);
                self.word.fetch_add(SEARCHER.wrapping_sub(SLEEPER), Ordering::Relaxed);
                WakeReason::Early
            }
            None if self.word().has(ENDED) => WakeReason::Ended,
            None => WakeReason::Called,
        }
    }

    /// Counts a thread as away: it has unfinished tasks on its stack, and is about to sleep or to hand its core to
    /// another thread. A task that is pushed to a broadcast queue is counted as well.
    pub(crate) fn enter_away(&self) {
        self.word.fetch_add(AWAY, Ordering::Relaxed);
    }

    /// Ends what [`enter_away`](Self::enter_away) began, for a thread that has its core, or for a task that was taken
    /// from a broadcast queue.
    pub(crate) fn leave_away(&self) {
        self.word.fetch_sub(AWAY, Ordering::Relaxed);
    }

    /// Ends what [`enter_away`](Self::enter_away) began, for a thread that has finished its tasks and has no core
    /// (step E2). Returns `true` if the pool has ended, in which case the caller must sweep.
    pub(crate) fn retire(&self, has_work: impl FnOnce() -> bool) -> bool {
        let mut asleep = lock(&self.asleep);
        self.word.fetch_sub(AWAY, Ordering::Relaxed);
        self.try_end(&mut asleep, has_work)
    }

    /// Counts that many workers as sleepers, because no thread is these workers yet, or ever will be.
    pub(crate) fn add_missing(&self, workers: usize) {
        let _asleep = lock(&self.asleep);
        self.word.fetch_add(SLEEPER * workers as u64, Ordering::Relaxed);
    }

    /// Notes that a thread has become one of the workers that [`add_missing`](Self::add_missing) has counted.
    pub(crate) fn arrive(&self) {
        let _asleep = lock(&self.asleep);
        self.word.fetch_sub(SLEEPER, Ordering::Relaxed);
    }

    /// Begins shutdown: from now on the pool accepts no tasks from outside (step E1). Returns `true` if the pool has
    /// ended, in which case the caller must sweep.
    pub(crate) fn stop(&self, has_work: impl FnOnce() -> bool) -> bool {
        let mut asleep = lock(&self.asleep);
        self.word.fetch_or(STOPPING, Ordering::Relaxed);
        self.try_end(&mut asleep, has_work)
    }

    fn end_if_all_sleep(&self, has_work: impl FnOnce() -> bool) -> bool {
        let mut asleep = lock(&self.asleep);
        self.try_end(&mut asleep, has_work)
    }

    /// Ends the pool and wakes all sleepers, if the pool is stopping and there is nothing left to do (step E3). The
    /// caller holds the lock. Returns whether the pool has ended by this call.
    fn try_end(&self, asleep: &mut Vec<Arc<Listener>>, has_work: impl FnOnce() -> bool) -> bool {
        let now = self.word();
        let all_sleep = now.sleepers() == self.workers && now.away() == 0;
        if !now.has(STOPPING) || now.has(ENDED) || !all_sleep || has_work() {
            return false;
        }
        self.word.fetch_or(ENDED, Ordering::Relaxed);
        full_fence(order::END);
        for listener in asleep.drain(..) {
            listener.sleeper().mark_called();
            listener.notify();
        }
        true
    }

    /// Returns whether shutdown has begun.
    #[inline]
    pub(crate) fn is_stopping(&self) -> bool {
        self.word().has(STOPPING)
    }
}
