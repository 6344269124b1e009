//! Finds out that a shape hangs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How often to look. Looks are counted, not time: a process that was stopped for an hour does not hang.
const LOOK: Duration = Duration::from_secs(1);
/// After so many looks at the same shape it hangs. One takes milliseconds; on a busy machine, in a debug build, a second.
const PATIENCE: u32 = 60;

/// Watches until it is dropped.
pub(super) struct Watch {
    seen: Arc<Seen>,
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Seen {
    /// How many shapes have begun,
    begun: AtomicU64,
    /// and the number of the last.
    number: AtomicU64,
}

impl Watch {
    /// The closure is called, on another thread, with the number of a shape that hangs.
    pub(super) fn start(hangs: impl FnOnce(u64) + Send + 'static) -> Self {
        Self::with(LOOK, hangs)
    }

    fn with(look: Duration, hangs: impl FnOnce(u64) + Send + 'static) -> Self {
        let seen = Arc::new(Seen::default());
        let (end, ended) = mpsc::channel::<()>();
        let shared = Arc::clone(&seen);
        let thread = thread::spawn(move || {
            let (mut last, mut looks) = (0, 0);
            while ended.recv_timeout(look) == Err(RecvTimeoutError::Timeout) {
                let begun = shared.begun.load(Ordering::Relaxed);
                looks = if begun > 0 && begun == last { looks + 1 } else { 0 };
                last = begun;
                if looks == PATIENCE {
                    return hangs(shared.number.load(Ordering::Relaxed));
                }
            }
        });
        Self { seen, end: Some(end), thread: Some(thread) }
    }

    /// What was before has ended.
    pub(super) fn begins(&self, number: u64) {
        self.seen.number.store(number, Ordering::Relaxed);
        self.seen.begun.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it does not panic");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_end_is_found() {
        let (tell, told) = mpsc::channel();
        let watch = Watch::with(Duration::from_millis(1), move |number| tell.send(number).unwrap());
        watch.begins(5);
        assert_eq!(told.recv(), Ok(5));
    }

    #[test]
    fn what_ends_is_not() {
        let watch = Watch::start(|number| panic!("{number} does not hang"));
        watch.begins(1);
        drop(watch);
    }
}
