//! Which panic of a scope's parts is passed on: the first one that no handle has returned.

use std::any::Any;
use std::mem;

use crate::panic::{Panic, Stopped, contain};
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
    /// Keeps the panic of a part without a handle. Returns one that is not passed on: only the first one is, and a panic comes
    /// before the end of a part that was cancelled.
    #[must_use = "a payload is dropped outside of the lock"]
    pub(super) fn keep(&mut self, payload: Box<dyn Any + Send>) -> Option<Box<dyn Any + Send>> {
        for unhandled in &mut self.0 {
            if let Unhandled::Payload(first) = unhandled {
                let is_worse = first.is::<Stopped>() && !payload.is::<Stopped>();
                return Some(if is_worse { mem::replace(first, payload) } else { payload });
            }
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

    /// Returns the payload of the first panic that no handle has returned; a panic comes before the end of a part that was
    /// cancelled. The others are dropped, or left to their handles.
    pub(super) fn into_first(self) -> Option<Box<dyn Any + Send>> {
        let mut first: Option<Box<dyn Any + Send>> = None;
        for panic in self.0 {
            if first.as_ref().is_some_and(|first| !first.is::<Stopped>()) {
                contain(|| drop(panic));
                continue;
            }
            let next = match panic {
                Unhandled::Payload(payload) => Some(payload),
                Unhandled::Shared(panic) => lock(&panic.panic).take().map(Panic::into_payload),
            };
            first = match (first, next) {
                (Some(stopped), Some(next)) if next.is::<Stopped>() => Some(stopped),
                (first, next) => next.or(first),
            };
        }
        first
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn stopped() -> Box<dyn Any + Send> {
        Box::new(Stopped { run: 1 })
    }

    fn panic() -> Box<dyn Any + Send> {
        Box::new("a panic")
    }

    #[test]
    fn a_panic_comes_before_a_cancellation() {
        for payloads in [[stopped(), panic()], [panic(), stopped()]] {
            let mut panics = Panics::default();
            let others: usize =
                payloads.into_iter().map(|payload| panics.keep(payload).iter().count()).sum();
            assert_eq!(others, 1, "one is passed on");
            assert!(panics.into_first().expect("it was kept").is::<&str>());
        }
        for payloads in [[stopped(), panic()], [panic(), stopped()]] {
            let mut panics = Panics::default();
            payloads.into_iter().for_each(|payload| drop(panics.share(Panic::new(payload))));
            assert!(panics.into_first().expect("it was kept").is::<&str>());
        }
        let mut panics = Panics::default();
        assert!(panics.keep(stopped()).is_none());
        assert!(panics.into_first().expect("it was kept").is::<Stopped>());
    }
}
