//! A thread that is about to join a pool, and who starts it.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;

use heist::engine::Worker;

use crate::log;
use crate::registry::{Registry, enter, leave};

/// A thread of a pool that is being built: see
/// [`ThreadPoolBuilder::spawn_handler`](crate::ThreadPoolBuilder::spawn_handler).
///
/// Drop it, and the pool has that thread never; what is [broadcast](crate::broadcast) waits for it in vain.
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
    /// Dropped when the thread is up.
    up: Sender<()>,
    /// Where to say so, by the first thread.
    log: Option<OsString>,
}

impl ThreadBuilder {
    pub(crate) fn new(
        name: Option<String>,
        stack_size: Option<usize>,
        registry: Arc<Registry>,
        worker: Worker,
        up: Sender<()>,
        log: Option<OsString>,
    ) -> Self {
        Self { name, stack_size, registry, worker, up, log }
    }

    /// Its number in the pool, from zero.
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

    /// What [`ThreadPoolBuilder::thread_name`](crate::ThreadPoolBuilder::thread_name) has called it.
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

    /// What [`ThreadPoolBuilder::stack_size`](crate::ThreadPoolBuilder::stack_size) has said.
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

    /// The calling thread works for the pool, until the pool is dropped and has nothing left to do.
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
    /// If the thread belongs to a pool.
    pub fn run(self) {
        let Self { registry, worker, up, log, .. } = self;
        let index = worker.index();
        let start = || {
            // SAFETY: `registry` is held until the thread has left, below.
            unsafe { enter(&raw const *registry, index) };
            drop(up);
            if let Some(path) = log {
                log::append(path, registry.threads());
            }
            registry.call_start_handler(index);
        };
        worker.run(start, || registry.call_exit_handler(index));
        // Not before what the exit handler has spawned has run.
        leave();
    }

    /// The calling thread belongs to the pool, for good, and goes on with what it does.
    pub(crate) fn attach(self) {
        let Self { registry, worker, log, .. } = self;
        let index = worker.index();
        worker.attach();
        if let Some(path) = log {
            log::append(path, registry.threads());
        }
        // SAFETY: `into_raw` gives up the right to drop it.
        unsafe { enter(Arc::into_raw(registry), index) };
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

/// Makes a trait that only this crate can implement: nobody else can name it.
#[derive(Debug)]
pub struct Ours;

/// Starts threads. Public only because it stands in the bounds of public functions.
pub trait ThreadSpawn {
    #[doc(hidden)]
    fn ours(&self) -> Ours;

    /// Sees to it that a thread calls [`ThreadBuilder::run`].
    fn spawn(&mut self, thread: ThreadBuilder) -> io::Result<()>;
}

/// Starts threads of the standard library.
#[derive(Debug, Default)]
pub struct DefaultSpawn;

impl ThreadSpawn for DefaultSpawn {
    fn ours(&self) -> Ours {
        Ours
    }

    fn spawn(&mut self, thread: ThreadBuilder) -> io::Result<()> {
        std_builder(&thread).spawn(|| thread.run()).map(drop)
    }
}

/// With the name and the stack that are asked for.
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

/// Starts threads as the user wants it.
#[derive(Debug)]
pub struct CustomSpawn<F>(pub(crate) F);

impl<F> ThreadSpawn for CustomSpawn<F>
where
    F: FnMut(ThreadBuilder) -> io::Result<()>,
{
    fn ours(&self) -> Ours {
        Ours
    }

    fn spawn(&mut self, thread: ThreadBuilder) -> io::Result<()> {
        (self.0)(thread)
    }
}
