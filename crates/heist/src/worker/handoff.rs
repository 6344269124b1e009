//! Threads in waiting, for the cores of those who must wait in the middle of a task.
//!
//! A worker that waits for a task which is running elsewhere must not run others on top of its
//! stack: one of those might in turn wait for something that lies beneath it, and would wait for
//! ever. So it gives its core, with the task that it has found, to another thread, and sleeps.

use crate::queues::Queues;
use crate::sync::{Arc, Mutex, lock};
use crate::task::Task;
use crate::task::listener::Listener;
use crate::trace::{EventKind, record};
use crate::worker::core::Core;

/// With so many threads beyond the workers, a worker that waits keeps its core and sleeps with it, as
/// long as another core is in use: the last one is handed on until the system refuses. A guess: far
/// more than a program that waits inside tasks with some sense, far fewer than a system refuses.
const MANY: usize = 512;

/// What a thread does next: take this core and run this task first.
pub(crate) struct HandedCore<Q: Queues> {
    pub(crate) core: Box<Core<Q>>,
    pub(crate) first: Option<Task>,
}

/// Where a thread waits for its next shift.
struct Standby<Q: Queues> {
    handed: Mutex<Option<HandedCore<Q>>>,
    listener: Arc<Listener>,
}

/// The threads in waiting.
pub(crate) struct HandOff<Q: Queues>(Mutex<StandbyThreads<Q>>);

struct StandbyThreads<Q: Queues> {
    waiting: Vec<Arc<Standby<Q>>>,
    /// Threads beyond the workers.
    extra: usize,
    /// Seats that are kept by threads that wait, because there are too many threads.
    kept: usize,
    /// How many there ever were: the next one's number.
    born: usize,
    /// Has the pool come to its end?
    closed: bool,
}

/// Who takes a shift.
#[must_use]
pub(crate) enum Accepted<Q: Queues> {
    /// A thread that was waiting.
    Waiting,
    /// Nobody yet: a thread is to be started for it, with this number.
    Start(HandedCore<Q>, usize),
    /// Nobody: there are too many threads. It is to be kept until [`HandOff::resume`].
    Refused(HandedCore<Q>),
}

impl<Q: Queues> HandOff<Q> {
    pub(crate) fn new() -> Self {
        let spares =
            StandbyThreads { waiting: Vec::new(), extra: 0, kept: 0, born: 0, closed: false };
        Self(Mutex::new(spares))
    }

    /// There are as many cores as `workers`.
    pub(crate) fn hand_over(&self, handed: HandedCore<Q>, workers: usize) -> Accepted<Q> {
        let mut spares = lock(&self.0);
        if let Some(post) = spares.waiting.pop() {
            // Before the lock is given up: a thread that is off the list and sees the pool closed ends.
            *lock(&post.handed) = Some(handed);
            drop(spares);
            post.listener.notify();
            return Accepted::Waiting;
        }
        if spares.extra >= MANY && spares.kept + 1 < workers {
            spares.kept += 1;
            return Accepted::Refused(handed);
        }
        spares.extra += 1;
        spares.born += 1;
        Accepted::Start(handed, spares.born)
    }

    /// Are there so many threads that more should not be asked for without need?
    pub(crate) fn is_crowded(&self) -> bool {
        lock(&self.0).extra >= MANY
    }

    /// The thread that was to be started could not be. Is the core kept, then? Not if it is the last one in use: whoever has
    /// that must not sleep.
    pub(crate) fn not_started(&self, workers: usize) -> bool {
        let mut spares = lock(&self.0);
        spares.extra -= 1;
        let is_kept = spares.kept + 1 < workers;
        spares.kept += usize::from(is_kept);
        is_kept
    }

    /// A core that was kept is in use again.
    pub(crate) fn resume(&self) {
        lock(&self.0).kept -= 1;
    }

    /// For a thread that has lost its core and finished its tasks: waits for another shift. `None`:
    /// the thread should end, because the pool does, or because there are enough (`keep`).
    pub(crate) fn wait(&self, listener: &Arc<Listener>, keep: usize) -> Option<HandedCore<Q>> {
        let post = Arc::new(Standby { handed: Mutex::new(None), listener: Arc::clone(listener) });
        {
            let mut spares = lock(&self.0);
            if spares.closed || spares.waiting.len() >= keep {
                // A thread less, be it this one or the one that has its core.
                spares.extra = spares.extra.saturating_sub(1);
                return None;
            }
            spares.waiting.push(Arc::clone(&post));
        }
        record(EventKind::Park);
        let handed = loop {
            let handed = lock(&post.handed).take();
            if handed.is_some() || lock(&self.0).closed {
                break handed;
            }
            post.listener.sleeper().park();
        };
        record(EventKind::Unpark);
        handed
    }

    /// The pool has come to its end: nobody will need them.
    pub(crate) fn close(&self) {
        let mut spares = lock(&self.0);
        spares.closed = true;
        for post in std::mem::take(&mut spares.waiting) {
            post.listener.notify();
        }
    }
}
