//! Counts the threads that serve the requests of a run: a library may start more of them while some wait.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The threads of all pools that have worked in one run.
#[derive(Default)]
pub(super) struct Threads(Mutex<Count>);

#[derive(Default)]
struct Count {
    /// Those that have not ended.
    alive: usize,
    peak: usize,
}

thread_local! {
    static MEMBER: RefCell<Option<Member>> = const { RefCell::new(None) };
}

/// Says that the current thread has worked in a run. It is dropped when the thread works in another run, or ends.
struct Member(Arc<Threads>);

impl Threads {
    /// Notes that the current thread works in this run. Every piece of work calls this.
    pub(super) fn note(this: &Arc<Self>) {
        MEMBER.with_borrow_mut(|member| {
            if !member.as_ref().is_some_and(|Member(run)| Arc::ptr_eq(run, this)) {
                *member = Some(Member::join(this));
            }
        });
    }

    /// Returns the largest number of these threads that were alive at the same time.
    pub(super) fn peak(&self) -> usize {
        self.count().peak
    }

    fn count(&self) -> MutexGuard<'_, Count> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Member {
    fn join(run: &Arc<Threads>) -> Self {
        let mut count = run.count();
        count.alive += 1;
        count.peak = count.peak.max(count.alive);
        Self(Arc::clone(run))
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.0.count().alive -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_thread_counts_once_and_until_its_end() {
        let run = Arc::default();
        let work = || (0..3).for_each(|_| Threads::note(&run));
        thread::scope(|scope| {
            for _ in 0..3 {
                // A thread that was joined by its handle has dropped its thread-local values.
                scope.spawn(work).join().unwrap();
            }
        });
        assert_eq!(run.peak(), 1);
        work();
        thread::scope(|scope| scope.spawn(work).join().unwrap());
        assert_eq!(run.peak(), 2);
    }
}
