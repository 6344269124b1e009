//! How code finds the control of the task that it is a part of, on whatever thread it runs.
//!
//! What a task forks carries the root of the task with it. The root is a number that is only compared, as a rule. If the task
//! has a [`Control`], the root is the address of that, with a flag; then all parts of the task can look at it. The root of an
//! `isolate` call within such a task, or of a part of its scopes that has a handle, is the address of a word with the root
//! around it, with another flag.
//!
//! Both addresses are valid as long as something has that root: a task ends, and an `isolate` call returns, after everything
//! that was forked within.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;

use super::{in_another_root, in_root, is_open, replace, root};
use crate::panic::Stopped;
use crate::sync::{panicking, per_thread};
use crate::task::Control;

/// The root is the address of a [`Control`], plus this.
const CONTROL: usize = 1;
/// The root is the address of another root, plus this.
const NESTED: usize = 2;
/// The flags of a root. Without one, it is only a number.
const FLAGS: usize = CONTROL | NESTED;

/// Returns the root of a task with that control.
pub(crate) fn root_of(control: &Control) -> usize {
    (&raw const *control).expose_provenance() + CONTROL
}

/// Returns whether a root is more than a number.
#[inline(always)]
pub(crate) fn has_flag(root: usize) -> bool {
    root & FLAGS != 0
}

/// Returns whether the code that runs on this thread may be a part of a task with a control. If not, it is not.
#[inline(always)]
pub(crate) fn is_controlled() -> bool {
    has_flag(root())
}

/// Calls `f` with the innermost control that the calling code is a part of. Returns `None` if there is no control.
pub(crate) fn control<R>(f: impl FnOnce(&Control) -> R) -> Option<R> {
    // SAFETY: the calling code has this root.
    unsafe { control_of(root()) }.map(f)
}

/// Calls `f` with the controls that the calling code is a part of, from the innermost to that of its task, until one returns
/// something.
pub(crate) fn find_control<R>(f: impl Fn(&Control) -> Option<R>) -> Option<R> {
    let mut root = root();
    loop {
        // SAFETY: the calling code has the first root, and so it is a part of what has the others.
        let control = unsafe { control_of(root) }?;
        if let Some(found) = f(control) {
            return Some(found);
        }
        root = control.outer?;
    }
}

/// Returns the innermost control of code with that root.
///
/// # Safety
///
/// The calling code has the root, or is a part of something that does, as long as the reference is used.
unsafe fn control_of<'a>(mut root: usize) -> Option<&'a Control> {
    while root & FLAGS == NESTED {
        let outer = ptr::with_exposed_provenance::<usize>(root - NESTED);
        // SAFETY: it is the address of a word that is valid and does not change as long as something has this root, by what
        // `nested_in` says; and something has it, by the caller's promise.
        root = unsafe { *outer };
    }
    if root & FLAGS != CONTROL {
        return None;
    }
    let control = ptr::with_exposed_provenance::<Control>(root - CONTROL);
    // SAFETY: it is the address that `root_of` has exposed. Whoever calls `within` keeps the control until that returns, which
    // is not before what has this root has ended; and something has it, by the caller's promise.
    Some(unsafe { &*control })
}

/// Calls `f` as a task with that control: what it forks can look at the control.
pub(crate) fn controlled<R>(control: &Control, f: impl FnOnce() -> R) -> R {
    within(control, f).unwrap_or_else(|payload| resume_unwind(payload))
}

/// Calls `f` with that control, on any thread, and returns its result or its panic.
pub(crate) fn within<R>(
    control: &Control,
    f: impl FnOnce() -> R,
) -> Result<R, Box<dyn Any + Send>> {
    under(root_of(control), || catch_unwind(AssertUnwindSafe(f)))
}

/// Calls `f` with that root, on any thread. `f` does not panic.
pub(crate) fn under<R>(root: usize, f: impl FnOnce() -> R) -> R {
    if is_open() {
        return in_root(root, f);
    }
    // A thread of no pool has no jobs. If it becomes a guest within `f`, that looks at this root.
    let outer = replace(root);
    let result = f();
    replace(outer);
    result
}

per_thread! {
    /// Does this thread run a task or a job in the middle of a panic, because no other thread can?
    static IN_PANIC: Cell<bool> = Cell::new(false);
}

/// Calls `f`, which runs a task or a job, in the middle of a panic or not. What it runs may end early: its panics are caught.
pub(crate) fn caught<R>(f: impl FnOnce() -> R) -> R {
    let before = IN_PANIC.with(|in_panic| in_panic.replace(panicking()));
    let result = f();
    IN_PANIC.with(|in_panic| in_panic.set(before));
    result
}

/// Calls `f`, which is a loop, a sort or a scope. In a destructor that runs in the middle of a panic, or of the end of another
/// loop, it does not end early, because unwinding from there would end the process. So nothing there finds a control.
#[inline(always)]
pub(crate) fn enter<R>(f: impl FnOnce() -> R) -> R {
    if is_controlled() && panicking() { in_destructor(f) } else { f() }
}

#[cold]
#[inline(never)]
fn in_destructor<R>(f: impl FnOnce() -> R) -> R {
    if IN_PANIC.with(Cell::get) {
        return f();
    }
    let place = 0_usize;
    let root = (&raw const place).addr();
    match under(root, || catch_unwind(AssertUnwindSafe(f))) {
        Ok(value) => value,
        Err(payload) => resume_unwind(payload),
    }
}

/// Ends the innermost call of `CancelToken::run` around the calling code whose token was cancelled, by unwinding, if there is
/// one. Loops call this between two blocks.
#[inline(always)]
pub(crate) fn stop_point() {
    if is_controlled() {
        stop_if_cancelled();
    }
}

#[cold]
#[inline(never)]
fn stop_if_cancelled() {
    if panicking() && !IN_PANIC.with(Cell::get) {
        // In a destructor: see `enter`.
        return;
    }
    if let Some(payload) = stopped() {
        // Not `panic_any`, which would call the panic hook of the program.
        resume_unwind(payload);
    }
}

/// Returns the payload with which the calling code has to unwind, if the token of a `CancelToken::run` around it was cancelled.
pub(crate) fn stopped() -> Option<Box<dyn Any + Send>> {
    let cancelled = |control: &Control| {
        (control.ends_early && control.is_cancelled()).then(|| root_of(control))
    };
    let run = if is_controlled() { find_control(cancelled) } else { None }?;
    Some(Box::new(Stopped { run }))
}

/// Returns whether the calling code is a part of that call of `CancelToken::run`.
pub(crate) fn is_within(stopped: &Stopped) -> bool {
    find_control(|control| (root_of(control) == stopped.run).then_some(())).is_some()
}

/// Calls `f`, with this call as the root of what it forks. On a thread of no pool `f` is just called.
pub(crate) fn isolated<R>(f: impl FnOnce() -> R) -> R {
    if is_open() { isolated_as(root(), f) } else { f() }
}

/// Calls `f`, with this call as the root of what it forks. It finds the control that code with the root `outer` finds. Only on
/// a thread of a pool.
pub(crate) fn isolated_as<R>(outer: usize, f: impl FnOnce() -> R) -> R {
    let root = if has_flag(outer) { nested_in(&outer) } else { (&raw const outer).addr() };
    in_another_root(root, f)
}

/// Returns a root for code that finds the control which code with the root `outer` finds. The reference is valid, and the word
/// does not change, as long as something has the root that this returns.
pub(crate) fn nested_in(outer: &usize) -> usize {
    (&raw const *outer).expose_provenance() + NESTED
}
