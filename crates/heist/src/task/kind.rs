//! The functions that a slot's `Kind` points to. They are generic over the types of the task's closure and result.

use std::any::type_name;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use super::control::Control;
use super::outcome::{Failure, Outcome};
use super::slot::{End, Execute, Kind, Refusal, Slot};
use crate::panic::{Panic, PanicHook, contain};
use crate::sync::Arc;

/// The code that a slot holds until it runs.
pub(super) trait Body<T> {
    fn call(self) -> T;
}

impl<F: FnOnce() -> T, T> Body<T> for F {
    #[inline(always)]
    fn call(self) -> T {
        self()
    }
}

/// The closure of a job, and the job's root.
pub(super) struct Rooted<F> {
    pub(super) root: usize,
    pub(super) closure: F,
}

impl<F: FnOnce() -> T, T> Body<T> for Rooted<F> {
    fn call(self) -> T {
        (self.closure)()
    }
}

/// The closure of a task with a control.
pub(super) struct Controlled<F> {
    pub(super) control: Arc<Control>,
    pub(super) closure: F,
}

impl<F: FnOnce(&Arc<Control>) -> T, T> Body<T> for Controlled<F> {
    fn call(self) -> T {
        (self.closure)(&self.control)
    }
}

/// Implements [`Kind::execute`] for tasks with a control.
unsafe fn execute_controlled<F: FnOnce(&Arc<Control>) -> T, T>(
    slot: NonNull<Slot>,
    hook: &Arc<PanicHook>,
) -> End {
    // SAFETY: started by the caller, so the closure is in the slot and belongs to the caller.
    if unsafe { Slot::look(slot, |body: &Controlled<F>| body.control.is_token_cancelled()) } {
        // SAFETY: started by the caller.
        unsafe { refuse::<Controlled<F>, T>(slot, Refusal::Cancelled) };
        return End::Refused;
    }
    // SAFETY: started by the caller.
    unsafe { execute::<Controlled<F>, T>(slot, hook) }
}

/// Implements [`Kind::execute_alone`] for tasks with a control.
unsafe fn execute_controlled_alone<F: FnOnce(&Arc<Control>) -> T, T>(
    slot: NonNull<Slot>,
    hook: &Arc<PanicHook>,
) -> End {
    // SAFETY: started by the caller, so the closure is in the slot and belongs to the caller.
    if unsafe { Slot::look(slot, |body: &Controlled<F>| body.control.is_token_cancelled()) } {
        // SAFETY: the same.
        let body: Controlled<F> = unsafe { Slot::take(slot) };
        contain(|| drop(body));
        return End::Refused;
    }
    // SAFETY: started by the caller, and no other thread will ever look, by the caller's promise.
    unsafe { execute_alone::<Controlled<F>, T>(slot, hook) }
}

/// Returns the kind of a closure with a handle and a control.
pub(super) fn of_controlled<F: FnOnce(&Arc<Control>) -> T, T>() -> &'static Kind {
    const {
        &task_kind::<Controlled<F>, T>(
            execute_controlled::<F, T>,
            execute_controlled_alone::<F, T>,
            type_name::<F>,
        )
    }
}

/// Implements [`Kind::group`] for jobs.
unsafe fn group_of_job<F>(slot: NonNull<Slot>) -> usize {
    // SAFETY: the closure is in the slot and belongs to the caller, by the caller's promise.
    unsafe { Slot::look(slot, |body: &Rooted<F>| body.root) }
}

/// Implements [`Kind::group`] for detached tasks.
unsafe fn group_of_detached<E: DetachedTask>(slot: NonNull<Slot>) -> usize {
    // SAFETY: the detached task is in the slot and belongs to the caller, by the caller's promise.
    unsafe { Slot::look(slot, E::group) }
}

/// Returns the kind of a closure with a handle, which has the name of the type `N` in traces.
pub(super) fn of_task<N, F: FnOnce() -> T, T>() -> &'static Kind {
    const { &task_kind::<F, T>(execute::<F, T>, execute_alone::<F, T>, type_name::<N>) }
}

const fn task_kind<B: Body<T>, T>(
    execute: Execute,
    execute_alone: Execute,
    name: fn() -> &'static str,
) -> Kind {
    Kind {
        execute,
        execute_alone,
        leaves: false,
        group: None,
        is_job: false,
        credited: false,
        near: false,
        counts: true,
        settle: None,
        release: None,
        refuse: refuse::<B, T>,
        name,
        discard: discard::<T>,
    }
}

/// What a closure that is a job stands for.
#[derive(Clone, Copy)]
pub(crate) enum JobKind {
    /// The second half of a join.
    Half,
    /// The second half of a loop.
    Loop,
    /// Closures of a batch, which are counted one by one.
    Batch,
}

/// Returns the kind of a closure that is a job.
pub(super) fn of_job<F: FnOnce() -> T, T>(kind: JobKind) -> &'static Kind {
    const fn counted<F: FnOnce() -> T, T>(near: bool) -> Kind {
        job_kind::<F, T>(true, near, execute::<Rooted<F>, T>, execute_alone::<Rooted<F>, T>)
    }
    match kind {
        // The oldest half that a thread has published is its largest one, on whatever node.
        JobKind::Half => const { &counted::<F, T>(true) },
        JobKind::Loop => const { &counted::<F, T>(false) },
        JobKind::Batch => {
            const {
                let (execute, alone) = (execute_uncounted::<F, T>, execute_alone_uncounted::<F, T>);
                &job_kind::<F, T>(false, false, execute, alone)
            }
        }
    }
}

const fn job_kind<F: FnOnce() -> T, T>(
    counts: bool,
    near: bool,
    execute: Execute,
    execute_alone: Execute,
) -> Kind {
    Kind {
        execute,
        execute_alone,
        leaves: false,
        group: Some(group_of_job::<F>),
        is_job: true,
        credited: false,
        near,
        counts,
        settle: None,
        release: None,
        refuse: refuse::<Rooted<F>, T>,
        name: type_name::<F>,
        discard: discard::<T>,
    }
}

/// Implements [`Kind::execute`] for jobs that are not counted.
unsafe fn execute_uncounted<F: FnOnce() -> T, T>(
    slot: NonNull<Slot>,
    hook: &Arc<PanicHook>,
) -> End {
    // SAFETY: started by the caller, by the caller's promise.
    let _ = unsafe { execute::<Rooted<F>, T>(slot, hook) };
    End::Counted
}

/// Implements [`Kind::execute_alone`] for jobs that are not counted.
unsafe fn execute_alone_uncounted<F: FnOnce() -> T, T>(
    slot: NonNull<Slot>,
    hook: &Arc<PanicHook>,
) -> End {
    // SAFETY: started by the caller, and no other thread will ever look, by the caller's promise.
    let _ = unsafe { execute_alone::<Rooted<F>, T>(slot, hook) };
    End::Counted
}

/// Implements [`Kind::execute`].
unsafe fn execute<F: Body<T>, T>(slot: NonNull<Slot>, hook: &Arc<PanicHook>) -> End {
    // SAFETY: started by the caller, so the closure is in the slot and belongs to the caller.
    let closure: F = unsafe { Slot::take(slot) };
    let (outcome, end): (Outcome<T>, _) = match catch_unwind(AssertUnwindSafe(|| closure.call())) {
        Ok(value) => (Ok(value), End::Completed),
        Err(payload) => {
            let end = End::unwound(&*payload);
            (Err(Failure::panicked(payload, hook)), end)
        }
    };
    // SAFETY: the room still belongs to the caller, and is empty, because the closure was taken out.
    unsafe { Slot::put(slot, outcome) };
    end
}

/// Implements [`Kind::execute_alone`].
unsafe fn execute_alone<F: Body<T>, T>(slot: NonNull<Slot>, hook: &Arc<PanicHook>) -> End {
    // SAFETY: started by the caller, so the closure is in the slot and belongs to the caller.
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

/// Drops a result that no handle takes. If that panics, the hook is called.
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

/// Implements [`Kind::refuse`].
unsafe fn refuse<F: Body<T>, T>(slot: NonNull<Slot>, refusal: Refusal) -> u64 {
    // SAFETY: started by the caller, so the closure is in the slot and belongs to the caller.
    let closure: F = unsafe { Slot::take(slot) };
    contain(|| drop(closure));
    // SAFETY: the room still belongs to the caller, and is empty, because the closure was taken out.
    unsafe { Slot::put::<Outcome<T>>(slot, Err(Failure::Refused(refusal))) };
    1
}

/// Implements [`Kind::discard`].
unsafe fn discard<T>(slot: NonNull<Slot>, hook: Option<&PanicHook>) {
    // SAFETY: the outcome is in the slot and belongs to the caller.
    match unsafe { Slot::take::<Outcome<T>>(slot) } {
        Ok(value) => drop_result(value, hook),
        Err(failure) => failure.report(),
    }
}

/// Implements [`Kind::discard`] for several results, each of which may panic when it is dropped.
unsafe fn discard_each<T>(slot: NonNull<Slot>, hook: Option<&PanicHook>) {
    // SAFETY: the outcome is in the slot and belongs to the caller.
    match unsafe { Slot::take::<Outcome<Vec<T>>>(slot) } {
        Ok(values) => values.into_iter().for_each(|value| drop_result(value, hook)),
        Err(failure) => failure.report(),
    }
}

/// A task without a handle, which takes care of its own outcome.
pub(crate) trait DetachedTask: Send {
    /// Is it a job, a part of a fork? See [`Kind::is_job`].
    const JOB: bool = false;

    /// Is it a part of a scope? See [`Kind::credited`].
    const CREDITED: bool = false;

    /// Is it a part of something, a fork or a batch? See [`Kind::group`].
    const PART: bool = Self::JOB;

    /// Returns the name of the task in traces: see [`Kind::name`].
    fn name() -> &'static str {
        type_name::<Self>()
    }

    /// Returns the group of a part.
    fn group(&self) -> usize {
        unreachable!("only asked of parts")
    }

    fn run(&mut self, hook: &Arc<PanicHook>) -> End;

    /// Notes that the task will not run. Returns how many tasks it stands for.
    fn refuse(&mut self, refusal: Refusal) -> u64;

    /// Notifies the threads that wait for the task. Called after `run` or `refuse`, when the task has been counted.
    fn finish(self);
}

/// Implements [`Kind::execute_alone`] for detached tasks.
unsafe fn run_detached<E: DetachedTask>(slot: NonNull<Slot>, hook: &Arc<PanicHook>) -> End {
    // It runs in its place: a copy would take room on the stack, where tasks that wait run others on top.
    // SAFETY: started by the caller, so the detached task is in the slot and belongs to the caller.
    unsafe { Slot::change(slot, |detached: &mut E| detached.run(hook)) }
}

/// Implements [`Kind::refuse`] for detached tasks.
unsafe fn refuse_detached<E: DetachedTask>(slot: NonNull<Slot>, refusal: Refusal) -> u64 {
    // SAFETY: started by the caller, so the detached task is in the slot and belongs to the caller.
    let mut detached: E = unsafe { Slot::take(slot) };
    let count = detached.refuse(refusal);
    // SAFETY: the room still belongs to the caller, and is empty, because the detached task was taken out.
    unsafe { Slot::put(slot, detached) };
    count
}

/// Implements [`Kind::discard`] for detached tasks, which leave themselves as the outcome.
unsafe fn finish_detached<E: DetachedTask>(slot: NonNull<Slot>, _: Option<&PanicHook>) {
    // SAFETY: the room belongs to the caller, and one of the functions above has put the detached task back into it.
    unsafe { Slot::take::<E>(slot) }.finish();
}

/// Returns the kind of a detached task.
pub(super) fn of_detached<E: DetachedTask>() -> &'static Kind {
    const {
        &Kind {
            execute: never_run,
            execute_alone: run_detached::<E>,
            leaves: true,
            group: if E::PART { Some(group_of_detached::<E>) } else { None },
            is_job: E::JOB,
            credited: E::CREDITED,
            near: false,
            counts: true,
            settle: None,
            release: None,
            refuse: refuse_detached::<E>,
            name: E::name,
            discard: finish_detached::<E>,
        }
    }
}

/// Returns the kind of a promise of several results.
pub(super) fn of_promise<T>() -> &'static Kind {
    const {
        &Kind {
            execute: never_run,
            execute_alone: never_run_alone,
            leaves: false,
            group: None,
            is_job: false,
            credited: false,
            near: false,
            counts: true,
            settle: None,
            release: None,
            refuse: never_refused,
            name: type_name::<T>,
            discard: discard_each::<T>,
        }
    }
}

/// Stands in for [`Kind::execute`] and is never called. A promise is never in a queue and never claimed: it counts as
/// started from the beginning. A detached task has no handle that could claim it.
unsafe fn never_run(_: NonNull<Slot>, _: &Arc<PanicHook>) -> End {
    unreachable!("a promise is never run, and a detached task runs alone")
}

/// Stands in for [`Kind::execute_alone`] and is never called, because a promise is never in a queue.
unsafe fn never_run_alone(_: NonNull<Slot>, _: &Arc<PanicHook>) -> End {
    unreachable!("a promise is kept, not run")
}

/// Stands in for [`Kind::refuse`] and is never called, because a promise is never in a queue.
unsafe fn never_refused(_: NonNull<Slot>, _: Refusal) -> u64 {
    unreachable!("a promise is kept, not refused")
}
