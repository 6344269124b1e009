//! Futures for the tests.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

/// A flag that can be awaited by one future at a time.
#[derive(Clone, Default)]
pub(crate) struct Signal(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    is_set: bool,
    waker: Option<Waker>,
}

impl Signal {
    pub(crate) fn set(&self) {
        let mut state = self.0.lock().expect("no panic");
        state.is_set = true;
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Returns the waker of the future that waits, if there is one.
    pub(crate) fn waker(&self) -> Option<Waker> {
        self.0.lock().expect("no panic").waker.clone()
    }

    pub(crate) fn is_awaited(&self) -> bool {
        self.waker().is_some()
    }
}

/// Is ready when the flag is set.
impl Future for Signal {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock().expect("no panic");
        if state.is_set {
            return Poll::Ready(());
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

/// Wakes itself while it is polled, that many times.
pub(crate) struct Yields(pub(crate) usize);

impl Future for Yields {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.0 == 0 {
            return Poll::Ready(());
        }
        self.0 -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}
