//! Contexts: what a thread knows when it spawns a task, and the task is to know when it runs.

use std::any::type_name;
#[cfg(feature = "futures")]
use std::task::Poll;

use crate::api::builder::Builder;
use crate::api::pool::install_on;
use crate::fork::job;
#[cfg(feature = "futures")]
use crate::sync::Arc;
use crate::task::Task;
use crate::trace::rename;
use crate::worker::admission::Admission;
#[cfg(feature = "futures")]
use crate::worker::context::Captured;
use crate::worker::context::ContextHook;
#[cfg(feature = "futures")]
use crate::worker::current::AnyPool;
use crate::worker::current::current_pool;

impl Builder {
    /// Sets a hook that carries a context from the code that spawns a task to the task, such as the number of a request or
    /// the current span of `tracing`.
    ///
    /// The hook is called on the thread that spawns, and captures what it needs. It returns a closure, which is called on the
    /// thread that runs the task. That closure restores the context, calls `run`, which runs the task, and puts back what was
    /// there before.
    ///
    /// ```
    /// use std::cell::Cell;
    ///
    /// thread_local! {
    ///     static REQUEST: Cell<u32> = const { Cell::new(0) };
    /// }
    ///
    /// let pool = heist::Pool::builder()
    ///     .workers(2)
    ///     .context(|| {
    ///         let request = REQUEST.get();
    ///         move |run: &mut dyn FnMut()| {
    ///             let before = REQUEST.replace(request);
    ///             run();
    ///             REQUEST.set(before);
    ///         }
    ///     })
    ///     .build()?;
    /// REQUEST.set(7);
    /// assert_eq!(pool.spawn(|| REQUEST.get()).join().unwrap(), 7);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    ///
    /// With `tracing`, a task runs within the span in which it was spawned:
    ///
    /// ```text
    /// .context(|| {
    ///     let span = tracing::Span::current();
    ///     move |run: &mut dyn FnMut()| span.in_scope(run)
    /// })
    /// ```
    ///
    /// # What has a context
    ///
    /// * Tasks of [`spawn`](crate::Pool::spawn), [`try_spawn`](crate::Pool::try_spawn) and the free [`spawn`](crate::spawn()).
    /// * Each closure of [`spawn_batch`](crate::Pool::spawn_batch). The hook is called once for each of them.
    /// * The closures of [`install`](crate::Pool::install), [`Pool::join`](crate::Pool::join) and
    ///   [`Pool::scope`](crate::Pool::scope), if the caller is not one of the pool's threads. If it is, they run in its context.
    /// * Each poll of a future that the pool has [spawned](crate::TaskBuilder#method.spawn_future). After a poll that leaves the
    ///   future pending, and still in its context, the hook captures it again for the next poll. A future that is cancelled, or
    ///   left when the pool ends, is dropped without its context.
    ///
    /// The parts of a task have none of their own: the closures of [`join`](crate::join()) and [`scope`](crate::scope()), loops
    /// and pipelines. A part that runs on the thread of its task runs in the context of the task. A part that another worker
    /// has stolen runs in the context of that thread, as a rule in none. Parts are many and short, and a test for a hook would
    /// cost every join. If parts need a context, pass it to their closures. [`broadcast`](crate::Pool::broadcast) has no
    /// context, either.
    ///
    /// # Panics of the hook
    ///
    /// If the hook panics when a task is spawned, the panic comes out of the spawn, and nothing is spawned.
    ///
    /// The task runs exactly once, whatever the returned closure does: a second call of `run` does nothing, and if `run` was
    /// not called, or not before a panic, then the task runs after that closure has ended, without a context. `run` does not
    /// panic. If the task panics, its handle returns that panic. If only the closure panics, the handle returns that panic
    /// instead of the task's result. A panic of the hook or of the closure around a poll ends the future, as a panic of the
    /// future does.
    pub fn context<C, R>(mut self, capture: C) -> Self
    where
        C: Fn() -> R + Send + Sync + 'static,
        R: FnOnce(&mut dyn FnMut()) + Send + 'static,
    {
        self.context = Some(ContextHook::new(capture));
        self
    }
}

/// The context of a future: restored around each of its polls.
#[cfg(feature = "futures")]
pub(super) struct PollContext {
    pool: Arc<dyn AnyPool>,
    /// For the next poll. `None` during a poll, and after one in which the hook has panicked.
    next: Option<Captured>,
}

#[cfg(feature = "futures")]
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

/// Calls [`install_on`], with the context of the calling thread if the pool has a hook for that.
pub(super) fn install_in_context<F, R>(
    admission: Option<&Admission>,
    pool: usize,
    push: impl FnOnce(Task),
    f: F,
) -> R
where
    F: FnOnce() -> R + Send,
    R: Send,
{
    let is_here = || current_pool() == pool && job::is_open();
    let captured = admission.filter(|_| !is_here()).and_then(Admission::capture);
    match captured {
        None => install_on(pool, push, f),
        Some(captured) => install_on(pool, push, move || {
            rename(type_name::<F>);
            captured.around(f)
        }),
    }
}
