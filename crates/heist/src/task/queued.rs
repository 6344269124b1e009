//! The queue's side of a task: the thread that takes it out of a queue runs it or refuses it.

use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use super::control::Control;
use super::handle::TaskHandle;
use super::kind::{self, Controlled, DetachedTask, JobKind, Rooted};
use super::recycle;
use super::slot::{End, ROOM, Refusal, Slot};
use super::starter;
use super::state::{Left, Start, State};
use super::{dispose, forget_listener, make};
use crate::panic::PanicHook;
use crate::sync::{Arc, prefetch_for_write};

/// A task in a queue: one word. A task that is dropped without having run is refused, and the thread that waits for it
/// is notified.
pub(crate) struct Task(NonNull<Slot>);

// SAFETY: the closure and the result are both `Send`; `state` decides which thread touches them.
unsafe impl Send for Task {}

impl Task {
    /// The size up to which the closure of a job is stored in the slot.
    pub(crate) const ROOM_FOR_JOB: usize = ROOM - size_of::<Rooted<()>>();

    /// Returns a task, and the handle's side of it.
    ///
    /// # Safety
    ///
    /// What the closure and its result borrow stays valid until the task is done.
    #[inline]
    pub(crate) unsafe fn new<F, T>(closure: F) -> (Self, TaskHandle<T>)
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        // SAFETY: the caller's promise.
        unsafe { Self::named::<F, F, T>(closure) }
    }

    /// Like [`new`](Self::new), with the name of the type `N` in traces.
    ///
    /// # Safety
    ///
    /// What the closure and its result borrow stays valid until the task is done.
    #[inline]
    pub(crate) unsafe fn named<N, F, T>(closure: F) -> (Self, TaskHandle<T>)
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        let slot = make(kind::of_task::<N, F, T>(), State::queued());
        // SAFETY: just made, and its room is empty.
        unsafe { Slot::put(slot, closure) };
        (Self(slot), TaskHandle::new(slot))
    }

    /// Returns a task with that control, and the handle's side of it. The closure is not run if the task was cancelled
    /// before it was started; else it is called with the control.
    pub(crate) fn controlled<F, T>(control: Arc<Control>, closure: F) -> (Self, TaskHandle<T>)
    where
        F: FnOnce(&Arc<Control>) -> T + Send + 'static,
        T: Send + 'static,
    {
        let slot = make(kind::of_controlled::<F, T>(), State::queued());
        // SAFETY: just made, and its room is empty.
        unsafe { Slot::put(slot, Controlled { control, closure }) };
        (Self(slot), TaskHandle::new(slot))
    }

    /// Returns a job with that root, whose fork waits for it, and the handle's side of it. `counts` says whether it is
    /// counted as a task.
    ///
    /// # Safety
    ///
    /// What the closure and its result borrow stays valid until the task is done.
    pub(crate) unsafe fn job<F, T>(root: usize, kind: JobKind, closure: F) -> (Self, TaskHandle<T>)
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        let slot = make(kind::of_job::<F, T>(kind), State::queued());
        // SAFETY: just made, and its room is empty.
        unsafe { Slot::put(slot, Rooted { root, closure }) };
        (Self(slot), TaskHandle::new(slot))
    }

    /// Returns a task without a handle.
    #[inline]
    pub(crate) fn detached<E: DetachedTask + 'static>(detached: E) -> Self {
        // SAFETY: it is `'static`, so it borrows nothing.
        unsafe { Self::detached_borrowing(detached) }
    }

    /// Returns a task without a handle, which may borrow.
    ///
    /// # Safety
    ///
    /// What it borrows stays valid until it is finished.
    #[inline]
    pub(crate) unsafe fn detached_borrowing<E: DetachedTask>(detached: E) -> Self {
        let slot = make(kind::of_detached::<E>(), State::alone());
        // SAFETY: just made, and its room is empty.
        unsafe { Slot::put(slot, detached) };
        Self(slot)
    }

    /// Returns a task that is the first part of something, and starts the rest, or the next part of something. Also returns a
    /// handle by which whoever waits for the whole can claim it.
    pub(crate) fn starter<E: DetachedTask + 'static>(starter: E) -> (Self, TaskHandle<()>) {
        let slot = make(starter::of_starter::<E>(), State::queued());
        // SAFETY: just made, and its room is empty.
        unsafe { Slot::put(slot, Some(starter)) };
        (Self(slot), TaskHandle::new(slot))
    }

    /// Returns a part of a scope that whoever waits for its result can claim, and the handle for that.
    ///
    /// # Safety
    ///
    /// What it borrows stays valid until it is finished.
    pub(crate) unsafe fn claimable_part<E: DetachedTask>(part: E) -> (Self, TaskHandle<()>) {
        let slot = make(starter::of_claimable_part::<E>(), State::queued());
        // SAFETY: just made, and its room is empty.
        unsafe { Slot::put(slot, Some(part)) };
        (Self(slot), TaskHandle::new(slot))
    }

    /// Returns a number that tells the task from all others that are alive.
    pub(crate) fn id(&self) -> usize {
        self.0.addr().get()
    }

    /// Returns whether it is counted as a task.
    pub(crate) fn counts(&self) -> bool {
        // SAFETY: the queue's side keeps the slot alive.
        unsafe { Slot::kind(self.0) }.counts
    }

    /// Returns whether it is a stale entry: the handle's side has claimed the task.
    pub(crate) fn is_stale(&self) -> bool {
        // SAFETY: the queue's side keeps the slot alive.
        unsafe { Slot::state(self.0) }.is_started()
    }

    /// Returns whether a worker that comes to the task now runs it: it is no stale entry, and its handle has not cancelled it.
    pub(crate) fn will_run(&self) -> bool {
        // SAFETY: the queue's side keeps the slot alive.
        unsafe { Slot::state(self.0) }.will_run()
    }

    /// Returns what the task is a part of, or the task itself.
    ///
    /// # Safety
    ///
    /// No other thread can have claimed the task: it was not in a queue yet, and its handle is with this thread.
    pub(crate) unsafe fn group(&self) -> usize {
        // SAFETY: the queue's side keeps the slot alive, and the task was not started, by the caller's promise.
        unsafe { group(self.0) }
    }

    /// Returns whether threads on the same NUMA node steal it first.
    #[inline]
    pub(crate) fn is_near(&self) -> bool {
        // SAFETY: the queue's side keeps the slot alive.
        unsafe { Slot::kind(self.0) }.near
    }

    /// Prefetches the slot of a task that will run soon, which writes to it.
    #[inline(always)]
    pub(crate) fn prefetch(&self) {
        prefetch_for_write(self.0.as_ptr());
    }

    /// Starts the task, which must then be run or refused. Returns `None` for a stale entry: the handle's side was
    /// faster.
    #[inline]
    pub(crate) fn start(self) -> Option<Started> {
        let slot = ManuallyDrop::new(self).0;
        // SAFETY: the queue's side keeps the slot alive.
        match unsafe { Slot::state(slot) }.start() {
            Start::Alone => Some(Started { slot, alone: true, revoked: false }),
            Start::Ours => Some(Started { slot, alone: false, revoked: false }),
            Start::Revoked => Some(Started { slot, alone: false, revoked: true }),
            Start::Stale => {
                drop_stale(slot);
                None
            }
        }
    }
}

/// Returns what the task is a part of, or the task itself.
///
/// # Safety
///
/// The slot is alive, and the closure in it belongs to the caller.
#[inline]
unsafe fn group(slot: NonNull<Slot>) -> usize {
    // SAFETY: alive, by the caller's promise.
    match unsafe { Slot::kind(slot) }.group {
        None => slot.addr().get(),
        // SAFETY: the closure is in the slot and belongs to the caller, by the caller's promise.
        Some(group) => unsafe { group(slot) },
    }
}

#[cold]
fn drop_stale(slot: NonNull<Slot>) {
    // SAFETY: the queue's side keeps the slot alive.
    if unsafe { Slot::state(slot) }.leave_queue() == Left::Last {
        // SAFETY: the slot came from `make` and belongs to this side alone. Its room is empty: the handle's side has
        // claimed the task, and a thread that claims a task takes its outcome before it lets go. A starter has none, and
        // leaves an empty `Option`, which is stored in the room itself.
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

/// A task that was started on the queue's side, and must be run or refused.
#[must_use]
pub(crate) struct Started {
    slot: NonNull<Slot>,
    alone: bool,
    revoked: bool,
}

/// A task that has its outcome, which is still to be delivered.
#[must_use]
pub(crate) struct Ended {
    slot: NonNull<Slot>,
    rest: Rest,
}

/// What is still to be done with the slot of a task that has ended.
enum Rest {
    /// The handle's side may want the outcome.
    Shared,
    /// There is no handle, and the outcome is in the slot.
    Full,
    /// There is no handle, and the outcome was dropped.
    Empty,
}

impl Started {
    /// Returns whether the task is a job, a part of a fork.
    #[inline]
    pub(crate) fn is_job(&self) -> bool {
        // SAFETY: the queue's side keeps the slot alive.
        unsafe { Slot::kind(self.slot) }.is_job
    }

    /// Returns whether the handle's side has cancelled the task, which must then be refused.
    #[inline]
    pub(crate) fn is_revoked(&self) -> bool {
        self.revoked
    }

    /// Returns whether the end of the task leaves credit in the purse of its thread: it is a part of a scope.
    #[inline]
    pub(crate) fn is_credited(&self) -> bool {
        // SAFETY: the queue's side keeps the slot alive.
        unsafe { Slot::kind(self.slot) }.credited
    }

    /// Returns the root of what the task forks: the task itself, unless it is a job.
    #[inline]
    pub(crate) fn root(&self) -> usize {
        if self.is_job() { self.group() } else { self.slot.addr().get() }
    }

    /// Returns the group of the task: what it is a part of, or the task itself.
    #[inline]
    pub(crate) fn group(&self) -> usize {
        // SAFETY: started by this side.
        unsafe { group(self.slot) }
    }

    /// Returns the name of the task in traces.
    pub(crate) fn name(&self) -> &'static str {
        // SAFETY: the queue's side keeps the slot alive.
        (unsafe { Slot::kind(self.slot) }.name)()
    }

    #[inline]
    pub(crate) fn execute(self, hook: &Arc<PanicHook>) -> (End, Ended) {
        let Self { slot, alone, .. } = self;
        // SAFETY: the queue's side keeps the slot alive.
        let kind = unsafe { Slot::kind(slot) };
        if !alone {
            // SAFETY: started by this side.
            let end = unsafe { (kind.execute)(slot, hook) };
            return (end, Ended { slot, rest: Rest::Shared });
        }
        // SAFETY: started by this side, and without a handle no other thread will ever look.
        let end = unsafe { (kind.execute_alone)(slot, hook) };
        let rest = if kind.leaves { Rest::Full } else { Rest::Empty };
        (end, Ended { slot, rest })
    }

    /// Refuses the task. Also returns how many tasks it stands for.
    pub(crate) fn refuse(self, refusal: Refusal) -> (u64, Ended) {
        let Self { slot, alone, .. } = self;
        // SAFETY: the queue's side keeps the slot alive.
        let kind = unsafe { Slot::kind(slot) };
        // SAFETY: started by this side.
        let count = unsafe { (kind.refuse)(slot, refusal) };
        (count, Ended { slot, rest: if alone { Rest::Full } else { Rest::Shared } })
    }
}

impl Ended {
    /// Delivers the outcome to the handle's side. Without one, drops the outcome, and passes a panic to the hook.
    #[inline(always)]
    pub(crate) fn deliver(self, hook: Option<&PanicHook>) {
        let Self { slot, rest } = self;
        match rest {
            Rest::Shared => {
                // SAFETY: run or refused by this side, whose caller has counted that.
                unsafe { settle(slot) };
                share(slot, hook);
            }
            // SAFETY: the slot belongs to this side alone and holds an outcome.
            Rest::Full => unsafe { dispose(slot, hook) },
            // SAFETY: the slot came from `make` and belongs to this side alone, and its room is empty.
            Rest::Empty => unsafe { recycle::give(slot) },
        }
    }
}

/// Notifies those who wait for a task that was run or refused, if they do not wait by its handle.
///
/// # Safety
///
/// The slot is alive. The task was run, refused or released by the caller, which has counted that.
#[inline(always)]
pub(super) unsafe fn settle(slot: NonNull<Slot>) {
    // SAFETY: alive, by the caller's promise.
    if let Some(settle) = unsafe { Slot::kind(slot) }.settle {
        // SAFETY: run, refused or released by the caller.
        unsafe { settle(slot) };
    }
}

/// Queue's side: delivers the outcome to the handle's side, if that has not let go.
pub(super) fn share(slot: NonNull<Slot>, hook: Option<&PanicHook>) {
    // SAFETY: alive until the queue's side lets go.
    let (left, listener) = unsafe { Slot::state(slot) }.finish();
    if left == Left::Last {
        // SAFETY: the slot belongs to this side alone and holds an outcome.
        unsafe { dispose(slot, hook) };
        forget_listener(listener);
    } else if let Some(listener) = listener {
        listener.notify();
        forget_listener(Some(listener));
    }
}
