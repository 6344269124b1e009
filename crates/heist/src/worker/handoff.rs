//! How cores change hands: from a thread that waits in the middle of a task to a standby thread, and from a worker at
//! the end of a task to a thread whose wait is over.
//!
//! A worker that waits for a task which runs elsewhere must not run other tasks on top of its stack: one of those
//! might wait for something beneath it on the same stack, and would wait for ever. So the worker hands its core,
//! together with the task that it has found, to another thread, and sleeps. `README.md` has the protocol.

use std::collections::VecDeque;
use std::time::Duration;

use crate::order;
use crate::sync::{Arc, AtomicUsize, Instant, Mutex, Ordering, full_fence, lock, try_lock};
use crate::task::Task;
use crate::task::listener::Listener;
use crate::trace::{EventKind, record};
use crate::worker::core::Core;
use crate::worker::retire::Size;

/// This many threads beyond the workers are started as soon as they are needed, or as many as there are workers. A
/// guess: enough for programs in which a few tasks wait at a time.
const RESERVE: usize = if cfg!(shuttle) { 1 } else { 32 };

/// How long a thread keeps its core when the reserve is used up: see [`HandOff::grace`]. A guess, as the next two.
const GRACE: Duration = Duration::from_millis(2);
/// With every thread beyond the reserve, the grace period gets longer by this much,
const GROWTH: Duration = Duration::from_micros(125);
/// up to this.
const LONGEST_GRACE: Duration = Duration::from_millis(20);

/// A standby thread that is not used for this long ends, if there are more than the reserve.
const STANDBY: Duration = Duration::from_secs(5);

/// A core that changes hands, and the task that its new thread runs first.
pub(crate) struct HandedCore {
    pub(crate) core: Box<Core>,
    pub(crate) first: Option<Task>,
}

/// Where a thread receives a core.
pub(crate) struct Mailbox {
    core: Mutex<Option<HandedCore>>,
    pub(super) listener: Arc<Listener>,
    /// The thread's place in the table.
    pub(crate) place: usize,
}

impl Mailbox {
    pub(crate) fn new(listener: Arc<Listener>, place: usize) -> Self {
        Self { core: Mutex::new(None), listener, place }
    }

    /// Takes the core that was put here, if there is one.
    pub(crate) fn take(&self) -> Option<HandedCore> {
        lock(&self.core).take()
    }
}

/// The threads of a pool that wait for a core.
pub(crate) struct HandOff {
    pub(super) threads: Mutex<Threads>,
    /// [`RESUMED`] for each thread in [`Threads::resumed`], and [`RETIRING`] if cores are to be retired (`retire`). A worker
    /// looks at it after every task.
    ///
    /// Ordering: relaxed. It only says when to take the lock.
    calls: AtomicUsize,
    /// Cores whose number is not below this one are to be retired. Written under the lock.
    ///
    /// Ordering: relaxed. It is looked at again under the lock.
    pub(super) in_use: AtomicUsize,
    /// The number of cores.
    pub(super) workers: usize,
    /// The largest number of threads beyond the workers.
    limit: usize,
}

/// One thread that wants a core, in [`HandOff::calls`].
const RESUMED: usize = 2;
/// Says in [`HandOff::calls`] that cores are to be retired.
const RETIRING: usize = 1;

pub(super) struct Threads {
    /// Threads without tasks, which wait for a core.
    standby: Vec<Arc<Mailbox>>,
    /// Threads whose wait is over. They run their task without a core, and want one. The oldest comes first.
    resumed: VecDeque<Arc<Mailbox>>,
    /// The number of threads beyond the workers.
    extra: usize,
    /// The number of cores that waiting threads keep because there are too many threads.
    pub(super) kept: usize,
    /// How many extra threads there ever were. The next one gets this number.
    born: usize,
    /// When the last extra thread was started, in nanoseconds since the pool was started.
    last_start: u64,
    /// Has the pool shut down?
    closed: bool,
    /// The threads with a core that is retired, each with the number of that core.
    pub(super) retired: Vec<(usize, Arc<Mailbox>)>,
    /// How many cores are to be used.
    pub(super) size: Size,
}

/// The threads that wait for a core at some moment, by their places, and what they are counted with. It is only shown.
pub(crate) struct Waiting {
    pub(crate) standby: Vec<usize>,
    pub(crate) resumed: Vec<usize>,
    /// The number of threads beyond the workers.
    pub(crate) extra: usize,
    /// The number of cores that waiting threads keep.
    pub(crate) kept: usize,
    /// The workers whose cores are retired.
    pub(crate) retired: Vec<usize>,
}

/// Why a thread wants to hand off its core.
#[derive(Clone, Copy)]
pub(crate) enum Need {
    /// Other tasks are queued.
    First,
    /// Other tasks are queued, and the thread has kept its core for as long as it was told to.
    Patient,
    /// The thread has too little stack for the task that it waits for.
    Stack,
}

/// The answer to a thread that wants to hand off its core.
#[must_use]
pub(crate) enum Grant {
    /// This standby thread is to get it.
    Standby(Arc<Mailbox>),
    /// The caller must start a thread with this number for it.
    Start(usize),
    /// The caller keeps its core for this long, and asks again.
    NotYet(Duration),
    /// There are as many threads as the pool may have.
    Full,
}

impl HandOff {
    /// Returns the state of a pool with that many cores and at most that many threads.
    pub(crate) fn new(workers: usize, max_threads: usize) -> Self {
        let threads = Threads {
            standby: Vec::new(),
            resumed: VecDeque::new(),
            extra: 0,
            kept: 0,
            born: 0,
            last_start: 0,
            closed: false,
            retired: Vec::new(),
            size: Size::default(),
        };
        Self {
            threads: Mutex::new(threads),
            calls: AtomicUsize::new(0),
            in_use: AtomicUsize::new(workers),
            workers,
            limit: max_threads.saturating_sub(workers),
        }
    }

    /// Returns how many threads beyond the workers are started without delay.
    fn reserve(&self) -> usize {
        RESERVE.max(if cfg!(shuttle) { 0 } else { self.workers })
    }

    /// Returns how long a thread keeps its core when there are that many threads beyond the workers.
    fn grace(&self, extra: usize) -> Duration {
        let beyond = u32::try_from(extra.saturating_sub(self.reserve())).unwrap_or(u32::MAX);
        GROWTH.checked_mul(beyond).map_or(LONGEST_GRACE, |more| LONGEST_GRACE.min(GRACE + more))
    }

    /// Looks for a thread that can take over a core. `now` is the time in nanoseconds since the pool was started.
    pub(crate) fn grant(&self, need: Need, now: u64) -> Grant {
        let mut threads = lock(&self.threads);
        if let Some(standby) = threads.standby.pop() {
            return Grant::Standby(standby);
        }
        let extra = threads.extra;
        if extra >= self.limit || threads.closed {
            return Grant::Full;
        }
        let grace = self.grace(extra);
        if extra >= self.reserve() {
            // Several threads may have been patient at the same time. One thread is started for all of them.
            let since = Duration::from_nanos(now.saturating_sub(threads.last_start));
            let is_soon = match need {
                Need::First => true,
                Need::Patient => since < grace,
                Need::Stack => false,
            };
            if is_soon {
                return Grant::NotYet(grace);
            }
        }
        threads.extra += 1;
        threads.born += 1;
        threads.last_start = now;
        Grant::Start(threads.born)
    }

    /// Returns whether a thread that waits would find another one for its core without delay: one that stands by, or one of
    /// the reserve.
    pub(crate) fn has_thread(&self) -> bool {
        let threads = lock(&self.threads);
        !threads.standby.is_empty() || threads.extra < self.reserve().min(self.limit)
    }

    /// Gives back a grant that is not used.
    pub(crate) fn decline(&self, grant: Grant) {
        let mut threads = lock(&self.threads);
        match grant {
            Grant::Standby(standby) if !threads.closed => threads.standby.push(standby),
            Grant::Standby(standby) => {
                drop(threads);
                standby.listener.notify();
            }
            Grant::Start(_) => threads.extra -= 1,
            Grant::NotYet(_) | Grant::Full => {}
        }
    }

    /// Hands a core to the standby thread that was granted.
    pub(crate) fn hand_over(&self, standby: &Mailbox, handed: HandedCore) {
        *lock(&standby.core) = Some(handed);
        standby.listener.notify();
    }

    /// Notes that the calling thread keeps its core although it waits. If no other core is in use, a retired one is used again
    /// (step T3). Returns `false` if there is none either: then nothing would run any more.
    pub(crate) fn keep_core(&self) -> bool {
        let mut threads = lock(&self.threads);
        if self.has_other_core(&threads) {
            threads.kept += 1;
            return true;
        }
        let Some((_, mailbox)) = threads.retired.pop() else { return false };
        threads.kept += 1;
        self.show(&threads);
        drop(threads);
        mailbox.listener.notify();
        true
    }

    /// Returns whether at least two cores are in use: waiting threads keep their cores and do not use them, and retired cores
    /// are not used.
    pub(super) fn has_other_core(&self, threads: &Threads) -> bool {
        threads.kept + threads.retired.len() + 1 < self.workers
    }

    /// Ends what [`keep_core`](Self::keep_core) began.
    pub(crate) fn use_core(&self) {
        lock(&self.threads).kept -= 1;
    }

    /// Returns whether a worker is to look after its task what it is to do with its core: a thread that runs a task wants one,
    /// or cores are to be retired.
    #[inline(always)]
    pub(crate) fn calls(&self) -> bool {
        self.calls.load(Ordering::Relaxed) != 0
    }

    /// Makes workers look after their tasks what they are to do with their cores.
    pub(crate) fn call(&self) {
        self.calls.store(RETIRING, Ordering::Relaxed);
    }

    /// Returns whether a thread that runs a task wants a core.
    pub(crate) fn is_wanted(&self) -> bool {
        self.calls.load(Ordering::Relaxed) >= RESUMED
    }

    /// Shows to the workers what `threads` says, after it was changed.
    pub(super) fn show(&self, threads: &Threads) {
        let in_use = self.in_use.load(Ordering::Relaxed);
        let retiring = threads.retired.len() < self.workers - in_use;
        let calls = RESUMED * threads.resumed.len() + if retiring { RETIRING } else { 0 };
        self.calls.store(calls, Ordering::Relaxed);
    }

    /// Registers a thread that goes on with its task and wants a core.
    pub(crate) fn want(&self, mailbox: &Arc<Mailbox>) {
        let mut threads = lock(&self.threads);
        threads.resumed.push_back(Arc::clone(mailbox));
        self.show(&threads);
        drop(threads);
        // Before the thread forks and looks at its demand: either it sees that of a worker that is about to sleep, or that
        // worker sees that this thread is busy (step D6).
        full_fence(order::FOUND);
    }

    /// Ends what [`want`](Self::want) began, because the thread waits again or has finished its tasks. Returns the
    /// core that it got meanwhile.
    pub(crate) fn want_no_more(&self, mailbox: &Arc<Mailbox>) -> Option<HandedCore> {
        let mut threads = lock(&self.threads);
        threads.resumed.retain(|other| !Arc::ptr_eq(other, mailbox));
        self.show(&threads);
        mailbox.take()
    }

    /// Gives a core to the thread that has wanted one for the longest time, and returns that thread's place. The
    /// thread takes it when it next calls into the pool. The core comes back if no thread wants one.
    pub(crate) fn give_back(&self, core: Box<Core>) -> Result<usize, Box<Core>> {
        let mut threads = lock(&self.threads);
        let Some(mailbox) = threads.resumed.pop_front() else { return Err(core) };
        self.show(&threads);
        *lock(&mailbox.core) = Some(HandedCore { core, first: None });
        Ok(mailbox.place)
    }

    /// Waits for a core, as a thread that has none and has finished its tasks. Returns `None` if the thread should
    /// end: because the pool does, or because it was not needed for a while.
    pub(crate) fn stand_by(&self, mailbox: &Arc<Mailbox>) -> Option<HandedCore> {
        let is_one_of_many = {
            let mut threads = lock(&self.threads);
            if threads.closed {
                threads.extra = threads.extra.saturating_sub(1);
                return mailbox.take();
            }
            threads.standby.push(Arc::clone(mailbox));
            threads.standby.len() > self.reserve()
        };
        record(EventKind::Park);
        let start = Instant::now();
        let handed = loop {
            if let Some(handed) = mailbox.take() {
                debug_assert!(
                    lock(&self.threads).standby.iter().all(|other| !Arc::ptr_eq(other, mailbox)),
                    "only a thread that was taken off the list is handed a core"
                );
                break Some(handed);
            }
            let sleeper = mailbox.listener.sleeper();
            if is_one_of_many {
                sleeper.park_for(STANDBY);
            } else {
                sleeper.park();
            }
            let mut threads = lock(&self.threads);
            let is_over = is_one_of_many && (cfg!(shuttle) || start.elapsed() >= STANDBY);
            let mut standby = threads.standby.iter();
            if threads.closed || (is_over && standby.any(|other| Arc::ptr_eq(other, mailbox))) {
                threads.standby.retain(|other| !Arc::ptr_eq(other, mailbox));
                let handed = mailbox.take();
                if handed.is_none() {
                    threads.extra = threads.extra.saturating_sub(1);
                }
                break handed;
            }
        };
        record(EventKind::Unpark);
        handed
    }

    /// Returns which threads wait for a core, unless another thread holds the lock.
    pub(crate) fn waiting(&self) -> Option<Waiting> {
        let threads = try_lock(&self.threads)?;
        let place = |mailbox: &Arc<Mailbox>| mailbox.place;
        Some(Waiting {
            standby: threads.standby.iter().map(place).collect(),
            resumed: threads.resumed.iter().map(place).collect(),
            extra: threads.extra,
            kept: threads.kept,
            retired: threads.retired.iter().map(|(worker, _)| *worker).collect(),
        })
    }

    /// Ends the standby threads, because the pool has shut down.
    pub(crate) fn close(&self) {
        let mut threads = lock(&self.threads);
        threads.closed = true;
        for standby in std::mem::take(&mut threads.standby) {
            standby.listener.notify();
        }
    }
}
