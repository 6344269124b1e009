//! The queue's side of a task: whoever takes it out of a queue runs it, or refuses it.

use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use super::handle::TaskHandle;
use super::kind::{self, DetachedTask, Rooted};
use super::recycle;
use super::slot::{End, ROOM, Refusal, Slot};
use super::state::{Left, Start, State};
use super::{dispose, forget_listener, make};
use crate::panic::PanicHook;
use crate::sync::{Arc, prefetch};

/// A task in a queue: one word. One that is dropped without having been run is refused: whoever
/// waits for it is told.
pub(crate) struct Task(NonNull<Slot>);

// SAFETY: it is made of a closure and for a result that are both `Send`; `state` decides who
// touches them.
unsafe impl Send for Task {}

impl Task {
    /// The closure of a part of a fork of up to this size needs no memory of its own.
    pub(crate) const ROOM_FOR_JOB: usize = ROOM - size_of::<Rooted<()>>();

    /// A task, and the handle's side of it.
    ///
    /// # Safety
    ///
    /// What the closure and its result borrow stays alive until the task is done.
    #[inline]
    pub(crate) unsafe fn new<F, T>(closure: F) -> (Self, TaskHandle<T>)
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        let slot = make(kind::of_task::<F, T>(), State::queued());
        // SAFETY: just made, and empty.
        unsafe { Slot::put(slot, closure) };
        (Self(slot), TaskHandle::new(slot))
    }

    /// Likewise, a part of a fork, whose frame waits for it, and which descends from `root`.
    ///
    /// # Safety
    ///
    /// As for [`new`](Self::new).
    pub(crate) unsafe fn job<F, T>(root: usize, closure: F) -> (Self, TaskHandle<T>)
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        let slot = make(kind::of_job::<F, T>(), State::queued());
        // SAFETY: just made, and empty.
        unsafe { Slot::put(slot, Rooted { root, closure }) };
        (Self(slot), TaskHandle::new(slot))
    }

    /// A task that nobody has a handle to.
    #[inline]
    pub(crate) fn detached<E: DetachedTask + 'static>(detached: E) -> Self {
        // SAFETY: it borrows nothing.
        unsafe { Self::detached_borrowing(detached) }
    }

    /// Likewise, one that borrows.
    ///
    /// # Safety
    ///
    /// What it borrows stays alive until it is finished.
    #[inline]
    pub(crate) unsafe fn detached_borrowing<E: DetachedTask>(detached: E) -> Self {
        let slot = make(kind::of_detached::<E>(), State::alone());
        // SAFETY: just made, and empty.
        unsafe { Slot::put(slot, detached) };
        Self(slot)
    }

    /// By which it is told from others.
    pub(crate) fn id(&self) -> usize {
        self.0.addr().get()
    }

    /// Gives it up if the handle's side has run it, or is about to.
    pub(crate) fn unless_stale(self) -> Option<Self> {
        // SAFETY: the queue's side keeps it alive.
        if !unsafe { Slot::state(self.0) }.is_started() {
            return Some(self);
        }
        drop_stale(ManuallyDrop::new(self).0);
        None
    }

    /// It will be run soon.
    #[inline(always)]
    pub(crate) fn prefetch(&self) {
        prefetch(self.0.as_ptr());
    }

    /// Takes the task out of a queue's hands, to be run or refused; `None` if the handle's side was
    /// faster.
    #[inline]
    pub(crate) fn start(self) -> Option<Started> {
        let slot = ManuallyDrop::new(self).0;
        // SAFETY: the queue's side keeps it alive.
        match unsafe { Slot::state(slot) }.start() {
            Start::Alone => Some(Started { slot, alone: true }),
            Start::Ours => Some(Started { slot, alone: false }),
            Start::Stale => {
                drop_stale(slot);
                None
            }
        }
    }
}

#[cold]
fn drop_stale(slot: NonNull<Slot>) {
    // SAFETY: the queue's side keeps it alive.
    if unsafe { Slot::state(slot) }.leave_queue() == Left::Last {
        // SAFETY: the handle's side has taken the outcome and is gone.
        unsafe { recycle::give(slot) };
    }
}

impl Drop for Task {
    #[cold]
    fn drop(&mut self) {
        if let Some(started) = Self(self.0).start() {
            let (_, ended) = started.refuse(Refusal::Stopped);
            ended.deliver(None);
        }
    }
}

/// A task that this thread is to run or to refuse, on the queue's side.
#[must_use]
pub(crate) struct Started {
    slot: NonNull<Slot>,
    alone: bool,
}

/// A task that has its outcome, which is still to be published.
#[must_use]
pub(crate) struct Ended {
    slot: NonNull<Slot>,
    rest: Rest,
}

/// What is still to be done with the slot of a task that has ended.
enum Rest {
    /// The handle's side may want the outcome.
    Shared,
    /// Nobody wants the outcome, and it is there.
    Full,
    /// Nobody wants the outcome, and it is gone.
    Empty,
}

impl Started {
    /// Is it part of a fork?
    #[inline]
    pub(crate) fn is_job(&self) -> bool {
        // SAFETY: live.
        unsafe { Slot::kind(self.slot) }.root.is_some()
    }

    /// What it descends from: itself, unless it is part of a fork.
    #[inline]
    pub(crate) fn root(&self) -> usize {
        // SAFETY: live.
        match unsafe { Slot::kind(self.slot) }.root {
            None => self.slot.addr().get(),
            // SAFETY: started, by us.
            Some(root) => unsafe { root(self.slot) },
        }
    }

    /// It is not for us: back to a queue. Whoever waits for it may have taken it to be running.
    pub(crate) fn postpone(self) -> Task {
        if !self.alone {
            // SAFETY: live.
            unsafe { Slot::state(self.slot) }.postpone();
        }
        Task(self.slot)
    }

    #[inline]
    pub(crate) fn execute(self, hook: &Arc<PanicHook>) -> (End, Ended) {
        let Self { slot, alone } = self;
        // SAFETY: live.
        let kind = unsafe { Slot::kind(slot) };
        if !alone {
            // SAFETY: started, by us.
            let end = unsafe { (kind.execute)(slot, hook) };
            return (end, Ended { slot, rest: Rest::Shared });
        }
        // SAFETY: started, by us, and nobody else looks.
        let end = unsafe { (kind.execute_alone)(slot, hook) };
        let rest = if kind.leaves { Rest::Full } else { Rest::Empty };
        (end, Ended { slot, rest })
    }

    /// Also says how many tasks are refused with it.
    pub(crate) fn refuse(self, refusal: Refusal) -> (u64, Ended) {
        let Self { slot, alone } = self;
        // SAFETY: live.
        let kind = unsafe { Slot::kind(slot) };
        // SAFETY: started, by us.
        let count = unsafe { (kind.refuse)(slot, refusal) };
        (count, Ended { slot, rest: if alone { Rest::Full } else { Rest::Shared } })
    }
}

impl Ended {
    /// Lets the handle's side have it; without one, drops it and tells the hook what panics.
    #[inline(always)]
    pub(crate) fn deliver(self, hook: Option<&PanicHook>) {
        let Self { slot, rest } = self;
        match rest {
            Rest::Shared => share(slot, hook),
            // SAFETY: ours alone, with an outcome.
            Rest::Full => unsafe { dispose(slot, hook) },
            // SAFETY: ours alone, and its outcome is gone.
            Rest::Empty => unsafe { recycle::give(slot) },
        }
    }
}

/// Queue's side: the outcome is there for the handle's side, if that is still there.
pub(super) fn share(slot: NonNull<Slot>, hook: Option<&PanicHook>) {
    // SAFETY: live until the queue's side lets go.
    let (left, listener) = unsafe { Slot::state(slot) }.finish();
    if left == Left::Last {
        // SAFETY: ours alone, with an outcome.
        unsafe { dispose(slot, hook) };
        forget_listener(listener);
    } else if let Some(listener) = listener {
        listener.notify();
        forget_listener(Some(listener));
    }
}
