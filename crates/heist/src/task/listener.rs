//! Who is to be told when something has happened: a thread that sleeps, or a future.

use std::task::{Wake, Waker};
use std::time::Duration;

use crate::panic::contain;
use crate::sync::{Arc, AtomicBool, Mutex, Ordering, Parker, lock};

/// Aligned, so that a pointer to it leaves room for flags beside it in one word.
#[repr(align(16))]
#[derive(Debug)]
pub(crate) enum Listener {
    Thread(Sleeper),
    /// The waker of the last poll.
    Future(Mutex<Option<Waker>>),
}

impl Listener {
    /// For the thread that calls.
    pub(crate) fn thread() -> Self {
        Self::Thread(Sleeper { parker: Parker::new(), called: AtomicBool::new(false) })
    }

    pub(crate) fn future(waker: &Waker) -> Self {
        Self::Future(Mutex::new(Some(waker.clone())))
    }

    /// A future's: whom to wake from now on.
    pub(crate) fn set_waker(&self, waker: &Waker) {
        let Self::Future(slot) = self else { unreachable!("a thread has no waker") };
        let new = waker.clone();
        // Its drop is code of the executor's, and has no business under the lock.
        let old = lock(slot).replace(new);
        drop(old);
    }

    /// Of a thread's own listener.
    pub(crate) fn sleeper(&self) -> &Sleeper {
        match self {
            Self::Thread(sleeper) => sleeper,
            Self::Future(_) => unreachable!("a future does not sleep"),
        }
    }

    /// Says that what the listener waits for has happened. It has no effect on one that waits no
    /// longer.
    pub(crate) fn notify(&self) {
        match self {
            Self::Thread(sleeper) => sleeper.parker.wake(),
            Self::Future(waker) => {
                let waker = lock(waker).take();
                if let Some(waker) = waker {
                    // An executor's code, which may panic; the pool has no use for that.
                    contain(|| waker.wake());
                }
            }
        }
    }
}

/// So that a thread can wait for what a future was polled for.
impl Wake for Listener {
    fn wake(self: Arc<Self>) {
        self.notify();
    }
}

/// Where a thread sleeps.
#[derive(Debug)]
pub(crate) struct Sleeper {
    parker: Parker,
    /// Has the pool called it to look for work? Cleared by the thread when it lies down, set by
    /// whoever takes it off the list of sleepers; both under the lock of that list.
    called: AtomicBool,
}

impl Sleeper {
    /// See [`Parker::park`].
    pub(crate) fn park(&self) {
        self.parker.park();
    }

    /// See [`Parker::park_for`].
    pub(crate) fn park_for(&self, limit: Duration) {
        self.parker.park_for(limit);
    }

    pub(crate) fn prepare_sleep(&self) {
        // Ordering: relaxed, for all three. It only says when to take the lock of the list, under which
        // it was written.
        self.called.store(false, Ordering::Relaxed);
    }

    pub(crate) fn mark_called(&self) {
        self.called.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_called(&self) -> bool {
        self.called.load(Ordering::Relaxed)
    }
}
