//! Threads in waiting, for the seats of those who must wait in the middle of a task.
//!
//! A worker that waits for a task which is running elsewhere must not run others on top of its
//! stack: one of those might in turn wait for something that lies beneath it, and would wait for
//! ever. So it gives its seat, with the task that it has found, to another thread, and sleeps.

use crate::listener::Listener;
use crate::queues::Queues;
use crate::seat::Seat;
use crate::sync::{Arc, Mutex, lock};
use crate::task::Task;
use crate::trace::{EventKind, record};

/// With so many threads beyond the workers, a worker that waits keeps its seat and sleeps with it, as
/// long as another seat is in use: the last one is handed on until the system refuses. A guess: far
/// more than a program that waits inside tasks with some sense, far fewer than a system refuses.
const MANY: usize = 512;

/// What a thread does next: take this seat and run this task first.
pub(crate) struct Shift<Q: Queues> {
    pub(crate) seat: Box<Seat<Q>>,
    pub(crate) first: Option<Task>,
}

/// Where a thread waits for its next shift.
struct Post<Q: Queues> {
    shift: Mutex<Option<Shift<Q>>>,
    listener: Arc<Listener>,
}

/// The threads in waiting.
pub(crate) struct Relief<Q: Queues>(Mutex<Spares<Q>>);

struct Spares<Q: Queues> {
    waiting: Vec<Arc<Post<Q>>>,
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
pub(crate) enum Taken<Q: Queues> {
    /// A thread that was waiting.
    Waiting,
    /// Nobody yet: a thread is to be started for it, with this number.
    Start(Shift<Q>, usize),
    /// Nobody: there are too many threads. It is to be kept until [`Relief::resume`].
    Refused(Shift<Q>),
}

impl<Q: Queues> Relief<Q> {
    pub(crate) fn new() -> Self {
        let spares = Spares { waiting: Vec::new(), extra: 0, kept: 0, born: 0, closed: false };
        Self(Mutex::new(spares))
    }

    /// There are as many seats as `workers`.
    pub(crate) fn hand_over(&self, shift: Shift<Q>, workers: usize) -> Taken<Q> {
        let mut spares = lock(&self.0);
        if let Some(post) = spares.waiting.pop() {
            // Before the lock is given up: a thread that is off the list and sees the pool closed ends.
            *lock(&post.shift) = Some(shift);
            drop(spares);
            post.listener.tell();
            return Taken::Waiting;
        }
        if spares.extra >= MANY && spares.kept + 1 < workers {
            spares.kept += 1;
            return Taken::Refused(shift);
        }
        spares.extra += 1;
        spares.born += 1;
        Taken::Start(shift, spares.born)
    }

    /// Are there so many threads that more should not be asked for without need?
    pub(crate) fn is_crowded(&self) -> bool {
        lock(&self.0).extra >= MANY
    }

    /// The thread that was to be started could not be. Is the seat kept, then? Not if it is the last one in use: whoever has
    /// that must not sleep.
    pub(crate) fn not_started(&self, workers: usize) -> bool {
        let mut spares = lock(&self.0);
        spares.extra -= 1;
        let is_kept = spares.kept + 1 < workers;
        spares.kept += usize::from(is_kept);
        is_kept
    }

    /// A seat that was kept is in use again.
    pub(crate) fn resume(&self) {
        lock(&self.0).kept -= 1;
    }

    /// For a thread that has lost its seat and finished its tasks: waits for another shift. `None`:
    /// the thread should end, because the pool does, or because there are enough (`keep`).
    pub(crate) fn wait(&self, listener: &Arc<Listener>, keep: usize) -> Option<Shift<Q>> {
        let post = Arc::new(Post { shift: Mutex::new(None), listener: Arc::clone(listener) });
        {
            let mut spares = lock(&self.0);
            if spares.closed || spares.waiting.len() >= keep {
                // A thread less, be it this one or the one that has its seat.
                spares.extra = spares.extra.saturating_sub(1);
                return None;
            }
            spares.waiting.push(Arc::clone(&post));
        }
        record(EventKind::Park);
        let shift = loop {
            let shift = lock(&post.shift).take();
            if shift.is_some() || lock(&self.0).closed {
                break shift;
            }
            post.listener.berth().park();
        };
        record(EventKind::Unpark);
        shift
    }

    /// The pool has come to its end: nobody will need them.
    pub(crate) fn close(&self) {
        let mut spares = lock(&self.0);
        spares.closed = true;
        for post in std::mem::take(&mut spares.waiting) {
            post.listener.tell();
        }
    }
}
