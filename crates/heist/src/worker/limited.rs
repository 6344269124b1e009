//! Waits that end at a certain time, whether what is awaited has happened or not.

use std::cell::{Cell, OnceCell};
use std::time::Duration;

use crate::sync::{Arc, Instant};
use crate::task::listener::Listener;
use crate::task::{Awaited, Claimed};
use crate::worker::wait::{NO_POOL, wait};

/// The longest limit: no more than can be added to any reading of the clock.
const LONGEST: Duration = Duration::from_secs(1 << 30);

/// A checker has no time. There, the time has passed after this many looks at it.
const LOOKS: u32 = 4;

/// A promise, and until when a thread waits for it.
pub(crate) struct Limited<'w> {
    promise: &'w dyn Awaited,
    end: Instant,
    /// What was registered with the promise.
    listener: OnceCell<Arc<Listener>>,
    /// How often a checker has looked at the time.
    looks: Cell<u32>,
}

impl<'w> Limited<'w> {
    pub(crate) fn new(promise: &'w dyn Awaited, limit: Duration) -> Self {
        let end = Instant::now() + limit.min(LONGEST);
        Self { promise, end, listener: OnceCell::new(), looks: Cell::new(0) }
    }

    /// Returns whether the time has passed.
    pub(crate) fn is_over(&self) -> bool {
        if cfg!(any(loom, shuttle)) {
            self.looks.set(self.looks.get() + 1);
            return self.looks.get() > LOOKS;
        }
        Instant::now() >= self.end
    }

    /// Waits until the promise is fulfilled, or until the time has passed, and returns whether it is fulfilled. A worker hands
    /// its core to another thread meanwhile, as in any wait. May be called once.
    pub(crate) fn wait(&self) -> bool {
        wait(self, NO_POOL);
        self.promise.is_done()
    }

    /// Waits until the promise is fulfilled, however long that takes. After [`wait`](Self::wait), that must be a moment: the thread
    /// keeps its core.
    pub(crate) fn wait_on(&self) {
        let Some(listener) = self.listener.get() else { return wait(self.promise, NO_POOL) };
        // A promise has one listener. The thread that it notifies is this one.
        while !self.promise.is_done() {
            listener.sleeper().park();
        }
    }
}

impl Awaited for Limited<'_> {
    fn id(&self) -> usize {
        self.promise.id()
    }

    fn is_done(&self) -> bool {
        self.promise.is_done() || self.is_over()
    }

    fn listen(&self, listener: Arc<Listener>) -> bool {
        let is_first = self.listener.set(Arc::clone(&listener)).is_ok();
        debug_assert!(is_first, "a wait registers its listener once");
        self.promise.listen(listener)
    }

    /// No thread can run what fulfils a promise.
    fn claim(&self) -> Option<Claimed<'_>> {
        None
    }

    fn end(&self) -> Option<Instant> {
        Some(self.end)
    }
}

#[cfg(all(test, not(any(loom, shuttle, sim))))]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::sync::{ThreadBuilder, ThreadHandle};
    use crate::task::Promise;
    use crate::{Pool, Strategy};

    /// What takes longer than that has gone wrong.
    const LONG: Duration = Duration::from_secs(100);

    fn fulfil_elsewhere(promise: Promise<()>) -> ThreadHandle<()> {
        let fulfil = move || promise.fulfil(Ok(Vec::new()), None);
        ThreadBuilder::new().spawn(fulfil).expect("a thread")
    }

    fn fulfilled_elsewhere() -> bool {
        let (promise, handle) = Promise::<()>::new();
        let fulfil = fulfil_elsewhere(promise);
        let is_done = Limited::new(&handle, LONG).wait();
        fulfil.join().expect("no panic");
        is_done
    }

    fn times_out() -> bool {
        let (promise, handle) = Promise::<()>::new();
        let limited = Limited::new(&handle, Duration::from_millis(2));
        let is_done = limited.wait();
        let fulfil = fulfil_elsewhere(promise);
        limited.wait_on();
        fulfil.join().expect("no panic");
        is_done
    }

    #[test]
    fn outside() {
        assert!(fulfilled_elsewhere());
        assert!(!times_out());
    }

    #[test]
    fn on_a_worker() {
        for strategy in Strategy::ALL {
            let pool = Pool::builder().workers(1).strategy(strategy).build().expect("a pool");
            assert!(pool.install(fulfilled_elsewhere));
            assert!(!pool.install(times_out));
        }
    }

    #[test]
    fn no_time_at_all() {
        let (promise, handle) = Promise::<()>::new();
        let limited = Limited::new(&handle, Duration::ZERO);
        assert!(!limited.wait());
        promise.fulfil(Ok(Vec::new()), None);
        limited.wait_on();
    }

    /// The only worker runs what fulfils the promise while it waits.
    #[test]
    fn the_core_goes_to_another_thread() {
        for strategy in Strategy::ALL {
            let pool = Pool::builder().workers(1).strategy(strategy).build().expect("a pool");
            let (promise, handle) = Promise::<()>::new();
            let (begun, has_begun) = mpsc::channel();
            let waits = pool.spawn(move || {
                begun.send(()).expect("the test waits");
                Limited::new(&handle, LONG).wait()
            });
            has_begun.recv().expect("the task has begun");
            drop(pool.spawn(move || promise.fulfil(Ok(Vec::new()), None)));
            assert!(waits.join().expect("no panic"));
        }
    }

    /// The threads of a pool may not be more than its workers. What runs on top may take longer than the limit.
    #[test]
    fn without_another_thread() {
        let pool = Pool::builder().workers(1).max_threads(1).build().expect("a pool");
        let (promise, handle) = Promise::<()>::new();
        let waits = pool.spawn(move || Limited::new(&handle, LONG).wait());
        drop(pool.spawn(move || promise.fulfil(Ok(Vec::new()), None)));
        assert!(waits.join().expect("no panic"));
    }
}
