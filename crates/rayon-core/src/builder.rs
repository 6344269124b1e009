//! What a pool is to be like.

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

/// Says what a pool should be like, and builds it: [one of one's own](Self::build), or
/// [the global one](Self::build_global).
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
    /// Zero for as many as the environment or the system says.
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
    /// Sets out to build a pool.
    ///
    /// ```
    /// let pool = rayon_core::ThreadPoolBuilder::new().build()?;
    /// assert!(pool.current_num_threads() > 0);
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Builds a pool whose threads may borrow, calls `with_pool` with it, and waits for the threads' end.
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
    /// If a thread cannot be started, or the current one is to be used and belongs to a pool. The threads that had
    /// started end again.
    pub fn build(self) -> Result<ThreadPool, ThreadPoolBuildError> {
        ThreadPool::build(self)
    }

    /// Builds the global pool, which otherwise comes into being when it is first used, with the defaults. Returns
    /// when its threads are up.
    ///
    /// ```
    /// rayon_core::ThreadPoolBuilder::new().num_threads(3).build_global()?;
    /// assert_eq!(rayon_core::current_num_threads(), 3);
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`build`](Self::build); and if it was tried before, by this or by the first use.
    pub fn build_global(self) -> Result<(), ThreadPoolBuildError> {
        global::build(self)
    }
}

impl<S> ThreadPoolBuilder<S> {
    /// Who starts the threads. It is called once for each, and sees to it that some thread calls
    /// [`ThreadBuilder::run`].
    ///
    /// Nobody else waits for the end of these threads, which comes after the pool is dropped.
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

    /// What the threads are called, by their index. By default they have no names.
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

    /// How many threads, and no more; [`max_num_threads`] at most. Zero, the default, leaves it to the
    /// environment variable `RAYON_NUM_THREADS` (or else to the old `RAYON_RS_NUM_CPUS`), and then to the system:
    /// one for each core that the process may use.
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

    /// The thread that builds the pool is one of its threads, for good: the first. No handler is called for it.
    ///
    /// It runs something for the pool only when it waits for something there, or [yields](crate::yield_now). The pool's
    /// memory is never given back.
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

    /// Who is told of panics that nobody waits for: of what is [spawned](crate::spawn), and of the other handlers.
    ///
    /// Without one, the process is aborted; likewise if it panics itself.
    ///
    /// ```
    /// let (tell, told) = std::sync::mpsc::channel();
    /// let pool = rayon_core::ThreadPoolBuilder::new()
    ///     .num_threads(1)
    ///     .panic_handler(move |payload| tell.send(*payload.downcast::<&str>().unwrap()).unwrap())
    ///     .build()?;
    /// pool.spawn(|| panic!("no such file"));
    /// assert_eq!(told.recv(), Ok("no such file"));
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    pub fn panic_handler<H>(mut self, panic_handler: H) -> Self
    where
        H: Fn(Box<dyn Any + Send>) + Send + Sync + 'static,
    {
        self.panic_handler = Some(Box::new(panic_handler));
        self
    }

    /// The size of each thread's stack, in bytes. Otherwise the standard library's.
    ///
    /// ```
    /// let roomy = rayon_core::ThreadPoolBuilder::new().num_threads(1).stack_size(16 << 20).build()?;
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    pub fn stack_size(mut self, stack_size: usize) -> Self {
        self.stack_size = Some(stack_size);
        self
    }

    /// A hint: what a thread spawns it runs oldest first.
    ///
    /// Everything that is spawned goes the way of [`spawn_fifo`](crate::spawn_fifo) then: what a thread spawns in
    /// whatever scope, or in none, stands in one queue of that thread's. Joins are not affected.
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

    /// Called by each thread with its index before it works. Its panic goes to the panic handler, and the thread works on.
    ///
    /// ```
    /// let (tell, started) = std::sync::mpsc::channel();
    /// let pool = rayon_core::ThreadPoolBuilder::new()
    ///     .num_threads(1)
    ///     .start_handler(move |index| tell.send(index).unwrap())
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

    /// Called by each thread with its index when it ends. Its panic goes to the panic handler.
    ///
    /// ```
    /// let (tell, ended) = std::sync::mpsc::channel();
    /// let pool = rayon_core::ThreadPoolBuilder::new()
    ///     .num_threads(1)
    ///     .exit_handler(move |index| tell.send(index).unwrap())
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

    /// How many there will be.
    pub(crate) fn threads(&self) -> usize {
        let threads = if self.num_threads > 0 { self.num_threads } else { default_threads() };
        threads.min(max_num_threads())
    }

    pub(crate) fn name_of(&mut self, index: usize) -> Option<String> {
        self.get_thread_name.as_mut().map(|name| name(index))
    }
}

/// As the environment says, or else the system. The old variable counts where the new one is no number.
fn default_threads() -> usize {
    let variable = |name| env::var(name).ok().and_then(|value| value.parse::<usize>().ok());
    variable("RAYON_NUM_THREADS")
        .or_else(|| variable("RAYON_RS_NUM_CPUS"))
        .filter(|&threads| threads > 0)
        .unwrap_or_else(|| thread::available_parallelism().map_or(1, |threads| threads.get()))
}

impl<S> fmt::Debug for ThreadPoolBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// What there is to see of a closure.
        fn seen<F: ?Sized>(closure: &Option<Box<F>>) -> Option<fmt::Arguments<'static>> {
            closure.as_ref().map(|_| format_args!("<closure>"))
        }
        f.debug_struct("ThreadPoolBuilder")
            .field("num_threads", &self.num_threads)
            .field("use_current_thread", &self.use_current_thread)
            .field("get_thread_name", &seen(&self.get_thread_name))
            .field("panic_handler", &seen(&self.panic_handler))
            .field("stack_size", &self.stack_size)
            .field("start_handler", &seen(&self.start_handler))
            .field("exit_handler", &seen(&self.exit_handler))
            .field("breadth_first", &self.breadth_first)
            .finish()
    }
}
