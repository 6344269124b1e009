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
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;

use super::{in_another_root, in_root, is_open, replace, root};
use crate::panic::Stopped;
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

/// Returns the innermost control that the calling code is a part of, if there is one, and calls `f` with it.
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
    let (root, call) = (root_of(control), || catch_unwind(AssertUnwindSafe(f)));
    if is_open() {
        return in_root(root, call);
    }
    // A thread of no pool has no jobs. If it becomes a guest within `f`, that looks at this root.
    let outer = replace(root);
    let result = call();
    replace(outer);
    result
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
    let cancelled = |control: &Control| {
        (control.outer.is_some() && control.is_cancelled()).then(|| root_of(control))
    };
    if let Some(run) = find_control(cancelled) {
        // Not `panic_any`, which would call the panic hook of the program.
        resume_unwind(Box::new(Stopped { run }));
    }
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
