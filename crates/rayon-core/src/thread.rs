//! `ThreadBuilder`, a thread of a pool that has not started yet, and the functions that start threads.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;

use heist::engine::Worker;

use crate::log;
use crate::registry::{Registry, enter_pool, leave_pool};

/// A thread of a pool that is being built. See
/// [`ThreadPoolBuilder::spawn_handler`](crate::ThreadPoolBuilder::spawn_handler).
///
/// If it is dropped, this thread never starts, and a [`broadcast`](crate::broadcast()) waits for it forever.
///
/// ```
/// let pool = rayon_core::ThreadPoolBuilder::new()
///     .num_threads(2)
///     .spawn_handler(|thread| {
///         std::thread::spawn(|| thread.run());
///         Ok(())
///     })
///     .build()?;
/// assert_eq!(pool.broadcast(|context| context.index()), [0, 1]);
/// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
/// ```
pub struct ThreadBuilder {
    name: Option<String>,
    stack_size: Option<usize>,
    registry: Arc<Registry>,
    worker: Worker,
    /// Dropped when the thread has started. Nothing is ever sent.
    started: Sender<()>,
    /// The file to which the thread appends a line when it starts. Only the first thread of a pool has it.
    log: Option<OsString>,
}

impl ThreadBuilder {
    pub(crate) fn new(
        name: Option<String>,
        stack_size: Option<usize>,
        registry: Arc<Registry>,
        worker: Worker,
        started: Sender<()>,
        log: Option<OsString>,
    ) -> Self {
        Self { name, stack_size, registry, worker, started, log }
    }

    /// Returns the index of the thread in the pool, from zero.
    ///
    /// ```
    /// let mut indices = Vec::new();
    /// rayon_core::ThreadPoolBuilder::new()
    ///     .num_threads(3)
    ///     .spawn_handler(|thread| Ok(indices.push(thread.index())))
    ///     .build()?;
    /// assert_eq!(indices, [0, 1, 2]);
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    pub fn index(&self) -> usize {
        self.worker.index()
    }

    /// Returns the name that [`ThreadPoolBuilder::thread_name`](crate::ThreadPoolBuilder::thread_name) gave
    /// the thread.
    ///
    /// ```
    /// let mut names = Vec::new();
    /// rayon_core::ThreadPoolBuilder::new()
    ///     .num_threads(2)
    ///     .thread_name(|index| format!("crunch-{index}"))
    ///     .spawn_handler(|thread| Ok(names.push(thread.name().map(str::to_owned))))
    ///     .build()?;
    /// assert_eq!(names, [Some("crunch-0".to_owned()), Some("crunch-1".to_owned())]);
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the stack size that [`ThreadPoolBuilder::stack_size`](crate::ThreadPoolBuilder::stack_size)
    /// set.
    ///
    /// ```
    /// let mut size = None;
    /// rayon_core::ThreadPoolBuilder::new()
    ///     .num_threads(1)
    ///     .stack_size(1 << 20)
    ///     .spawn_handler(|thread| Ok(size = thread.stack_size()))
    ///     .build()?;
    /// assert_eq!(size, Some(1 << 20));
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    pub fn stack_size(&self) -> Option<usize> {
        self.stack_size
    }

    /// Makes the calling thread a thread of the pool. Returns when the pool has been dropped and has
    /// nothing left to run.
    ///
    /// ```
    /// std::thread::scope(|scope| {
    ///     let pool = rayon_core::ThreadPoolBuilder::new()
    ///         .num_threads(1)
    ///         .spawn_handler(|thread| {
    ///             scope.spawn(|| thread.run());
    ///             Ok(())
    ///         })
    ///         .build()?;
    ///     assert_eq!(pool.install(|| 6 * 7), 42);
    ///     Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// })?;
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// Panics if the calling thread already belongs to a pool.
    pub fn run(self) {
        let Self { registry, worker, started, log, .. } = self;
        let index = worker.index();
        let start = || {
            // SAFETY: `registry` is alive until the thread leaves the pool, below.
            unsafe { enter_pool(&raw const *registry, index) };
            drop(started);
            if let Some(path) = log {
                log::append(path, registry.threads());
            }
            registry.call_start_handler(index);
        };
        worker.run(start, || registry.call_exit_handler(index));
        // Only after the jobs that the exit handler spawned have run.
        leave_pool();
    }

    /// Attaches the calling thread to the pool permanently, and returns.
    pub(crate) fn attach(self) {
        let Self { registry, worker, log, .. } = self;
        let index = worker.index();
        worker.attach();
        if let Some(path) = log {
            log::append(path, registry.threads());
        }
        // SAFETY: `into_raw` leaks the reference, so the registry is never dropped.
        unsafe { enter_pool(Arc::into_raw(registry), index) };
    }
}

impl fmt::Debug for ThreadBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadBuilder")
            .field("pool", &self.registry.engine.id())
            .field("index", &self.index())
            .field("name", &self.name)
            .field("stack_size", &self.stack_size)
            .finish()
    }
}

/// Seals [`ThreadSpawn`]: no other crate can name this type.
#[derive(Debug)]
pub struct Private;

/// Starts threads. Public only because it is in the bounds of public functions.
pub trait ThreadSpawn {
    #[doc(hidden)]
    fn private(&self) -> Private;

    /// Starts a thread that calls [`ThreadBuilder::run`].
    fn spawn(&mut self, thread: ThreadBuilder) -> io::Result<()>;
}

/// Starts threads with the standard library.
#[derive(Debug, Default)]
pub struct DefaultSpawn;

impl ThreadSpawn for DefaultSpawn {
    fn private(&self) -> Private {
        Private
    }

    fn spawn(&mut self, thread: ThreadBuilder) -> io::Result<()> {
        std_builder(&thread).spawn(|| thread.run()).map(drop)
    }
}

/// Returns a builder with the name and the stack size of the thread.
pub(crate) fn std_builder(thread: &ThreadBuilder) -> thread::Builder {
    let mut builder = thread::Builder::new();
    if let Some(name) = thread.name() {
        builder = builder.name(name.to_owned());
    }
    if let Some(bytes) = thread.stack_size() {
        builder = builder.stack_size(bytes);
    }
    builder
}

/// Starts threads by calling a function of the user.
#[derive(Debug)]
pub struct CustomSpawn<F>(pub(crate) F);

impl<F> ThreadSpawn for CustomSpawn<F>
where
    F: FnMut(ThreadBuilder) -> io::Result<()>,
{
    fn private(&self) -> Private {
        Private
    }

    fn spawn(&mut self, thread: ThreadBuilder) -> io::Result<()> {
        (self.0)(thread)
    }
}
