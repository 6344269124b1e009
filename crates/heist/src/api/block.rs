//! `block_on`: waits for a future as the pool's threads wait for tasks.

use std::pin::pin;
use std::task::{Context, Poll, Wake, Waker};

use crate::sync::{Arc, Mutex, ReceiverArc, into_receiver, lock};
use crate::task::{Promise, TaskHandle};
use crate::worker::wait::{NO_POOL, wait};

/// Runs a future to its end on the calling thread, and returns its result.
///
/// On a worker of a pool, another thread goes on with the worker's other tasks while the future is pending, as it does
/// when the worker waits for a [`JoinHandle`](crate::JoinHandle::join). So tasks, futures and wakers of the same pool can
/// make the future ready, even if the pool has one worker. Nothing else runs on the calling thread meanwhile, not even
/// parts of the same task: what a future waits for is not known, and may be something that only continues when this call
/// has returned. On a thread of no pool, the thread sleeps.
///
/// A call inside of another one, in a future that is polled by it, waits in the same way.
///
/// ```
/// let pool = heist::Pool::builder().workers(1).build()?;
/// let sum = pool.spawn(|| {
///     let (one, two) = (heist::spawn(|| 1), heist::spawn(|| 2));
///     heist::block_on(async { one.await.unwrap() + two.await.unwrap() })
/// });
/// assert_eq!(heist::block_on(sum).unwrap(), 3);
/// # Ok::<(), heist::BuildError>(())
/// ```
///
/// # Panics
///
/// Panics if the future does.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let alarm = Arc::new(Alarm(Mutex::new(None)));
    let waker = Waker::from(into_receiver(Arc::clone(&alarm)));
    let mut context = Context::from_waker(&waker);
    loop {
        // A wake-up during the poll is not lost: it fulfils the promise, and the wait below is over at once.
        let woken = alarm.set();
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => wait(&woken, NO_POOL),
        }
    }
}

/// The waker of a thread in `block_on`. Holds the promise that the next wake-up fulfils, if there was none since the last
/// poll began.
struct Alarm(Mutex<Option<Promise<()>>>);

impl Alarm {
    /// Returns the handle of the next wake-up.
    fn set(&self) -> TaskHandle<Vec<()>> {
        let (promise, woken) = Promise::new();
        let before = lock(&self.0).replace(promise);
        debug_assert!(before.is_none(), "the last wait has ended by a wake-up");
        woken
    }
}

impl Wake for Alarm {
    fn wake(self: ReceiverArc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &ReceiverArc<Self>) {
        // A statement of its own: the thread is notified without the lock.
        let promise = lock(&self.0).take();
        if let Some(promise) = promise {
            promise.fulfil(Ok(Vec::new()), None);
        }
    }
}
