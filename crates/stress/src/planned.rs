//! Panics that are part of a case, and how they are distinguished from those that are not.

use std::any::Any;
use std::panic::resume_unwind;

use crate::error::Violation;

/// The message of a planned panic. A pipeline's planned errors and panics start with it.
pub(crate) const PLANNED: &str = "planned";

/// Panics as `panic!` does, but without calling the panic hook: nothing is printed.
pub(crate) fn planned_panic() -> ! {
    resume_unwind(Box::new(PLANNED))
}

/// Returns an error unless `payload` is that of [`planned_panic`].
pub(crate) fn expect_planned(payload: &(dyn Any + Send)) -> Result<(), Violation> {
    expect_planned_message(message_of(payload))
}

/// Returns an error unless `message` is that of [`planned_panic`].
pub(crate) fn expect_planned_message(message: &str) -> Result<(), Violation> {
    if message == PLANNED {
        Ok(())
    } else {
        Err(Violation::Panic(format!("a panic that was not planned: {message}")))
    }
}

fn message_of(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
}
