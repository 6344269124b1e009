//! What a unit of work is: erased, executed at most once, small closures stored inline.
//!
//! A [`Task`] is what the queues carry, one word; a [`Receipt`] is what its handle holds. `state`
//! says how the two sides share the slot.

mod slot;
mod state;

#[cfg(not(any(loom, shuttle)))]
mod recycle;
/// The checkers see each slot made and freed.
#[cfg(any(loom, shuttle))]
#[path = "fresh.rs"]
mod recycle;

use std::marker::PhantomData;
use std::mem::{self, ManuallyDrop};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use crate::error::JoinError;
use crate::listener::Listener;
use crate::panic::{Panic, PanicHook, contain};
use crate::sync::{Arc, UnsafeCell, prefetch};
pub(crate) use recycle::Season;
pub(crate) use slot::{End, Refusal};
use slot::{Kind, Room, Slot};
use state::{Left, Start, State};

/// What is in the room once the task is done.
type Outcome<T> = Result<T, Failure>;

pub(crate) enum Failure {
    Panicked(Box<Report>),
    Refused(Refusal),
}

/// A panic, and who is to be told if nobody takes it.
pub(crate) struct Report {
    panic: Panic,
    hook: Arc<PanicHook>,
}

impl Failure {
    pub(crate) fn panicked(payload: Box<dyn std::any::Any + Send>, hook: &Arc<PanicHook>) -> Self {
        Self::Panicked(Box::new(Report { panic: Panic::new(payload), hook: Arc::clone(hook) }))
    }

    fn into_error(self) -> JoinError {
        match self {
            Self::Panicked(report) => JoinError::Panicked(report.panic),
            Self::Refused(Refusal::Cancelled) => JoinError::Cancelled,
            Self::Refused(Refusal::Stopped) => JoinError::Stopped,
        }
    }

    /// Nobody takes it.
    pub(crate) fn report(self) {
        if let Self::Panicked(report) = self {
            report.hook.call(report.panic);
        }
    }
}

/// The queue's side of a task. One that is dropped without having been run is refused: whoever
/// waits for it is told.
pub(crate) struct Task(NonNull<Slot>);

// SAFETY: it is made of a closure and for a result that are both `Send`; `state` decides who
// touches them.
unsafe impl Send for Task {}

/// The handle's side of a task. Dropping it detaches.
pub(crate) struct Receipt<T> {
    slot: NonNull<Slot>,
    result: PhantomData<T>,
}

// SAFETY: a receipt gives the result away, on whatever thread it is; the closure was `Send`.
unsafe impl<T: Send> Send for Receipt<T> {}
// SAFETY: through a shared reference it only tells whether the task is done.
unsafe impl<T: Send> Sync for Receipt<T> {}

/// For somebody who will have results, and is no task in a queue.
pub(crate) struct Promise<T> {
    slot: NonNull<Slot>,
    results: PhantomData<Vec<T>>,
}

// SAFETY: a promise brings a result to the slot, from whatever thread it is on.
unsafe impl<T: Send> Send for Promise<T> {}

fn kind_of_task<F: FnOnce() -> T, T>() -> &'static Kind {
    const {
        &Kind {
            execute: execute::<F, T>,
            execute_alone: execute_alone::<F, T>,
            leaves: false,
            refuse: refuse::<F, T>,
            discard: discard::<T>,
        }
    }
}

/// See [`Kind::execute`].
unsafe fn execute<F: FnOnce() -> T, T>(slot: NonNull<Slot>, hook: &Arc<PanicHook>) -> End {
    // SAFETY: started by the caller, so the closure is there and the caller's.
    let closure: F = unsafe { Slot::take(slot) };
    let (outcome, end): (Outcome<T>, _) = match catch_unwind(AssertUnwindSafe(closure)) {
        Ok(value) => (Ok(value), End::Completed),
        Err(payload) => (Err(Failure::panicked(payload, hook)), End::Panicked),
    };
    // SAFETY: the closure was taken out.
    unsafe { Slot::put(slot, outcome) };
    end
}

/// See [`Kind::execute_alone`].
unsafe fn execute_alone<F: FnOnce() -> T, T>(slot: NonNull<Slot>, hook: &PanicHook) -> End {
    // SAFETY: as in `execute`.
    let closure: F = unsafe { Slot::take(slot) };
    match catch_unwind(AssertUnwindSafe(closure)) {
        Ok(value) => {
            drop_result(value, Some(hook));
            End::Completed
        }
        Err(payload) => {
            hook.call(Panic::new(payload));
            End::Panicked
        }
    }
}

/// Drops a result that nobody wants; if that panics, the hook is told.
#[inline]
fn drop_result<T>(value: T, hook: Option<&PanicHook>) {
    if mem::needs_drop::<T>()
        && let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value)))
    {
        match hook {
            Some(hook) => hook.call(Panic::new(payload)),
            None => contain(|| drop(payload)),
        }
    }
}

/// See [`Kind::refuse`].
unsafe fn refuse<F: FnOnce() -> T, T>(slot: NonNull<Slot>, refusal: Refusal) -> u64 {
    // SAFETY: as in `execute`.
    let closure: F = unsafe { Slot::take(slot) };
    contain(|| drop(closure));
    // SAFETY: the closure was taken out.
    unsafe { Slot::put::<Outcome<T>>(slot, Err(Failure::Refused(refusal))) };
    1
}

/// See [`Kind::discard`].
unsafe fn discard<T>(slot: NonNull<Slot>, hook: Option<&PanicHook>) {
    // SAFETY: an outcome that is the caller's.
    match unsafe { Slot::take::<Outcome<T>>(slot) } {
        Ok(value) => drop_result(value, hook),
        Err(failure) => failure.report(),
    }
}

/// See [`Kind::discard`]: several results, each of which may panic when it is dropped.
unsafe fn discard_each<T>(slot: NonNull<Slot>, hook: Option<&PanicHook>) {
    // SAFETY: an outcome that is the caller's.
    match unsafe { Slot::take::<Outcome<Vec<T>>>(slot) } {
        Ok(values) => values.into_iter().for_each(|value| drop_result(value, hook)),
        Err(failure) => failure.report(),
    }
}

impl Task {
    /// A task, and the handle's side of it.
    ///
    /// # Safety
    ///
    /// What the closure and its result borrow stays alive until the task is done.
    #[inline]
    pub(crate) unsafe fn new<F, T>(closure: F) -> (Self, Receipt<T>)
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        let slot = make(kind_of_task::<F, T>(), State::queued());
        // SAFETY: just made, and empty.
        unsafe { Slot::put(slot, closure) };
        (Self(slot), Receipt { slot, result: PhantomData })
    }

    /// A task that nobody has a handle to.
    #[inline]
    pub(crate) fn errand<E: Errand>(errand: E) -> Self {
        let kind = const {
            &Kind {
                execute: never_run,
                execute_alone: run_errand::<E>,
                leaves: true,
                refuse: refuse_errand::<E>,
                discard: finish_errand::<E>,
            }
        };
        let slot = make(kind, State::alone());
        // SAFETY: just made, and empty.
        unsafe { Slot::put(slot, errand) };
        Self(slot)
    }

    /// By which it is told from others.
    pub(crate) fn id(&self) -> usize {
        self.0.addr().get()
    }

    /// Gives it up if the handle's side has run it, or is about to.
    pub(crate) fn unless_husk(self) -> Option<Self> {
        // SAFETY: the queue's side keeps it alive.
        if !unsafe { Slot::state(self.0) }.is_started() {
            return Some(self);
        }
        leave_husk(ManuallyDrop::new(self).0);
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
            Start::Husk => {
                leave_husk(slot);
                None
            }
        }
    }
}

/// A task that looks after its own outcome.
pub(crate) trait Errand: Send + 'static {
    fn run(&mut self) -> End;

    /// It will not be run. How many tasks were in it?
    fn refuse(&mut self, refusal: Refusal) -> u64;

    /// After one of these, when it has been counted: tells those who wait.
    fn finish(self);
}

/// See [`Kind::execute_alone`].
unsafe fn run_errand<E: Errand>(slot: NonNull<Slot>, _: &PanicHook) -> End {
    // SAFETY: started by the caller, so the errand is there and the caller's.
    let mut errand: E = unsafe { Slot::take(slot) };
    let end = errand.run();
    // SAFETY: taken out above.
    unsafe { Slot::put(slot, errand) };
    end
}

/// See [`Kind::refuse`].
unsafe fn refuse_errand<E: Errand>(slot: NonNull<Slot>, refusal: Refusal) -> u64 {
    // SAFETY: as in `run_errand`.
    let mut errand: E = unsafe { Slot::take(slot) };
    let count = errand.refuse(refusal);
    // SAFETY: taken out above.
    unsafe { Slot::put(slot, errand) };
    count
}

/// See [`Kind::discard`]: what it leaves is itself.
unsafe fn finish_errand<E: Errand>(slot: NonNull<Slot>, _: Option<&PanicHook>) {
    // SAFETY: put back by one of the above.
    unsafe { Slot::take::<E>(slot) }.finish();
}

#[cold]
fn leave_husk(slot: NonNull<Slot>) {
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
            ended.publish(None);
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
    pub(crate) fn publish(self, hook: Option<&PanicHook>) {
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
fn share(slot: NonNull<Slot>, hook: Option<&PanicHook>) {
    // SAFETY: live until the queue's side lets go.
    let (left, listener) = unsafe { Slot::state(slot) }.finish();
    if left == Left::Last {
        // SAFETY: ours alone, with an outcome.
        unsafe { dispose(slot, hook) };
        forget_listener(listener);
    } else if let Some(listener) = listener {
        listener.tell();
        forget_listener(Some(listener));
    }
}

/// With it may go a waker, whose drop is code of an executor's.
fn forget_listener(listener: Option<Arc<Listener>>) {
    if let Some(listener) = listener {
        contain(|| drop(listener));
    }
}

/// Drops the outcome and gives the slot back.
///
/// # Safety
///
/// The slot is the caller's alone, and holds an outcome.
#[inline]
unsafe fn dispose(slot: NonNull<Slot>, hook: Option<&PanicHook>) {
    // SAFETY: live.
    let kind = unsafe { Slot::kind(slot) };
    // SAFETY: an outcome that is the caller's.
    unsafe { (kind.discard)(slot, hook) };
    // SAFETY: empty, and the caller's alone.
    unsafe { recycle::give(slot) };
}

/// A slot with nothing in its room.
#[inline]
fn make(kind: &'static Kind, state: State) -> NonNull<Slot> {
    let slot = recycle::take();
    // SAFETY: fresh or recycled memory for a slot, which nobody else knows.
    unsafe {
        slot.write(Slot {
            kind,
            state,
            room: UnsafeCell::new(Room::new()),
            memory: UnsafeCell::new(()),
        });
    }
    slot
}

impl<T> Receipt<T> {
    #[inline]
    fn state(&self) -> &State {
        // SAFETY: the handle's side keeps it alive.
        unsafe { Slot::state(self.slot) }
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

impl<T> Awaited for Receipt<T> {
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
        self.state().claim().then_some(Claimed { slot: self.slot, receipt: PhantomData })
    }
}

impl<T> Drop for Receipt<T> {
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
    receipt: PhantomData<&'r ()>,
}

impl Claimed<'_> {
    pub(crate) fn execute(&self, hook: &Arc<PanicHook>) -> End {
        // SAFETY: live, by the receipt.
        let kind = unsafe { Slot::kind(self.slot) };
        // SAFETY: started, by us.
        unsafe { (kind.execute)(self.slot, hook) }
    }

    pub(crate) fn refuse(&self, refusal: Refusal) {
        // SAFETY: live, by the receipt.
        let kind = unsafe { Slot::kind(self.slot) };
        // SAFETY: started, by us.
        unsafe { (kind.refuse)(self.slot, refusal) };
    }

    /// The outcome is there. A listener that was left is not needed any more.
    pub(crate) fn done(self) {
        // SAFETY: live, by the receipt.
        forget_listener(unsafe { Slot::state(self.slot) }.finish_own());
    }
}

impl<T: Send> Promise<T> {
    /// A promise, and who waits for it.
    pub(crate) fn new() -> (Self, Receipt<Vec<T>>) {
        let kind = const {
            &Kind {
                execute: never_run,
                execute_alone: never_run_alone,
                leaves: false,
                refuse: never_refused,
                discard: discard_each::<T>,
            }
        };
        let slot = make(kind, State::promised());
        (Self { slot, results: PhantomData }, Receipt { slot, result: PhantomData })
    }

    pub(crate) fn keep(self, outcome: Result<Vec<T>, Failure>, hook: &PanicHook) {
        let slot = ManuallyDrop::new(self).slot;
        // SAFETY: promised, so the room is empty and ours.
        unsafe { Slot::put::<Outcome<Vec<T>>>(slot, outcome) };
        share(slot, Some(hook));
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        let refused = Err(Failure::Refused(Refusal::Stopped));
        // SAFETY: promised, so the room is empty and ours.
        unsafe { Slot::put::<Outcome<Vec<T>>>(self.slot, refused) };
        share(self.slot, None);
    }
}

/// A promise is never in a queue and never claimed: it has been started from the beginning. And an
/// errand has no handle.
unsafe fn never_run(_: NonNull<Slot>, _: &Arc<PanicHook>) -> End {
    unreachable!("a promise is kept, an errand is run alone")
}

/// Likewise.
unsafe fn never_run_alone(_: NonNull<Slot>, _: &PanicHook) -> End {
    unreachable!("a promise is kept, not run")
}

/// Likewise.
unsafe fn never_refused(_: NonNull<Slot>, _: Refusal) -> u64 {
    unreachable!("a promise is kept, not refused")
}
