//! What can be done to the closures and results of tasks, by their types: the functions that a slot's
//! `Kind` points to.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use super::outcome::{Failure, Outcome};
use super::slot::{End, Kind, Refusal, Slot};
use crate::panic::{Panic, PanicHook, contain};
use crate::sync::Arc;

/// What a slot has to run.
pub(super) trait Body<T> {
    fn call(self) -> T;
}

impl<F: FnOnce() -> T, T> Body<T> for F {
    #[inline(always)]
    fn call(self) -> T {
        self()
    }
}

/// A part of a fork, and what it descends from.
pub(super) struct Rooted<F> {
    pub(super) root: usize,
    pub(super) closure: F,
}

impl<F: FnOnce() -> T, T> Body<T> for Rooted<F> {
    fn call(self) -> T {
        (self.closure)()
    }
}

/// See [`Kind::root`].
unsafe fn root_of_job<F>(slot: NonNull<Slot>) -> usize {
    // SAFETY: started by the caller, so the closure is there and the caller's.
    unsafe { Slot::look(slot, |body: &Rooted<F>| body.root) }
}

/// See [`Kind::root`].
unsafe fn root_of_detached<E: DetachedTask>(slot: NonNull<Slot>) -> usize {
    // SAFETY: started by the caller, so the detached task is there and the caller's.
    unsafe { Slot::look(slot, E::root) }
}

/// Of a closure with a handle.
pub(super) fn of_task<F: FnOnce() -> T, T>() -> &'static Kind {
    const {
        &Kind {
            execute: execute::<F, T>,
            execute_alone: execute_alone::<F, T>,
            leaves: false,
            root: None,
            refuse: refuse::<F, T>,
            discard: discard::<T>,
        }
    }
}

/// Of a closure that is part of a fork.
pub(super) fn of_job<F: FnOnce() -> T, T>() -> &'static Kind {
    const {
        &Kind {
            execute: execute::<Rooted<F>, T>,
            execute_alone: execute_alone::<Rooted<F>, T>,
            leaves: false,
            root: Some(root_of_job::<F>),
            refuse: refuse::<Rooted<F>, T>,
            discard: discard::<T>,
        }
    }
}

/// See [`Kind::execute`].
unsafe fn execute<F: Body<T>, T>(slot: NonNull<Slot>, hook: &Arc<PanicHook>) -> End {
    // SAFETY: started by the caller, so the closure is there and the caller's.
    let closure: F = unsafe { Slot::take(slot) };
    let (outcome, end): (Outcome<T>, _) = match catch_unwind(AssertUnwindSafe(|| closure.call())) {
        Ok(value) => (Ok(value), End::Completed),
        Err(payload) => (Err(Failure::panicked(payload, hook)), End::Panicked),
    };
    // SAFETY: the closure was taken out.
    unsafe { Slot::put(slot, outcome) };
    end
}

/// See [`Kind::execute_alone`].
unsafe fn execute_alone<F: Body<T>, T>(slot: NonNull<Slot>, hook: &Arc<PanicHook>) -> End {
    // SAFETY: as in `execute`.
    let closure: F = unsafe { Slot::take(slot) };
    match catch_unwind(AssertUnwindSafe(|| closure.call())) {
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
    if !mem::needs_drop::<T>() {
        return;
    }
    let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) else { return };
    match hook {
        Some(hook) => hook.call(Panic::new(payload)),
        None => contain(|| drop(payload)),
    }
}

/// See [`Kind::refuse`].
unsafe fn refuse<F: Body<T>, T>(slot: NonNull<Slot>, refusal: Refusal) -> u64 {
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

/// A task that looks after its own outcome.
pub(crate) trait DetachedTask: Send {
    /// Is it part of a fork? See [`Kind::root`].
    const JOB: bool = false;

    /// For a part of a fork: what it descends from.
    fn root(&self) -> usize {
        unreachable!("only asked of parts of a fork")
    }

    fn run(&mut self, hook: &Arc<PanicHook>) -> End;

    /// It will not be run. How many tasks were in it?
    fn refuse(&mut self, refusal: Refusal) -> u64;

    /// After one of these, when it has been counted: tells those who wait.
    fn finish(self);
}

/// See [`Kind::execute_alone`].
unsafe fn run_detached<E: DetachedTask>(slot: NonNull<Slot>, hook: &Arc<PanicHook>) -> End {
    // SAFETY: started by the caller, so the detached task is there and the caller's.
    let mut detached: E = unsafe { Slot::take(slot) };
    let end = detached.run(hook);
    // SAFETY: taken out above.
    unsafe { Slot::put(slot, detached) };
    end
}

/// See [`Kind::refuse`].
unsafe fn refuse_detached<E: DetachedTask>(slot: NonNull<Slot>, refusal: Refusal) -> u64 {
    // SAFETY: as in `run_errand`.
    let mut detached: E = unsafe { Slot::take(slot) };
    let count = detached.refuse(refusal);
    // SAFETY: taken out above.
    unsafe { Slot::put(slot, detached) };
    count
}

/// See [`Kind::discard`]: what it leaves is itself.
unsafe fn finish_detached<E: DetachedTask>(slot: NonNull<Slot>, _: Option<&PanicHook>) {
    // SAFETY: put back by one of the above.
    unsafe { Slot::take::<E>(slot) }.finish();
}

/// Of an detached task.
pub(super) fn of_detached<E: DetachedTask>() -> &'static Kind {
    const {
        &Kind {
            execute: never_run,
            execute_alone: run_detached::<E>,
            leaves: true,
            root: if E::JOB { Some(root_of_detached::<E>) } else { None },
            refuse: refuse_detached::<E>,
            discard: finish_detached::<E>,
        }
    }
}

/// Of a promise of several results.
pub(super) fn of_promise<T>() -> &'static Kind {
    const {
        &Kind {
            execute: never_run,
            execute_alone: never_run_alone,
            leaves: false,
            root: None,
            refuse: never_refused,
            discard: discard_each::<T>,
        }
    }
}

/// A promise is never in a queue and never claimed: it has been started from the beginning. And an
/// detached task has no handle.
unsafe fn never_run(_: NonNull<Slot>, _: &Arc<PanicHook>) -> End {
    unreachable!("a promise is kept, an detached is run alone")
}

/// Likewise.
unsafe fn never_run_alone(_: NonNull<Slot>, _: &Arc<PanicHook>) -> End {
    unreachable!("a promise is kept, not run")
}

/// Likewise.
unsafe fn never_refused(_: NonNull<Slot>, _: Refusal) -> u64 {
    unreachable!("a promise is kept, not refused")
}
