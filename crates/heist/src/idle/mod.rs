//! What a worker does with nothing to do, and who wakes it. `README.md` has the protocol with its
//! argument; the comments here name its steps.

use crate::order;
use crate::sync::{Arc, AtomicU64, Mutex, Ordering, Padded, full_fence, lock};
use crate::task::listener::Listener;

/// One sleeping worker. The lowest 16 bits count them.
const SLEEPER: u64 = 1;
/// One worker that looks for work: the next 16 bits.
const SEARCHER: u64 = 1 << 16;
/// One thread with unfinished tasks on its stack that sleeps, or has given its core away: the next
/// 30 bits. While there is one, the pool has not come to its end.
const AWAY: u64 = 1 << 32;
/// The pool takes in nothing more from outside.
const STOPPING: u64 = 1 << 62;
/// The pool has come to its end.
const ENDED: u64 = 1 << 63;

/// The most workers: what the counts above can count.
pub(crate) const MAX_WORKERS: usize = 0xFFFF;

/// The counts and flags of a moment.
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

    fn is(self, flag: u64) -> bool {
        self.0 & flag != 0
    }
}

/// Who sleeps, who searches, and whether the pool is coming to its end.
pub(crate) struct Idle {
    /// Sleepers change under the lock of `asleep`, and so do the flags; searchers come and go, and
    /// threads step aside, without it.
    ///
    /// Ordering: relaxed, everywhere. What must be ordered is, by the fences and by that lock.
    word: Padded<AtomicU64>,
    /// The sleepers, the latest last: it is called first, its cache is the warmest.
    asleep: Mutex<Vec<Arc<Listener>>>,
    workers: u64,
    /// So many may search at once: half of the workers, and always one, unless it is said otherwise.
    most: u64,
    /// Do searchers count? If not, every submission calls a sleeper.
    patient: bool,
}

/// Why a worker is up again.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WakeReason {
    /// There was something to do after all. It is a searcher.
    Early,
    /// Somebody has called it. It is a searcher.
    Called,
    /// The pool has come to its end.
    Ended,
    /// The pool has come to its end, and this worker was the one to find out. It must sweep.
    EndedHere,
}

/// What a submitter has found.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Announced {
    /// Somebody will look, or all are busy.
    Quiet,
    /// A sleeper has been called.
    Called,
    /// The pool has come to its end. Whoever submitted from outside must sweep.
    Ended,
}

impl Idle {
    pub(crate) fn new(workers: usize, patient: bool) -> Self {
        debug_assert!(workers <= MAX_WORKERS, "counted in 16 bits");
        Self {
            word: Padded(AtomicU64::new(0)),
            asleep: Mutex::new(Vec::with_capacity(workers)),
            workers: workers as u64,
            most: (workers as u64 / 2).max(1),
            patient,
        }
    }

    /// Likewise, where all may search.
    pub(crate) fn where_all_search(self) -> Self {
        Self { most: u64::MAX, ..self }
    }

    fn word(&self) -> Word {
        Word(self.word.load(Ordering::Relaxed))
    }

    /// Something was put into a queue (steps P2 to P4).
    #[inline]
    pub(crate) fn work_added(&self) -> Announced {
        full_fence(order::SUBMIT);
        let now = self.word();
        if now.is(ENDED) {
            return Announced::Ended;
        }
        if !self.wants_call(now) {
            return Announced::Quiet;
        }
        if self.call_one() { Announced::Called } else { Announced::Quiet }
    }

    /// Is somebody looking for work?
    pub(crate) fn has_searcher(&self) -> bool {
        self.word().searchers() > 0
    }

    /// Does somebody sleep?
    pub(crate) fn has_sleeper(&self) -> bool {
        self.word().sleepers() > 0
    }

    /// Of so many threads, is there one that neither sleeps nor searches? Whoever ceases to search later sees what the
    /// caller has written before.
    pub(crate) fn is_anybody_busy(&self, threads: usize) -> bool {
        full_fence(order::SLEEP);
        let now = self.word();
        now.sleepers() + now.searchers() < threads as u64
    }

    /// Does nobody sleep or search?
    pub(crate) fn all_busy(&self) -> bool {
        let now = self.word();
        now.sleepers() == 0 && now.searchers() == 0
    }

    fn wants_call(&self, now: Word) -> bool {
        now.sleepers() > 0 && (now.searchers() == 0 || !self.patient)
    }

    /// Wakes one sleeper as a searcher, unless somebody is searching by now (step P4).
    #[cold]
    #[inline(never)]
    fn call_one(&self) -> bool {
        let mut asleep = lock(&self.asleep);
        if !self.wants_call(self.word()) {
            return false;
        }
        let Some(listener) = asleep.pop() else { return false };
        self.word.fetch_add(SEARCHER.wrapping_sub(SLEEPER), Ordering::Relaxed);
        listener.sleeper().mark_called();
        drop(asleep);
        listener.notify();
        true
    }

    /// Something was put into everybody's mailbox, after which this is called (step P5). How many sleepers has it
    /// woken?
    pub(crate) fn broadcast_added(&self) -> u64 {
        full_fence(order::SUBMIT);
        if self.word().sleepers() == 0 {
            return 0;
        }
        let mut asleep = lock(&self.asleep);
        let called = asleep.len() as u64;
        self.word.fetch_add(SEARCHER.wrapping_sub(SLEEPER).wrapping_mul(called), Ordering::Relaxed);
        for listener in asleep.drain(..) {
            listener.sleeper().mark_called();
            listener.notify();
        }
        called
    }

    /// May one more search?
    pub(crate) fn start_search(&self) -> bool {
        let mut now = self.word();
        loop {
            if !self.patient || now.searchers() >= self.most {
                return false;
            }
            let more = self.word.compare_exchange_weak(
                now.0,
                now.0 + SEARCHER,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            match more {
                Ok(_) => return true,
                Err(found) => now = Word(found),
            }
        }
    }

    /// A searcher has found something, or has better things to do (steps F1 to F3). Has it called
    /// another one?
    pub(crate) fn leave_search(&self, any: impl FnOnce() -> bool) -> bool {
        let before = Word(self.word.fetch_sub(SEARCHER, Ordering::Relaxed));
        full_fence(order::FOUND);
        if before.searchers() > 1 || before.sleepers() == 0 {
            return false;
        }
        any() && self.call_one()
    }

    /// Sleeps until called, until the end, or until `done` (of which `me` is told by others), unless
    /// there is `any` work. A searcher is none any more (steps S1 to S5).
    pub(crate) fn sleep(
        &self,
        me: &Arc<Listener>,
        searching: bool,
        any: impl Fn() -> bool,
        done: impl Fn() -> bool,
        parking: impl FnOnce(),
    ) -> WakeReason {
        let sleeper = me.sleeper();
        {
            let mut asleep = lock(&self.asleep);
            if self.word().is(ENDED) {
                return WakeReason::Ended;
            }
            sleeper.prepare_sleep();
            asleep.push(Arc::clone(me));
            let change = if searching { SLEEPER.wrapping_sub(SEARCHER) } else { SLEEPER };
            self.word.fetch_add(change, Ordering::Relaxed);
        }
        full_fence(order::SLEEP);
        if any() || done() {
            return self.wake_reason(me);
        }
        if self.word().is(STOPPING) && self.end_if_all_sleep(&any) {
            return WakeReason::EndedHere;
        }
        parking();
        while !sleeper.is_called() {
            if done() {
                return self.wake_reason(me);
            }
            sleeper.park();
        }
        self.wake_reason(me)
    }

    /// Gets up, called or not (step S4). As a searcher either way: somebody may have relied on the
    /// searcher that it was before.
    fn wake_reason(&self, me: &Arc<Listener>) -> WakeReason {
        let mut asleep = lock(&self.asleep);
        match asleep.iter().rposition(|other| Arc::ptr_eq(other, me)) {
            Some(place) => {
                asleep.remove(place);
                self.word.fetch_add(SEARCHER.wrapping_sub(SLEEPER), Ordering::Relaxed);
                WakeReason::Early
            }
            None if self.word().is(ENDED) => WakeReason::Ended,
            None => WakeReason::Called,
        }
    }

    /// A thread with unfinished tasks on its stack is going to sleep, or to give its core away.
    pub(crate) fn enter_away(&self) {
        self.word.fetch_add(AWAY, Ordering::Relaxed);
    }

    /// The opposite, for a thread that has its core.
    pub(crate) fn leave_away(&self) {
        self.word.fetch_sub(AWAY, Ordering::Relaxed);
    }

    /// The opposite, for a thread that has finished its tasks and has no core (step E2). `true`: the
    /// pool has come to its end, and the caller must sweep.
    pub(crate) fn retire(&self, any: impl FnOnce() -> bool) -> bool {
        let mut asleep = lock(&self.asleep);
        self.word.fetch_sub(AWAY, Ordering::Relaxed);
        self.end(&mut asleep, any)
    }

    /// So many workers have not come yet, or never will: for the end they count as asleep.
    pub(crate) fn add_missing(&self, workers: usize) {
        let _asleep = lock(&self.asleep);
        self.word.fetch_add(SLEEPER * workers as u64, Ordering::Relaxed);
    }

    /// One of those has come.
    pub(crate) fn arrive(&self) {
        let _asleep = lock(&self.asleep);
        self.word.fetch_sub(SLEEPER, Ordering::Relaxed);
    }

    /// From now on nothing is taken in from outside (step E1). `true`: the pool has come to its
    /// end, and the caller must sweep.
    pub(crate) fn stop(&self, any: impl FnOnce() -> bool) -> bool {
        let mut asleep = lock(&self.asleep);
        self.word.fetch_or(STOPPING, Ordering::Relaxed);
        self.end(&mut asleep, any)
    }

    fn end_if_all_sleep(&self, any: impl FnOnce() -> bool) -> bool {
        let mut asleep = lock(&self.asleep);
        self.end(&mut asleep, any)
    }

    /// Under the lock: is this the end? Then everybody is called (step E3).
    fn end(&self, asleep: &mut Vec<Arc<Listener>>, any: impl FnOnce() -> bool) -> bool {
        let now = self.word();
        let all_sleep = now.sleepers() == self.workers && now.away() == 0;
        if !now.is(STOPPING) || now.is(ENDED) || !all_sleep || any() {
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

    #[inline]
    pub(crate) fn is_stopping(&self) -> bool {
        self.word().is(STOPPING)
    }
}
