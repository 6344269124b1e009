//! Which panic of a scope's parts is passed on: the first one that no handle has returned.

use std::any::Any;

use crate::panic::{Panic, contain};
use crate::sync::{Arc, Mutex, lock};

/// The panics of a scope's parts, in the order in which they came.
#[derive(Default)]
pub(super) struct Panics(Vec<Unhandled>);

/// A panic that nobody has handled yet, as far as is known.
enum Unhandled {
    /// That of a part without a handle.
    Payload(Box<dyn Any + Send>),
    /// That of a part with a handle, which may be joined at any time.
    Shared(Arc<PartPanic>),
}

/// The panic of a part that has a handle. The scope takes it, or the handle does.
pub(super) struct PartPanic {
    message: Box<str>,
    panic: Mutex<Option<Panic>>,
}

impl PartPanic {
    /// Takes the panic for the handle. If the scope was faster, which happens only to a handle that was kept until the scope
    /// had ended, the result has the message, but the payload is the same text.
    pub(super) fn handle(&self) -> Panic {
        let panic = lock(&self.panic).take();
        panic.unwrap_or_else(|| Panic::new(Box::new(String::from(&*self.message))))
    }
}

impl Panics {
    /// Keeps the panic of a part without a handle. Returns it if there is one already: only the first can be passed on.
    #[must_use = "a payload is dropped outside of the lock"]
    pub(super) fn keep(&mut self, payload: Box<dyn Any + Send>) -> Option<Box<dyn Any + Send>> {
        if self.0.iter().any(|panic| matches!(panic, Unhandled::Payload(_))) {
            return Some(payload);
        }
        self.0.push(Unhandled::Payload(payload));
        None
    }

    /// Keeps the panic of a part with a handle, and returns it for the handle.
    pub(super) fn share(&mut self, panic: Panic) -> Arc<PartPanic> {
        let message = panic.message().into();
        let panic = Arc::new(PartPanic { message, panic: Mutex::new(Some(panic)) });
        self.0.push(Unhandled::Shared(Arc::clone(&panic)));
        panic
    }

    /// Returns the payload of the first panic that no handle has returned. The others are dropped, or left to their handles.
    pub(super) fn into_first(self) -> Option<Box<dyn Any + Send>> {
        let mut first = None;
        for panic in self.0 {
            match panic {
                Unhandled::Payload(payload) if first.is_none() => first = Some(payload),
                Unhandled::Shared(panic) if first.is_none() => {
                    first = lock(&panic.panic).take().map(Panic::into_payload);
                }
                other => contain(|| drop(other)),
            }
        }
        first
    }
}
