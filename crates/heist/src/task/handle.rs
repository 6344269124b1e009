//! The handle's side of a task: how a thread waits for the task, claims it, and takes its outcome.

use std::marker::PhantomData;
use std::ptr::NonNull;

use super::kind::DetachedTask;
use super::outcome::{Failure, Outcome};
use super::queued::{Task, settle};
use super::slot::{End, Kind, Refusal, Slot};
use super::state::{Left, State};
use super::{dispose, forget_listener, recycle};
use crate::error::JoinError;
use crate::panic::PanicHook;
use crate::sync::{Arc, Instant, prefetch_for_write};
use crate::task::listener::Listener;
use crate::trace::rename;

/// The handle's side of a task. Dropping it detaches the task.
pub(crate) struct TaskHandle<T> {
    slot: NonNull<Slot>,
    result: PhantomData<T>,
}

// SAFETY: a handle moves the result to whatever thread it is on, and `T` is `Send`; the closure was `Send`.
unsafe impl<T: Send> Send for TaskHandle<T> {}
// SAFETY: through a shared reference, a thread can look at the state word, register a listener, and claim the task.
// These are atomic operations, only one claim succeeds, and a claimed closure and its result are `Send`.
unsafe impl<T: Send> Sync for TaskHandle<T> {}

impl<T> TaskHandle<T> {
    /// Returns the handle of a slot that was just made for a `T`.
    pub(super) fn new(slot: NonNull<Slot>) -> Self {
        Self { slot, result: PhantomData }
    }

    #[inline]
    fn state(&self) -> &State {
        // SAFETY: the handle's side keeps the slot alive.
        unsafe { Slot::state(self.slot) }
    }

    /// Cancels the task, unless it was started. Returns whether it is cancelled: no side will run it.
    pub(crate) fn revoke(&self) -> bool {
        self.state().revoke()
    }

    /// Returns whether the task was cancelled by [`revoke`](Self::revoke). It may not be done yet.
    pub(crate) fn is_revoked(&self) -> bool {
        self.state().is_revoked()
    }

    /// Takes the outcome of the task.
    ///
    /// Panics if the task is not done.
    pub(crate) fn take(self) -> Result<T, JoinError> {
        let slot = self.slot;
        let take = || {
            std::mem::forget(self);
            // SAFETY: the handle's side keeps the slot alive. The task is done, so the outcome is in the room and
            // belongs to the handle's side, which moves it out here and lets go.
            unsafe { Slot::take::<Outcome<T>>(slot) }
        };
        // SAFETY: the handle's side keeps the slot alive.
        let taken = unsafe { Slot::state(slot) }.leave_handle_when_done(take);
        let (outcome, left) = taken.expect("asked for the outcome of a task that is not done");
        if left == Left::Last {
            // It will be written to when it is used again, and another thread has written to it last.
            prefetch_for_write(slot.as_ptr());
            // SAFETY: the slot came from `make`; the queue's side is gone, so it belongs to this side alone; and the
            // outcome was taken.
            unsafe { recycle::give(slot) };
        }
        outcome.map_err(Failure::into_error)
    }
}

/// A task, as a waiting thread sees it.
pub(crate) trait Awaited {
    /// Returns the group of the parts of what is awaited.
    fn id(&self) -> usize;

    /// Returns the `Task::id` of the task that [`claim`](Self::claim) claims: the awaited task, or that which starts the
    /// awaited batch.
    fn task_id(&self) -> usize {
        self.id()
    }

    fn is_done(&self) -> bool;

    /// Registers the listener to notify when the task is done; at most once. Returns `false` if it is done already.
    fn listen(&self, listener: Arc<Listener>) -> bool;

    /// Claims the task for the handle's side, unless it was started. The caller must then run or delegate it. When that
    /// is done, the awaited task is done, or the awaited batch has started, or the awaited future was polled.
    fn claim(&self) -> Option<Claimed<'_>>;

    /// Returns when [`is_done`](Self::is_done) becomes true without a notification.
    fn end(&self) -> Option<Instant> {
        None
    }
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
            // SAFETY: the queue's side is gone, so the slot belongs to this side alone. It let go when the task was
            // done, so the outcome is in the slot. The outcome was not taken, because `take` forgets the handle.
            unsafe { dispose(self.slot, None) };
        }
    }
}

/// A task that the handle's side must run, refuse or delegate.
#[must_use]
pub(crate) struct Claimed<'r> {
    slot: NonNull<Slot>,
    handle: PhantomData<&'r ()>,
}

impl Claimed<'_> {
    /// Returns whether the task is a job, a part of a fork.
    pub(crate) fn is_job(&self) -> bool {
        // SAFETY: the handle keeps the slot alive.
        unsafe { Slot::kind(self.slot) }.is_job
    }

    /// Returns the name of the task in traces.
    pub(crate) fn name(&self) -> &'static str {
        // SAFETY: the handle keeps the slot alive.
        (unsafe { Slot::kind(self.slot) }.name)()
    }

    pub(crate) fn execute(&self, hook: &Arc<PanicHook>) -> End {
        // SAFETY: the handle keeps the slot alive.
        let kind = unsafe { Slot::kind(self.slot) };
        // SAFETY: started by this claim, which is executed or refused once.
        unsafe { (kind.execute)(self.slot, hook) }
    }

    /// Refuses the task, and returns the number of tasks that it stands for.
    pub(crate) fn refuse(&self, refusal: Refusal) -> u64 {
        // SAFETY: the handle keeps the slot alive.
        let kind = unsafe { Slot::kind(self.slot) };
        // SAFETY: started by this claim, which is executed or refused once.
        unsafe { (kind.refuse)(self.slot, refusal) }
    }

    /// Delegates the task to another thread: returns a task for a queue that runs it and is not counted itself. When
    /// the awaited task or batch is done, the waiting thread is notified.
    ///
    /// # Safety
    ///
    /// The handle is kept until the task is done.
    pub(crate) unsafe fn delegate(self) -> Task {
        // SAFETY: the handle keeps the slot alive.
        let kind = unsafe { Slot::kind(self.slot) };
        if let Some(release) = kind.release {
            // SAFETY: started by this claim, which was neither executed nor refused.
            let task = unsafe { release(self.slot) };
            self.done();
            return task;
        }
        match kind.group {
            None => Task::detached(Delegate::<false> { slot: self.slot, root: 0 }),
            Some(group) => {
                // SAFETY: started by this claim.
                let root = unsafe { group(self.slot) };
                Task::detached(Delegate::<true> { slot: self.slot, root })
            }
        }
    }

    /// Notes that the outcome is in the slot. A registered listener is not needed any more. Called after `execute` or
    /// `refuse`, when the task has been counted, or when it was released.
    pub(crate) fn done(self) {
        // SAFETY: the handle keeps the slot alive, and the task was executed, refused or released by this claim.
        unsafe { settle(self.slot) };
        // SAFETY: the handle keeps the slot alive.
        forget_listener(unsafe { Slot::state(self.slot) }.finish_own());
    }
}

/// A claimed task that another thread runs; perhaps a job.
struct Delegate<const JOB: bool> {
    slot: NonNull<Slot>,
    /// The root of the task, if it is a job.
    root: usize,
}

// SAFETY: the closure was `Send`, and the result goes to the waiting thread.
unsafe impl<const JOB: bool> Send for Delegate<JOB> {}

impl<const JOB: bool> Delegate<JOB> {
    fn kind(&self) -> &'static Kind {
        // SAFETY: by the promise made to `delegate`, the handle keeps the slot alive until the task is done.
        unsafe { Slot::kind(self.slot) }
    }
}

impl<const JOB: bool> DetachedTask for Delegate<JOB> {
    const JOB: bool = JOB;

    fn group(&self) -> usize {
        self.root
    }

    fn run(&mut self, hook: &Arc<PanicHook>) -> End {
        rename(|| (self.kind().name)());
        // SAFETY: started by the claim, which was passed to this delegate and is used once.
        unsafe { (self.kind().execute)(self.slot, hook) }
    }

    fn refuse(&mut self, refusal: Refusal) -> u64 {
        // SAFETY: started by the claim, which was passed to this delegate and is used once.
        unsafe { (self.kind().refuse)(self.slot, refusal) }
    }

    fn finish(self) {
        // SAFETY: by the promise made to `delegate`, the handle keeps the slot alive until this call has set `DONE`.
        let listener = unsafe { Slot::state(self.slot) }.finish_delegated();
        if let Some(listener) = &listener {
            listener.notify();
        }
        forget_listener(listener);
    }
}
