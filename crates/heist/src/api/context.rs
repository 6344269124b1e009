//! Contexts: what a thread knows when it spawns a task, and the task is to know when it runs.

use crate::api::builder::Builder;
use crate::worker::context::ContextHook;

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
