//! How code finds the control of the task that it is a part of, on whatever thread it runs.
//!
//! What a task forks carries the root of the task with it. The root is a number that is only compared, as a rule. If the task
//! has a [`Control`], the root is the address of that, with a flag; then all parts of the task can look at it. The root of an
//! `isolate` call within such a task, or of a part of its scopes that has a handle, is the address of a word with the root
//! around it, with another flag.
//!
//! Both addresses are valid as long as something has that root: a task ends, and an `isolate` call returns, after everything
//! that was forked within.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;

use super::{in_another_root, in_root, is_open, root};
use crate::sync::Arc;
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

/// Calls `f` with the control of the task that the calling code is a part of, if it has one.
pub(crate) fn control<R>(f: impl FnOnce(&Control) -> R) -> Option<R> {
    let mut root = root();
    while root & FLAGS == NESTED {
        let outer = ptr::with_exposed_provenance::<usize>(root - NESTED);
        // SAFETY: it is the address of a word that is valid and does not change as long as something has this root, by what
        // `nested_in` says; and the calling code has it.
        root = unsafe { *outer };
    }
    if root & FLAGS != CONTROL {
        return None;
    }
    let control = ptr::with_exposed_provenance::<Control>(root - CONTROL);
    // SAFETY: it is the address that `root_of` has exposed. Whoever calls `controlled` keeps the control until that returns,
    // which is not before what has this root has ended; and the calling code has it.
    Some(f(unsafe { &*control }))
}

/// Calls `f` as a task with that control: what it forks can look at the control.
pub(crate) fn controlled<R>(control: &Arc<Control>, f: impl FnOnce() -> R) -> R {
    match in_root(root_of(control), || catch_unwind(AssertUnwindSafe(f))) {
        Ok(value) => value,
        Err(payload) => resume_unwind(payload),
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
