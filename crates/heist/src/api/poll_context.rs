//! The context of a future, which is captured and restored for each of its polls.

use std::task::Poll;

use crate::sync::Arc;
use crate::worker::admission::Admission;
use crate::worker::context::Captured;
use crate::worker::current::AnyPool;

/// The context of a future: restored around each of its polls.
pub(super) struct PollContext {
    pool: Arc<dyn AnyPool>,
    /// For the next poll. `None` during a poll, and after one in which the hook has panicked.
    next: Option<Captured>,
}

impl PollContext {
    /// Captures the context of the calling thread, if the pool has a hook for that. Panics if the hook does.
    pub(super) fn capture(pool: &Arc<dyn AnyPool>) -> Option<Self> {
        let next = pool.admission().and_then(Admission::capture)?;
        Some(Self { pool: Arc::clone(pool), next: Some(next) })
    }

    /// Polls in the context. If the future is pending then, captures the context again, for its next poll: a context can be restored
    /// only once. Panics if the poll does, or the hook.
    pub(super) fn around<T>(&mut self, poll: impl FnOnce() -> Poll<T>) -> Poll<T> {
        let Some(captured) = self.next.take() else { return poll() };
        captured.around(|| {
            let polled = poll();
            if polled.is_pending() {
                self.next = self.pool.admission().and_then(Admission::capture);
            }
            polled
        })
    }
}
