//! Listeners: the thread or future to notify when something has happened.

use std::task::{Wake, Waker};
use std::time::Duration;

use crate::panic::contain;
use crate::sync::{Arc, AtomicBool, Mutex, Ordering, Parker, lock};

/// A thread or future to notify. Aligned, so that a pointer to it leaves room for flags in the same word.
#[repr(align(16))]
#[derive(Debug)]
pub(crate) enum Listener {
    Thread(Sleeper),
    /// The waker of the last poll.
    Future(Mutex<Option<Waker>>),
}

impl Listener {
    /// Returns a listener for the calling thread.
    pub(crate) fn thread() -> Self {
        Self::Thread(Sleeper { parker: Parker::new(), called: AtomicBool::new(false) })
    }

    pub(crate) fn future(waker: &Waker) -> Self {
        Self::Future(Mutex::new(Some(waker.clone())))
    }

    /// Sets the waker of a future's listener.
    pub(crate) fn set_waker(&self, waker: &Waker) {
        let Self::Future(slot) = self else { unreachable!("a thread has no waker") };
        let new = waker.clone();
        // The old waker is dropped outside of the lock, because its drop is code of the executor.
        let old = lock(slot).replace(new);
        drop(old);
    }

    /// Returns the sleeper of a thread's own listener.
    pub(crate) fn sleeper(&self) -> &Sleeper {
        match self {
            Self::Thread(sleeper) => sleeper,
            Self::Future(_) => unreachable!("a future does not sleep"),
        }
    }

    /// Notifies the listener that what it waits for has happened. Has no effect if it waits no longer.
    pub(crate) fn notify(&self) {
        match self {
            Self::Thread(sleeper) => sleeper.parker.wake(),
            Self::Future(waker) => {
                let waker = lock(waker).take();
                if let Some(waker) = waker {
                    // The executor's code may panic, which is not the pool's concern.
                    contain(|| waker.wake());
                }
            }
        }
    }
}

/// Lets a thread wait for something that was registered by a poll of a future.
impl Wake for Listener {
    fn wake(self: Arc<Self>) {
        self.notify();
    }
}

/// Where a thread sleeps.
#[derive(Debug)]
pub(crate) struct Sleeper {
    parker: Parker,
    /// Has the pool called the thread to look for work? The thread clears it when it prepares to sleep. The
    /// thread that takes it off the list of sleepers sets it. Both hold the lock of that list.
    called: AtomicBool,
}

impl Sleeper {
    /// Calls [`Parker::park`].
    pub(crate) fn park(&self) {
        self.parker.park();
    }

    /// Calls [`Parker::park_for`].
    pub(crate) fn park_for(&self, limit: Duration) {
        self.parker.park_for(limit);
    }

    pub(crate) fn prepare_sleep(&self) {
        // Ordering: relaxed, for all three accesses. It only says when to take the lock of the list, under which it
        // was written.
        self.called.store(false, Ordering::Relaxed);
    }

    pub(crate) fn mark_called(&self) {
        self.called.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_called(&self) -> bool {
        self.called.load(Ordering::Relaxed)
    }
}
