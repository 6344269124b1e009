//! Detects that a case hangs.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The time between two looks. The watchdog counts looks instead of measuring time: a process that was
/// suspended for an hour does not hang.
const INTERVAL: Duration = Duration::from_secs(1);
/// A case hangs if so many looks in a row find it running. A case takes milliseconds; in a debug build or
/// under a sanitizer, on a busy machine, it takes a second.
const LIMIT: u32 = 60;

/// A thread that reports a case that does not end within about a minute. It ends when this is dropped.
///
/// ```
/// let watchdog = heist_stress::Watchdog::start(|case: u64| eprintln!("case {case} hangs"));
/// let watched = watchdog.watch(7);
/// // ... run case 7 here ...
/// drop(watched);
/// ```
#[derive(Debug)]
pub struct Watchdog<T> {
    running: Arc<Running<T>>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The case that is running, with the number of cases that were started up to it.
#[derive(Debug)]
struct Running<T>(Mutex<(u64, Option<T>)>);

impl<T> Running<T> {
    fn lock(&self) -> MutexGuard<'_, (u64, Option<T>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send + 'static> Watchdog<T> {
    /// Starts the thread. It calls `on_hang` with the first case that hangs.
    pub fn start(on_hang: impl FnOnce(T) + Send + 'static) -> Self {
        Self::with_interval(INTERVAL, on_hang)
    }

    fn with_interval(interval: Duration, on_hang: impl FnOnce(T) + Send + 'static) -> Self {
        let running = Arc::new(Running(Mutex::new((0, None))));
        let (stop, stopped) = mpsc::channel::<()>();
        let shared = Arc::clone(&running);
        let thread = thread::spawn(move || {
            let (mut last, mut looks) = (0, 0);
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                let mut running = shared.lock();
                let (started, case) = &mut *running;
                looks = if case.is_some() && *started == last { looks + 1 } else { 0 };
                last = *started;
                if looks == LIMIT {
                    let case = case.take();
                    drop(running);
                    if let Some(case) = case {
                        on_hang(case);
                    }
                    return;
                }
            }
        });
        Self { running, stop: Some(stop), thread: Some(thread) }
    }

    /// Watches `case` until the returned guard is dropped. One case is watched at a time.
    pub fn watch(&self, case: T) -> Watched<'_, T> {
        let mut running = self.running.lock();
        *running = (running.0 + 1, Some(case));
        Watched(&self.running)
    }
}

/// A case that is being watched, see [`Watchdog::watch`].
#[must_use = "the case is watched until this is dropped"]
#[derive(Debug)]
pub struct Watched<'w, T>(&'w Running<T>);

impl<T> Drop for Watched<'_, T> {
    fn drop(&mut self) {
        self.0.lock().1 = None;
    }
}

impl<T> Drop for Watchdog<T> {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the watchdog does not panic");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_that_does_not_end_is_reported() {
        let (send, receive) = mpsc::channel();
        let report = move |case: u64| send.send(case).unwrap();
        let watchdog = Watchdog::with_interval(Duration::from_millis(1), report);
        let _watched = watchdog.watch(5);
        assert_eq!(receive.recv(), Ok(5));
    }

    #[test]
    fn a_case_that_ends_is_not_reported() {
        let watchdog = Watchdog::start(|case: u64| panic!("case {case} does not hang"));
        drop(watchdog.watch(1));
        drop(watchdog);
    }

    #[test]
    fn a_finished_case_is_forgotten() {
        let watchdog = Watchdog::start(|case: u64| panic!("case {case} does not hang"));
        drop(watchdog.watch(1));
        assert_eq!(*watchdog.running.lock(), (1, None));
    }
}
