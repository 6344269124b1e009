//! The smallest executor: it parks the thread, and a waker unparks it.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

pub(crate) fn poll_once<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

/// Counts how often its wakers were used, and knows how many of them there are.
#[derive(Default)]
pub(crate) struct Alarm {
    rung: AtomicUsize,
}

impl Alarm {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn waker(self: &Arc<Self>) -> Waker {
        Waker::from(Arc::clone(self))
    }

    pub(crate) fn rung(&self) -> usize {
        self.rung.load(Ordering::Acquire)
    }

    /// How many wakers are somewhere.
    pub(crate) fn wakers(self: &Arc<Self>) -> usize {
        Arc::strong_count(self) - 1
    }
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.rung.fetch_add(1, Ordering::Release);
    }
}
