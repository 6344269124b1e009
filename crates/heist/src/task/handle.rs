//! The handle's side of a task: whoever waits for it, or not.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use super::kind::DetachedTask;
use super::outcome::{Failure, Outcome};
use super::queued::Task;
use super::slot::{End, Kind, Refusal, Slot};
use super::state::{Left, State};
use super::{dispose, forget_listener, recycle};
use crate::error::JoinError;
use crate::panic::PanicHook;
use crate::sync::Arc;
use crate::task::listener::Listener;

/// The handle's side of a task. Dropping it detaches.
pub(crate) struct TaskHandle<T> {
    slot: NonNull<Slot>,
    result: PhantomData<T>,
}

// SAFETY: a handle gives the result away, on whatever thread it is; the closure was `Send`.
unsafe impl<T: Send> Send for TaskHandle<T> {}
// SAFETY: through a shared reference it only tells whether the task is done.
unsafe impl<T: Send> Sync for TaskHandle<T> {}

impl<T> TaskHandle<T> {
    /// Of a slot that was just made, for a `T`.
    pub(super) fn new(slot: NonNull<Slot>) -> Self {
        Self { slot, result: PhantomData }
    }

    #[inline]
    fn state(&self) -> &State {
        // SAFETY: the handle's side keeps it alive.
        unsafe { Slot::state(self.slot) }
    }

    /// Has somebody started it?
    pub(crate) fn is_started(&self) -> bool {
        self.state().is_started()
    }

    /// What the task came to.
    ///
    /// Panics if it is not done.
    pub(crate) fn take(self) -> Result<T, JoinError> {
        assert!(self.is_done(), "asked for the outcome of a task that is not done");
        // SAFETY: done, and the outcome is for the handle's side.
        let outcome = unsafe { Slot::take::<Outcome<T>>(self.slot) };
        let slot = ManuallyDrop::new(self).slot;
        // SAFETY: the handle's side keeps it alive.
        if unsafe { Slot::state(slot) }.leave_handle() == Left::Last {
            // SAFETY: the queue's side is gone, and the outcome taken.
            unsafe { recycle::give(slot) };
        }
        outcome.map_err(Failure::into_error)
    }
}

/// What a waiting thread needs to know of a task.
pub(crate) trait Awaited {
    /// `Task::id`.
    fn id(&self) -> usize;

    fn is_done(&self) -> bool;

    /// Whom to tell when it is done; once. `false` if it is.
    fn listen(&self, listener: Arc<Listener>) -> bool;

    /// May the handle's side run the task? Then it must, with what this returns.
    fn claim(&self) -> Option<Claimed<'_>>;
}

impl<T> Awaited for TaskHandle<T> {
    fn id(&self) -> usize {
        self.slot.addr().get()
    }

    #[inline]
    fn is_done(&self) -> bool {
        self.state().is_done()
    }

    fn listen(&self, listener: Arc<Listener>) -> bool {
        self.state().listen(listener)
    }

    fn claim(&self) -> Option<Claimed<'_>> {
        self.state().claim().then_some(Claimed { slot: self.slot, handle: PhantomData })
    }
}

impl<T> Drop for TaskHandle<T> {
    #[inline]
    fn drop(&mut self) {
        if self.state().leave_handle() == Left::Last {
            // SAFETY: the queue's side let go when it was done, so the outcome is there; it has not
            // been taken, or this would not be dropped.
            unsafe { dispose(self.slot, None) };
        }
    }
}

/// A task that the handle's side runs.
#[must_use]
pub(crate) struct Claimed<'r> {
    slot: NonNull<Slot>,
    handle: PhantomData<&'r ()>,
}

impl Claimed<'_> {
    /// Is it part of a fork?
    pub(crate) fn is_job(&self) -> bool {
        // SAFETY: live, by the handle.
        unsafe { Slot::kind(self.slot) }.root.is_some()
    }

    pub(crate) fn execute(&self, hook: &Arc<PanicHook>) -> End {
        // SAFETY: live, by the handle.
        let kind = unsafe { Slot::kind(self.slot) };
        // SAFETY: started, by us.
        unsafe { (kind.execute)(self.slot, hook) }
    }

    pub(crate) fn refuse(&self, refusal: Refusal) {
        // SAFETY: live, by the handle.
        let kind = unsafe { Slot::kind(self.slot) };
        // SAFETY: started, by us.
        unsafe { (kind.refuse)(self.slot, refusal) };
    }

    /// Lets somebody else run it, as a task of no account in a queue. Whoever waits is told.
    ///
    /// # Safety
    ///
    /// The handle is kept until the task is done.
    pub(crate) unsafe fn delegate(self) -> Task {
        // SAFETY: live, by the handle.
        match unsafe { Slot::kind(self.slot) }.root {
            None => Task::detached(Delegate::<false> { slot: self.slot, root: 0 }),
            Some(root) => {
                // SAFETY: started, by us.
                let root = unsafe { root(self.slot) };
                Task::detached(Delegate::<true> { slot: self.slot, root })
            }
        }
    }

    /// The outcome is there. A listener that was left is not needed any more.
    pub(crate) fn done(self) {
        // SAFETY: live, by the handle.
        forget_listener(unsafe { Slot::state(self.slot) }.finish_own());
    }
}

/// A claimed task that another thread runs, perhaps a part of a fork.
struct Delegate<const JOB: bool> {
    slot: NonNull<Slot>,
    /// What it descends from, if it is.
    root: usize,
}

// SAFETY: the closure was `Send`, and the result goes to whoever waits.
unsafe impl<const JOB: bool> Send for Delegate<JOB> {}

impl<const JOB: bool> Delegate<JOB> {
    fn kind(&self) -> &'static Kind {
        // SAFETY: the handle is kept until the task is done.
        unsafe { Slot::kind(self.slot) }
    }
}

impl<const JOB: bool> DetachedTask for Delegate<JOB> {
    const JOB: bool = JOB;

    fn root(&self) -> usize {
        self.root
    }

    fn run(&mut self, hook: &Arc<PanicHook>) -> End {
        // SAFETY: claimed, and the claim handed on.
        unsafe { (self.kind().execute)(self.slot, hook) }
    }

    fn refuse(&mut self, refusal: Refusal) -> u64 {
        // SAFETY: likewise.
        unsafe { (self.kind().refuse)(self.slot, refusal) }
    }

    fn finish(self) {
        // SAFETY: the handle is kept until this.
        let listener = unsafe { Slot::state(self.slot) }.finish_delegated();
        if let Some(listener) = &listener {
            listener.notify();
        }
        forget_listener(listener);
    }
}
