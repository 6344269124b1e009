//! `ThreadPoolBuilder`: the settings of a pool.

use std::any::Any;
use std::env;
use std::fmt;
use std::io;
use std::thread;

use crate::error::ThreadPoolBuildError;
use crate::global;
use crate::max_num_threads;
use crate::pool::ThreadPool;
use crate::registry::{PanicHandler, ThreadHandler};
use crate::thread::{CustomSpawn, DefaultSpawn, ThreadBuilder, ThreadSpawn, std_builder};

/// Configures and builds a pool: [a separate one](Self::build) or [the global one](Self::build_global).
///
/// ```
/// let pool = rayon_core::ThreadPoolBuilder::new()
///     .num_threads(2)
///     .thread_name(|index| format!("crunch-{index}"))
///     .build()?;
/// assert_eq!(pool.current_num_threads(), 2);
/// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
/// ```
pub struct ThreadPoolBuilder<S = DefaultSpawn> {
    /// Zero means that the environment or the system decides.
    num_threads: usize,
    pub(crate) use_current_thread: bool,
    get_thread_name: Option<Box<dyn FnMut(usize) -> String>>,
    pub(crate) stack_size: Option<usize>,
    pub(crate) panic_handler: Option<Box<PanicHandler>>,
    pub(crate) start_handler: Option<Box<ThreadHandler>>,
    pub(crate) exit_handler: Option<Box<ThreadHandler>>,
    pub(crate) spawn_handler: S,
    pub(crate) breadth_first: bool,
}

impl Default for ThreadPoolBuilder {
    fn default() -> Self {
        Self {
            num_threads: 0,
            use_current_thread: false,
            get_thread_name: None,
            stack_size: None,
            panic_handler: None,
            start_handler: None,
            exit_handler: None,
            spawn_handler: DefaultSpawn,
            breadth_first: false,
        }
    }
}

impl ThreadPoolBuilder {
    /// Returns a builder with the default settings.
    ///
    /// ```
    /// let pool = rayon_core::ThreadPoolBuilder::new().build()?;
    /// assert!(pool.current_num_threads() > 0);
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Builds a pool whose threads may borrow, calls `with_pool` with it, and waits until the threads have
    /// ended.
    ///
    /// Each thread calls `wrapper`, which should call [`ThreadBuilder::run`].
    ///
    /// ```
    /// let greeting = String::from("hello");
    /// let length = rayon_core::ThreadPoolBuilder::new().num_threads(2).build_scoped(
    ///     |thread| {
    ///         assert_eq!(greeting, "hello");
    ///         thread.run();
    ///     },
    ///     |pool| pool.install(|| greeting.len()),
    /// )?;
    /// assert_eq!(length, 5);
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    pub fn build_scoped<W, F, R>(self, wrapper: W, with_pool: F) -> Result<R, ThreadPoolBuildError>
    where
        W: Fn(ThreadBuilder) + Sync,
        F: FnOnce(&ThreadPool) -> R,
    {
        let wrapper = &wrapper;
        thread::scope(|scope| {
            let spawn = |thread| {
                std_builder(&thread).spawn_scoped(scope, move || wrapper(thread)).map(drop)
            };
            let pool = self.spawn_handler(spawn).build()?;
            Ok(with_pool(&pool))
        })
    }
}

impl<S: ThreadSpawn> ThreadPoolBuilder<S> {
    /// Builds a pool.
    ///
    /// ```
    /// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(2).build()?;
    /// assert_eq!(pool.install(|| 6 * 7), 42);
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if a thread cannot be started, or if the current thread is to be used and already
    /// belongs to a pool. Threads that were started end again.
    pub fn build(self) -> Result<ThreadPool, ThreadPoolBuildError> {
        ThreadPool::build(self)
    }

    /// Builds the global pool. Without this call, it is built with the default settings when it is first
    /// used. Returns when its threads have started.
    ///
    /// ```
    /// rayon_core::ThreadPoolBuilder::new().num_threads(3).build_global()?;
    /// assert_eq!(rayon_core::current_num_threads(), 3);
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error in the same cases as [`build`](Self::build), and if the global pool was built
    /// before, or could not be built before, by this function or by the first use.
    pub fn build_global(self) -> Result<(), ThreadPoolBuildError> {
        global::build(self)
    }
}

impl<S> ThreadPoolBuilder<S> {
    /// Sets a function that starts the threads. It is called once for each thread, and must make some
    /// thread call [`ThreadBuilder::run`].
    ///
    /// These threads end after the pool is dropped. Nothing in this crate waits for their end.
    ///
    /// ```
    /// let pool = rayon_core::ThreadPoolBuilder::new()
    ///     .num_threads(2)
    ///     .spawn_handler(|thread| {
    ///         let builder = std::thread::Builder::new().name(format!("mine-{}", thread.index()));
    ///         builder.spawn(|| thread.run()).map(drop)
    ///     })
    ///     .build()?;
    /// let names = pool.broadcast(|_| std::thread::current().name().map(str::to_owned));
    /// assert_eq!(names, [Some("mine-0".to_owned()), Some("mine-1".to_owned())]);
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    pub fn spawn_handler<F>(self, spawn: F) -> ThreadPoolBuilder<CustomSpawn<F>>
    where
        F: FnMut(ThreadBuilder) -> io::Result<()>,
    {
        ThreadPoolBuilder {
            num_threads: self.num_threads,
            use_current_thread: self.use_current_thread,
            get_thread_name: self.get_thread_name,
            stack_size: self.stack_size,
            panic_handler: self.panic_handler,
            start_handler: self.start_handler,
            exit_handler: self.exit_handler,
            spawn_handler: CustomSpawn(spawn),
            breadth_first: self.breadth_first,
        }
    }

    /// Sets a function that names each thread by its index. By default the threads have no names.
    ///
    /// ```
    /// let named = rayon_core::ThreadPoolBuilder::new().num_threads(1).thread_name(|index| format!("audio-{index}"));
    /// let name = named.build()?.install(|| std::thread::current().name().map(str::to_owned));
    /// assert_eq!(name.as_deref(), Some("audio-0"));
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    pub fn thread_name<F>(mut self, closure: F) -> Self
    where
        F: FnMut(usize) -> String + 'static,
    {
        self.get_thread_name = Some(Box::new(closure));
        self
    }

    /// Sets the number of threads, at most [`max_num_threads`]. The pool never has more. If it is zero, the
    /// default, the environment variable `RAYON_NUM_THREADS` (or otherwise the old `RAYON_RS_NUM_CPUS`)
    /// decides, and then the system: one thread for each processor that the process may use.
    ///
    /// ```
    /// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(3).build()?;
    /// assert_eq!(pool.current_num_threads(), 3);
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    pub fn num_threads(mut self, num_threads: usize) -> Self {
        self.num_threads = num_threads;
        self
    }

    /// Attaches the thread that builds the pool to it permanently, as its first thread. The spawn, start
    /// and exit handlers are not called for this thread.
    ///
    /// The attached thread runs jobs of the pool only while it waits for something in the pool, or when it
    /// [yields](crate::yield_now). The memory of the pool is never freed.
    ///
    /// ```
    /// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(2).use_current_thread().build()?;
    /// assert_eq!(rayon_core::current_thread_index(), Some(0));
    /// assert_eq!(pool.install(|| rayon_core::current_thread_index()), Some(0));
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    pub fn use_current_thread(mut self) -> Self {
        self.use_current_thread = true;
        self
    }

    /// Sets a function that is called with panics that cannot be propagated to a caller: those of
    /// [spawned](crate::spawn()) closures and of the other handlers.
    ///
    /// Without this handler, or if it panics itself, the process is aborted.
    ///
    /// ```
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// let pool = rayon_core::ThreadPoolBuilder::new()
    ///     .num_threads(1)
    ///     .panic_handler(move |payload| sender.send(*payload.downcast::<&str>().unwrap()).unwrap())
    ///     .build()?;
    /// pool.spawn(|| panic!("no such file"));
    /// assert_eq!(receiver.recv(), Ok("no such file"));
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    pub fn panic_handler<H>(mut self, panic_handler: H) -> Self
    where
        H: Fn(Box<dyn Any + Send>) + Send + Sync + 'static,
    {
        self.panic_handler = Some(Box::new(panic_handler));
        self
    }

    /// Sets the stack size of each thread in bytes. By default the standard library decides.
    ///
    /// ```
    /// let roomy = rayon_core::ThreadPoolBuilder::new().num_threads(1).stack_size(16 << 20).build()?;
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    pub fn stack_size(mut self, stack_size: usize) -> Self {
        self.stack_size = Some(stack_size);
        self
    }

    /// Makes each thread run what it has spawned oldest first.
    ///
    /// Every spawn then works like [`spawn_fifo`](crate::spawn_fifo): each thread has one queue for
    /// everything that it spawns, in any scope or in none. Joins are not affected.
    ///
    /// ```
    /// #![allow(deprecated)]
    /// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(1).breadth_first().build()?;
    /// let (first, order) = std::sync::mpsc::channel();
    /// let second = first.clone();
    /// pool.install(|| {
    ///     rayon_core::spawn(move || first.send(1).unwrap());
    ///     rayon_core::spawn(move || second.send(2).unwrap());
    /// });
    /// assert_eq!(order.iter().collect::<Vec<_>>(), [1, 2]);
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    #[deprecated(note = "use `scope_fifo` and `spawn_fifo` for similar effect")]
    pub fn breadth_first(mut self) -> Self {
        self.breadth_first = true;
        self
    }

    /// Sets a function that each thread calls with its index when it starts. If it panics, the panic
    /// handler is called, and the thread continues.
    ///
    /// ```
    /// let (sender, started) = std::sync::mpsc::channel();
    /// let pool = rayon_core::ThreadPoolBuilder::new()
    ///     .num_threads(1)
    ///     .start_handler(move |index| sender.send(index).unwrap())
    ///     .build()?;
    /// assert_eq!(started.recv(), Ok(0));
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    pub fn start_handler<H>(mut self, start_handler: H) -> Self
    where
        H: Fn(usize) + Send + Sync + 'static,
    {
        self.start_handler = Some(Box::new(start_handler));
        self
    }

    /// Sets a function that each thread calls with its index when it ends. If it panics, the panic handler
    /// is called.
    ///
    /// ```
    /// let (sender, ended) = std::sync::mpsc::channel();
    /// let pool = rayon_core::ThreadPoolBuilder::new()
    ///     .num_threads(1)
    ///     .exit_handler(move |index| sender.send(index).unwrap())
    ///     .build()?;
    /// drop(pool);
    /// assert_eq!(ended.recv(), Ok(0));
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    pub fn exit_handler<H>(mut self, exit_handler: H) -> Self
    where
        H: Fn(usize) + Send + Sync + 'static,
    {
        self.exit_handler = Some(Box::new(exit_handler));
        self
    }

    /// Returns the number of threads that the pool will have.
    pub(crate) fn threads(&self) -> usize {
        let threads = if self.num_threads > 0 { self.num_threads } else { default_threads() };
        threads.min(max_num_threads())
    }

    /// Returns the name of the thread with this index.
    pub(crate) fn name_of(&mut self, index: usize) -> Option<String> {
        self.get_thread_name.as_mut().map(|name| name(index))
    }
}

/// Returns the number of threads that the environment or otherwise the system gives. The old variable
/// counts if the new one is not a number.
fn default_threads() -> usize {
    let variable = |name| env::var(name).ok().and_then(|value| value.parse::<usize>().ok());
    variable("RAYON_NUM_THREADS")
        .or_else(|| variable("RAYON_RS_NUM_CPUS"))
        .filter(|&threads| threads > 0)
        .unwrap_or_else(|| thread::available_parallelism().map_or(1, |threads| threads.get()))
}

impl<S> fmt::Debug for ThreadPoolBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Returns what is printed for a closure.
        fn placeholder<F: ?Sized>(closure: &Option<Box<F>>) -> Option<fmt::Arguments<'static>> {
            closure.as_ref().map(|_| format_args!("<closure>"))
        }
        f.debug_struct("ThreadPoolBuilder")
            .field("num_threads", &self.num_threads)
            .field("use_current_thread", &self.use_current_thread)
            .field("get_thread_name", &placeholder(&self.get_thread_name))
            .field("panic_handler", &placeholder(&self.panic_handler))
            .field("stack_size", &self.stack_size)
            .field("start_handler", &placeholder(&self.start_handler))
            .field("exit_handler", &placeholder(&self.exit_handler))
            .field("breadth_first", &self.breadth_first)
            .finish()
    }
}
