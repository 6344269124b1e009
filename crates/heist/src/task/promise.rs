//! Promises: results without a task in a queue, such as those of a batch, and the end of a scope.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use super::handle::TaskHandle;
use super::outcome::{Failure, Outcome};
use super::queued::share;
use super::slot::{Refusal, Slot};
use super::state::State;
use super::{kind, make};
use crate::panic::PanicHook;

/// The duty to deliver results for which there is no task in a queue.
pub(crate) struct Promise<T> {
    slot: NonNull<Slot>,
    results: PhantomData<Vec<T>>,
}

// SAFETY: a promise moves a result to the slot, from whatever thread it is on.
unsafe impl<T: Send> Send for Promise<T> {}

impl<T: Send> Promise<T> {
    /// Returns a promise, and the handle for the thread that waits for it.
    pub(crate) fn new() -> (Self, TaskHandle<Vec<T>>) {
        let slot = make(kind::of_promise::<T>(), State::promised());
        (Self { slot, results: PhantomData }, TaskHandle::new(slot))
    }
}

impl<T> Promise<T> {
    /// Returns the number by which the handle is known: [`Awaited::id`](super::Awaited::id).
    pub(crate) fn id(&self) -> usize {
        self.slot.addr().get()
    }

    /// Returns a way to wake the thread that waits.
    pub(crate) fn reminder(&self) -> Reminder {
        Reminder(self.slot)
    }

    pub(crate) fn fulfil(self, outcome: Result<Vec<T>, Failure>, hook: Option<&PanicHook>) {
        let slot = ManuallyDrop::new(self).slot;
        // SAFETY: the promise keeps the slot alive, and only it writes to the room, once; so the room is empty.
        unsafe { Slot::put::<Outcome<Vec<T>>>(slot, outcome) };
        share(slot, hook);
    }
}

/// Reminds the thread that waits for a promise that there may be a part which it could run.
#[derive(Clone, Copy)]
pub(crate) struct Reminder(NonNull<Slot>);

// SAFETY: it only looks at the state word, which is atomic.
unsafe impl Send for Reminder {}
// SAFETY: for the same reason.
unsafe impl Sync for Reminder {}

impl Reminder {
    /// Wakes the thread that waits for the promise, if one sleeps. The caller has pushed a part and passed a fence.
    ///
    /// # Safety
    ///
    /// The promise is not fulfilled before this call returns.
    pub(crate) unsafe fn send(self) {
        // SAFETY: a promise that is not fulfilled keeps its slot alive.
        let state = unsafe { Slot::state(self.0) };
        // SAFETY: a task of the promise is not done, so the word is not done either.
        unsafe { state.remind() };
    }
}

/// Refuses the results, because the promise was not fulfilled.
impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        let refused = Err(Failure::Refused(Refusal::Stopped));
        // SAFETY: the promise keeps the slot alive, and was not fulfilled, so the room is empty and still belongs to
        // it.
        unsafe { Slot::put::<Outcome<Vec<T>>>(self.slot, refused) };
        share(self.slot, None);
    }
}
