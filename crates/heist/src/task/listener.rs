//! Listeners: the thread or future to notify when something has happened.

use std::mem;
use std::task::Waker;
use std::time::Duration;

use crate::panic::contain;
use crate::sync::{
    Arc, AtomicBool, Instant, Mutex, Ordering, Parker, copies, lock, must_not_be_copied,
};

/// A thread or future to notify. Aligned, so that a pointer to it leaves room for flags in the same word.
#[repr(align(32))]
#[derive(Debug)]
pub(crate) enum Listener {
    Thread(Sleeper),
    /// What was registered by the last poll.
    Future(Mutex<Polled>),
}

/// What a poll has registered.
#[derive(Debug)]
pub(crate) enum Polled {
    /// It was notified.
    Nothing,
    Waker(Waker),
    /// After the last poll, a thread began to wait.
    Thread(Arc<Listener>),
}

impl Listener {
    /// Returns a listener for the calling thread.
    pub(crate) fn thread() -> Self {
        let (called, in_doubt) = (AtomicBool::new(false), AtomicBool::new(false));
        Self::Thread(Sleeper { parker: Parker::new(), called, in_doubt, copy: copies() })
    }

    pub(crate) fn future(waker: &Waker) -> Self {
        Self::Future(Mutex::new(Polled::Waker(waker.clone())))
    }

    /// Sets the waker of a future's listener.
    pub(crate) fn set_waker(&self, waker: &Waker) {
        self.register(Polled::Waker(waker.clone()));
    }

    /// Makes a future's listener notify a thread from now on.
    pub(crate) fn set_thread(&self, thread: Arc<Self>) {
        self.register(Polled::Thread(thread));
    }

    fn register(&self, new: Polled) {
        let Self::Future(polled) = self else { unreachable!("a thread is not polled") };
        let old = mem::replace(&mut *lock(polled), new);
        // An old waker is dropped outside of the lock, because its drop is code of the executor.
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
            Self::Future(polled) => {
                let polled = mem::replace(&mut *lock(polled), Polled::Nothing);
                match polled {
                    Polled::Nothing => {}
                    // The executor's code may panic, which is not the pool's concern.
                    Polled::Waker(waker) => contain(|| waker.wake()),
                    Polled::Thread(thread) => thread.notify(),
                }
            }
        }
    }

    /// Wakes a thread that listens, so that it looks again. A future does not run parts, and is left alone.
    pub(crate) fn remind(&self) {
        match self {
            Self::Thread(sleeper) => sleeper.parker.wake(),
            Self::Future(polled) => {
                if let Polled::Thread(thread) = &*lock(polled) {
                    thread.remind();
                }
            }
        }
    }
}

/// Where a thread sleeps.
#[derive(Debug)]
pub(crate) struct Sleeper {
    parker: Parker,
    /// Has the pool called the thread to look for work? The thread clears it when it prepares to sleep. The
    /// thread that takes it off the list of sleepers sets it. Both hold the lock of that list.
    called: AtomicBool,
    /// Is the thread to take a second look at the private jobs of others? Another thread sets it before it wakes this one, which
    /// clears it.
    ///
    /// Ordering: relaxed. A fence comes before it is set, and another one between its reading and the second look.
    in_doubt: AtomicBool,
    /// The copy of the process that this belongs to. In a later one there is nobody who would wake the thread.
    copy: usize,
}

impl Sleeper {
    /// Calls [`Parker::park`].
    pub(crate) fn park(&self) {
        must_not_be_copied(self.copy);
        self.parker.park();
    }

    /// Parks until that time, if there is one.
    pub(crate) fn park_until(&self, end: Option<Instant>) {
        match end {
            None => self.park(),
            Some(end) => self.park_for(end.saturating_duration_since(Instant::now())),
        }
    }

    /// Calls [`Parker::park_for`].
    pub(crate) fn park_for(&self, limit: Duration) {
        must_not_be_copied(self.copy);
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

    /// Makes a thread that sleeps take a second look, and returns whether it must be woken for that.
    pub(crate) fn mark_in_doubt(&self) -> bool {
        !self.in_doubt.swap(true, Ordering::Relaxed)
    }

    /// For the thread itself: returns whether it is to take a second look.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.in_doubt.load(Ordering::Relaxed)
    }

    /// For the thread itself, before it takes a second look. An exchange reads the last doubt, so that the look comes after it.
    pub(crate) fn clear_doubt(&self) {
        self.in_doubt.swap(false, Ordering::Relaxed);
    }

    pub(crate) fn is_called(&self) -> bool {
        self.called.load(Ordering::Relaxed)
    }
}
