//! What a task carries that was spawned by a builder: its priority, and who may cancel it. A call of `CancelToken::run` has the
//! same.

use crate::cancel::CancelToken;
use crate::priority::Priority;
use crate::sync::{AtomicBool, Ordering};

/// The control of a task. Its task and the handle share it; while the task runs, all of its parts find it by their root
/// (`fork::job`). Aligned, so that a root has room for flags.
#[repr(align(16))]
pub(crate) struct Control {
    pub(crate) priority: Priority,
    /// Was the task cancelled by its handle?
    ///
    /// Ordering: relaxed. No data is passed with it.
    cancelled: AtomicBool,
    /// The token that cancels the task, if there is one.
    token: Option<CancelToken>,
    /// The worker that the task is near, if it was pushed to the inbox of one.
    pub(crate) near: Option<usize>,
    /// The root of the code around it, if this is not the control of a task but that of a part of a scope, or of a call of
    /// [`CancelToken::run`].
    pub(crate) outer: Option<usize>,
    /// Is it that of a call of [`CancelToken::run`], which ends early by unwinding?
    pub(crate) ends_early: bool,
}

impl Control {
    pub(crate) fn new(priority: Priority, token: Option<CancelToken>) -> Self {
        let cancelled = AtomicBool::new(false);
        Self { priority, cancelled, token, near: None, outer: None, ends_early: false }
    }

    /// Returns the control of a call of [`CancelToken::run`], within code that has that priority and that root.
    pub(crate) fn of_run(priority: Priority, token: &CancelToken, outer: usize) -> Self {
        Self { outer: Some(outer), ends_early: true, ..Self::new(priority, Some(token.clone())) }
    }

    /// Returns the control of a part of a scope that has that root.
    pub(crate) fn of_part(priority: Priority, token: Option<CancelToken>, outer: usize) -> Self {
        Self { outer: Some(outer), ..Self::new(priority, token) }
    }

    /// Returns the same control for what is near that worker, if any.
    pub(crate) fn near(self, worker: Option<usize>) -> Self {
        Self { near: worker, ..self }
    }

    /// Requests that the task ends, by its handle.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Returns whether the task, or the call, was cancelled: by its handle or by its token.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed) || self.is_token_cancelled()
    }

    /// Returns whether the token of the task was cancelled.
    pub(crate) fn is_token_cancelled(&self) -> bool {
        self.token.as_ref().is_some_and(CancelToken::is_cancelled)
    }
}
