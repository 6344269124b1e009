//! The outcome of a task.

use std::any::Any;

use super::slot::Refusal;
use crate::error::JoinError;
use crate::panic::{Panic, PanicHook};
use crate::sync::Arc;

/// What the room of a slot holds once the task is done.
pub(super) type Outcome<T> = Result<T, Failure>;

pub(crate) enum Failure {
    Panicked(Box<Report>),
    Refused(Refusal),
}

/// A panic, and the hook to call if no handle takes it.
pub(crate) struct Report {
    panic: Panic,
    hook: Arc<PanicHook>,
}

impl Failure {
    pub(crate) fn panicked(payload: Box<dyn Any + Send>, hook: &Arc<PanicHook>) -> Self {
        Self::Panicked(Box::new(Report { panic: Panic::new(payload), hook: Arc::clone(hook) }))
    }

    pub(super) fn into_error(self) -> JoinError {
        match self {
            Self::Panicked(report) => JoinError::Panicked(report.panic),
            Self::Refused(Refusal::Cancelled) => JoinError::Cancelled,
            Self::Refused(Refusal::Stopped) => JoinError::Stopped,
        }
    }

    /// Reports a failure that no handle takes: a panic goes to the hook.
    pub(crate) fn report(self) {
        if let Self::Panicked(report) = self {
            report.hook.call(report.panic);
        }
    }
}
