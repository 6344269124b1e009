//! Standby threads, which take over the cores of threads that wait in the middle of a task.
//!
//! A worker that waits for a task which runs elsewhere must not run other tasks on top of its stack: one of those
//! might wait for something beneath it on the same stack, and would wait for ever. So the worker hands its core,
//! together with the task that it has found, to another thread, and sleeps.

use crate::sync::{Arc, Mutex, lock};
use crate::task::Task;
use crate::task::listener::Listener;
use crate::trace::{EventKind, record};
use crate::worker::core::Core;
use crate::worker::policy::PoolQueues;

/// With this many threads beyond the workers, a worker that waits keeps its core and sleeps with it, as long as
/// another core is in use. The last core in use is handed off until the system refuses a thread. A guess: far more
/// than a program needs that waits inside tasks with some care, and far fewer than the number that a system refuses.
const SOFT_LIMIT: usize = 512;

/// A core that changes hands, and the task that its new thread runs first.
pub(crate) struct HandedCore<Q: PoolQueues> {
    pub(crate) core: Box<Core<Q>>,
    pub(crate) first: Option<Task>,
}

/// A thread that waits for a core.
struct Standby<Q: PoolQueues> {
    handed: Mutex<Option<HandedCore<Q>>>,
    listener: Arc<Listener>,
}

/// The standby threads of a pool.
pub(crate) struct HandOff<Q: PoolQueues>(Mutex<StandbyThreads<Q>>);

struct StandbyThreads<Q: PoolQueues> {
    waiting: Vec<Arc<Standby<Q>>>,
    /// The number of threads beyond the workers.
    extra: usize,
    /// The number of cores that sleeping threads keep because there are too many threads.
    kept: usize,
    /// How many extra threads there ever were. The next one gets this number.
    born: usize,
    /// Has the pool shut down?
    closed: bool,
}

/// The result of an attempt to hand off a core.
#[must_use]
pub(crate) enum HandOffResult<Q: PoolQueues> {
    /// A standby thread has it.
    Accepted,
    /// The caller must start a thread with this number for it.
    Start(HandedCore<Q>, usize),
    /// There are too many threads. The caller keeps it until it calls [`HandOff::core_in_use_again`].
    Refused(HandedCore<Q>),
}

impl<Q: PoolQueues> HandOff<Q> {
    pub(crate) fn new() -> Self {
        let threads =
            StandbyThreads { waiting: Vec::new(), extra: 0, kept: 0, born: 0, closed: false };
        Self(Mutex::new(threads))
    }

    /// Hands a core to a standby thread, if there is one. `workers` is the number of cores.
    pub(crate) fn hand_over(&self, handed: HandedCore<Q>, workers: usize) -> HandOffResult<Q> {
        let mut threads = lock(&self.0);
        if let Some(standby) = threads.waiting.pop() {
            // Stored before the lock is released: a thread that is off the list and finds the pool closed ends.
            *lock(&standby.handed) = Some(handed);
            drop(threads);
            standby.listener.notify();
            return HandOffResult::Accepted;
        }
        if threads.extra >= SOFT_LIMIT && threads.kept + 1 < workers {
            threads.kept += 1;
            return HandOffResult::Refused(handed);
        }
        threads.extra += 1;
        threads.born += 1;
        HandOffResult::Start(handed, threads.born)
    }

    /// Returns whether there are so many threads that no more should be started without need.
    pub(crate) fn is_crowded(&self) -> bool {
        lock(&self.0).extra >= SOFT_LIMIT
    }

    /// Notes that the thread for a [`HandOffResult::Start`] could not be started. Returns whether the caller may sleep
    /// with the core. It may not if that is the last core in use, because nothing would run any more.
    pub(crate) fn not_started(&self, workers: usize) -> bool {
        let mut threads = lock(&self.0);
        threads.extra -= 1;
        let is_kept = threads.kept + 1 < workers;
        threads.kept += usize::from(is_kept);
        is_kept
    }

    /// Notes that a core which a sleeping thread has kept is in use again.
    pub(crate) fn core_in_use_again(&self) {
        lock(&self.0).kept -= 1;
    }

    /// Waits for a core, as a thread that has lost its own and finished its tasks. Returns `None` if the thread should
    /// end: because the pool does, or because `keep` threads are on standby already.
    pub(crate) fn wait(&self, listener: &Arc<Listener>, keep: usize) -> Option<HandedCore<Q>> {
        let standby =
            Arc::new(Standby { handed: Mutex::new(None), listener: Arc::clone(listener) });
        {
            let mut threads = lock(&self.0);
            if threads.closed || threads.waiting.len() >= keep {
                // There is one extra thread less: this one, or the one that has its core and now takes its place.
                threads.extra = threads.extra.saturating_sub(1);
                return None;
            }
            threads.waiting.push(Arc::clone(&standby));
        }
        record(EventKind::Park);
        let handed = loop {
            let handed = lock(&standby.handed).take();
            if handed.is_some() || lock(&self.0).closed {
                break handed;
            }
            standby.listener.sleeper().park();
        };
        record(EventKind::Unpark);
        handed
    }

    /// Ends the standby threads, because the pool has shut down.
    pub(crate) fn close(&self) {
        let mut threads = lock(&self.0);
        threads.closed = true;
        for standby in std::mem::take(&mut threads.waiting) {
            standby.listener.notify();
        }
    }
}
