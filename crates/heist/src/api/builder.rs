//! `Builder`: configuration and construction of a pool.

use std::fmt;

use crate::api::pin::Pin;
use crate::api::pool::{Inner, Pool};
use crate::error::BuildError;
use crate::idle::MAX_WORKERS;
use crate::panic::{Panic, PanicHook};
use crate::queues::Strategy;
use crate::sync::{Arc, note_built, parallelism};
use crate::topology;
use crate::trace::{self, MOST_EVENTS};
use crate::worker::admission::Admission;
use crate::worker::config::Config;
use crate::worker::context::ContextHook;
use crate::worker::core::Core;
use crate::worker::handoff::HandedCore;
use crate::worker::policy::PoolQueues;
use crate::worker::quota::{Quota, follow};
use crate::worker::run;
use crate::worker::shared::Shared;

/// The environment variable that sets the default number of workers.
const ENVIRONMENT: &str = "HEIST_WORKERS";

/// The default stack size, the same as that of the standard library's threads.
const STACK_SIZE: usize = 2 << 20;

/// No pool has more threads than this beyond its workers: the table of threads has a place for each.
const MOST_MORE_THREADS: usize = 1 << 16;

/// The number of threads of no pool that can take part in the global pool at a time. A guess: few, because thieves look at
/// each of them.
const GUESTS: usize = if cfg!(shuttle) { 2 } else { 32 };

/// By default, a pool has at most this many threads more than workers.
const MORE_THREADS: usize = 512;

/// Configures and builds a pool; see [`Pool::builder`].
///
/// ```
/// use heist::{Pool, Strategy};
///
/// let pool = Pool::builder()
///     .workers(2)
///     .strategy(Strategy::LockedDeques)
///     .thread_name(|n| format!("crunch-{n}"))
///     .stack_size(4 << 20)
///     .on_panic(|panic| eprintln!("a detached task failed: {panic}"))
///     .build()?;
/// # Ok::<(), heist::BuildError>(())
/// ```
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder {
    workers: Option<usize>,
    strategy: Strategy,
    max_threads: Option<usize>,
    pin: Pin,
    stack_size: usize,
    thread_name: Box<dyn Fn(usize) -> String + Send + Sync>,
    on_thread_start: Box<dyn Fn(usize) + Send + Sync>,
    on_thread_stop: Box<dyn Fn(usize) + Send + Sync>,
    on_panic: PanicHook,
    trace: Option<usize>,
    guests: usize,
    /// See `api::resize`.
    pub(super) max_workers: Option<usize>,
    /// See `api::resize`.
    pub(super) quota: Option<Quota>,
    /// See `api::limit`.
    pub(super) max_queued: Option<usize>,
    /// See `api::context`.
    pub(super) context: Option<ContextHook>,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            workers: None,
            strategy: Strategy::default(),
            max_threads: None,
            pin: Pin::None,
            stack_size: STACK_SIZE,
            thread_name: Box::new(|number| format!("heist-{number}")),
            on_thread_start: Box::new(|_| ()),
            on_thread_stop: Box::new(|_| ()),
            on_panic: PanicHook::default(),
            trace: None,
            guests: if cfg!(shuttle) { GUESTS } else { 0 },
            max_workers: None,
            quota: None,
            max_queued: None,
            context: None,
        }
    }

    /// Lets threads of no pool take part in what they have the pool do (`worker::guest`).
    pub(crate) fn with_guests(mut self) -> Self {
        self.guests = GUESTS;
        self
    }

    /// Sets the number of workers. The default is the value of the environment variable `HEIST_WORKERS`, or else the
    /// parallelism that the system grants to the process (its affinity mask and its cgroup's quota).
    ///
    /// ```
    /// assert_eq!(heist::Pool::builder().workers(3).build()?.workers(), 3);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(workers);
        self
    }

    /// Sets the largest number of threads that the pool may have. The default is 512 more than there are workers. There
    /// are never more than 65,536 beyond the workers.
    ///
    /// A task that waits for a task, a pool or a pipeline gives its worker to another thread, so that others go on
    /// meanwhile. A pool has as many threads as workers, and more only while tasks wait: up to 32 more, or as many as
    /// there are workers if these are more, are started as soon as they are needed. Beyond that, a waiting thread keeps
    /// its worker for a while, which gets longer with the number of threads, and starts another thread only if queued
    /// tasks still do not get done. Threads beyond that number that are not needed any more end after some seconds.
    ///
    /// When the pool has as many threads as it may have, a thread that waits keeps its worker, and runs only what it
    /// waits for. When all workers wait like that, one of them runs other tasks on top of the one that waits. This is
    /// the one case in which a task can wait for ever for one beneath it on the same stack.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(2).max_threads(8).build()?;
    /// let sum: u32 = pool.install(|| {
    ///     let handles: Vec<_> = (0..100).map(|n| heist::spawn(move || n)).collect();
    ///     handles.into_iter().map(|handle| handle.join().unwrap()).sum()
    /// });
    /// assert_eq!(sum, 4950);
    /// assert!(pool.stats().peak_threads <= 8);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn max_threads(mut self, threads: usize) -> Self {
        self.max_threads = Some(threads);
        self
    }

    /// Sets the strategy. The default is work stealing.
    ///
    /// ```
    /// use heist::{Pool, Strategy};
    ///
    /// let baseline = Pool::builder().workers(2).strategy(Strategy::GlobalQueue).build()?;
    /// assert_eq!(baseline.strategy(), Strategy::GlobalQueue);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// Pins each worker to a processor. By default the system places the threads.
    ///
    /// Pinning helps a program that has its processors to itself. If another program, or another pool, keeps one of them
    /// busy, the worker there waits although other processors are idle. Two pools that are pinned in the same way share
    /// their processors from the first one on.
    ///
    /// A task runs on the processor of its worker, whichever thread runs it, and from its start on. There is one exception:
    /// a task that has waited may go on before its worker is free again, and then runs on any processor of the affinity
    /// mask until it gets a worker; [`Counters::nanoseconds_without_core`] counts that time. Hooks at the start of a thread run
    /// before it is pinned.
    ///
    /// The list of processors is made when the pool is built, from the affinity mask of the thread that builds it. A worker
    /// goes on wherever the system lets it if its processor is taken away later. A thread that a task starts inherits the
    /// processor of its worker, and so do the threads of a pool that a task builds: build such pools outside of it.
    ///
    /// Only Linux and Android can pin threads. On other systems, building a pool with any [`Pin`] but [`Pin::None`] fails.
    ///
    /// [`Counters::nanoseconds_without_core`]: crate::Counters::nanoseconds_without_core
    ///
    /// ```
    /// use heist::{BuildError, Pin, Pool};
    ///
    /// let nowhere = Pool::builder().workers(1).pin(Pin::Processors(vec![])).build();
    /// assert!(matches!(nowhere, Err(BuildError::NoProcessors | BuildError::Pinning { .. })));
    ///
    /// match Pool::builder().workers(2).pin(Pin::Spread).build() {
    ///     Ok(pool) => assert_eq!(pool.install(|| 6 * 7), 42),
    ///     Err(error) => println!("{error}"),
    /// }
    /// ```
    pub fn pin(mut self, pin: Pin) -> Self {
        self.pin = pin;
        self
    }

    /// Sets the names of the threads, by their number. The default is `heist-0` and so on. The first threads are the
    /// workers; more are started when tasks wait for each other.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(1).thread_name(|n| format!("audio-{n}")).build()?;
    /// let name = pool.install(|| std::thread::current().name().map(str::to_owned));
    /// assert_eq!(name.as_deref(), Some("audio-0"));
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn thread_name(mut self, name: impl Fn(usize) -> String + Send + Sync + 'static) -> Self {
        self.thread_name = Box::new(name);
        self
    }

    /// Sets the size of each thread's stack in bytes. The default is 2 MiB. The system rounds it.
    ///
    /// ```
    /// let roomy = heist::Pool::builder().workers(1).stack_size(16 << 20).build()?;
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.stack_size = bytes;
        self
    }

    /// Sets the hook for panics of tasks whose result is not taken. It is called on the thread that detects this: a
    /// worker, or the thread that drops the handle. The default prints a line to stderr. A panic of the hook itself
    /// is caught.
    ///
    /// ```
    /// let (tell, told) = std::sync::mpsc::channel();
    /// let pool = heist::Pool::builder()
    ///     .workers(1)
    ///     .on_panic(move |panic| tell.send(panic.message().to_owned()).unwrap())
    ///     .build()?;
    /// drop(pool.spawn(|| panic!("oh")));
    /// assert_eq!(told.recv().unwrap(), "oh");
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn on_panic(mut self, hook: impl Fn(Panic) + Send + Sync + 'static) -> Self {
        self.on_panic = PanicHook::new(hook);
        self
    }

    /// Keeps a [trace](crate::trace) of the last events of each thread: this many, or up to twice as many. Zero keeps
    /// none, even if the environment requests one. By default a trace is kept if the environment variable
    /// `HEIST_TRACE` is set.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(2).trace(10_000).build()?;
    /// pool.spawn(|| ()).join().unwrap();
    /// let trace = pool.trace_snapshot().expect("it was asked for");
    /// assert!(trace.threads.iter().any(|thread| !thread.events.is_empty()));
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn trace(mut self, events: usize) -> Self {
        self.trace = Some(events);
        self
    }

    /// Sets a hook that is called on each thread, with its number, before anything else. A panic of the hook is
    /// caught.
    ///
    /// ```
    /// let pool = heist::Pool::builder()
    ///     .workers(2)
    ///     .on_thread_start(|n| println!("worker {n} is up"))
    ///     .build()?;
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn on_thread_start(mut self, hook: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.on_thread_start = Box::new(hook);
        self
    }

    /// Sets a hook that is called on each thread, with its number, after everything else. A panic of the hook is
    /// caught.
    ///
    /// ```
    /// let pool = heist::Pool::builder()
    ///     .workers(2)
    ///     .on_thread_stop(|n| println!("worker {n} is done"))
    ///     .build()?;
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn on_thread_stop(mut self, hook: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.on_thread_stop = Box::new(hook);
        self
    }

    /// Returns the number of workers of a pool for which [`workers`](Self::workers) was not called.
    ///
    /// ```
    /// let pool = heist::Pool::builder().build()?;
    /// assert_eq!(heist::Builder::default_workers()?, pool.workers());
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if `HEIST_WORKERS` is not a number of workers that a pool can have.
    pub fn default_workers() -> Result<usize, BuildError> {
        match std::env::var_os(ENVIRONMENT) {
            Some(value) => match value.to_str().and_then(|value| value.trim().parse().ok()) {
                Some(asked) if asked > MAX_WORKERS => {
                    Err(BuildError::TooManyWorkers { asked, limit: MAX_WORKERS })
                }
                Some(workers) if workers > 0 => Ok(workers),
                _ => Err(BuildError::Environment { value: value.to_string_lossy().into_owned() }),
            },
            None => Ok(parallelism().min(MAX_WORKERS)),
        }
    }

    /// Starts the pool.
    ///
    /// ```
    /// let pool = heist::Pool::builder().build()?;
    /// assert!(pool.workers() >= 1);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error for no workers or too many, for fewer of them at most than at first, for fewer threads than workers, for a bound of no queued tasks, for a trace of too many events, for
    /// a `HEIST_WORKERS` that is not a number, for processors that the workers cannot be pinned to, and if the system
    /// refuses a thread. In the last case the threads that had started have ended when this returns.
    pub fn build(self) -> Result<Pool, BuildError> {
        let workers = self.workers.map_or_else(|| self.own_workers(), Ok)?;
        let most = self.max_workers.unwrap_or(workers);
        if most < workers {
            return Err(BuildError::TooFewMaxWorkers { max_workers: most, workers });
        }
        if workers == 0 {
            return Err(BuildError::ZeroWorkers);
        }
        if most > MAX_WORKERS {
            return Err(BuildError::TooManyWorkers { asked: most, limit: MAX_WORKERS });
        }
        if let Some(asked) = self.trace.filter(|&events| events > MOST_EVENTS) {
            return Err(BuildError::TooManyEvents { asked, limit: MOST_EVENTS });
        }
        if self.max_queued == Some(0) {
            return Err(BuildError::ZeroQueued);
        }
        let max_threads = self.max_threads.unwrap_or(most + MORE_THREADS);
        if max_threads < most {
            return Err(BuildError::TooFewThreads { max_threads, workers: most });
        }
        let quota = self.quota;
        let config = Config {
            workers: most,
            attached: 0,
            max_threads: max_threads.min(most + MOST_MORE_THREADS),
            guests: self.guests,
            stack_size: self.stack_size,
            thread_name: self.thread_name,
            on_thread_start: self.on_thread_start,
            on_thread_stop: self.on_thread_stop,
            on_panic: Arc::new(self.on_panic),
            pins: self.pin.resolve()?,
            admission: Admission::new(self.max_queued, self.context),
            trace: trace::of_pool(&self.strategy.to_string(), most, self.trace),
        };
        Ok(Pool::new(match self.strategy {
            Strategy::WorkStealing => Inner::Stealing(start(config, workers, quota)?),
            Strategy::LockedDeques => Inner::Locked(start(config, workers, quota)?),
            Strategy::GlobalQueue => Inner::Global(start(config, workers, quota)?),
        }))
    }

    /// Returns the number of workers if [`workers`](Self::workers) was not called. A pool that follows a quota is built for what it
    /// may get later.
    fn own_workers(&self) -> Result<usize, BuildError> {
        if self.quota.is_some() && std::env::var_os(ENVIRONMENT).is_none() {
            let processors = topology::allowed_processors().unwrap_or_else(parallelism);
            return Ok(processors.min(MAX_WORKERS));
        }
        Self::default_workers()
    }
}

/// Starts all threads, or none. So many workers are used at first, or as many as the quota leaves.
fn start<Q: PoolQueues>(
    config: Config,
    workers: usize,
    quota: Option<Quota>,
) -> Result<Arc<Shared<Q>>, BuildError> {
    let asked = config.workers;
    let shared = Arc::new(Shared::<Q>::new(config));
    note_built(shared.id());
    #[cfg(feature = "futures")]
    shared.know(&shared);
    if workers < asked {
        shared.ask_for_workers(workers);
    }
    for index in 0..asked {
        let core = Core::new(index, shared.ledger.of_worker(index));
        let handed = HandedCore { core: Box::new(core), first: None };
        if let Err((_, source)) = run::start(&shared, index, handed) {
            shared.abort_start(asked - index);
            return Err(BuildError::Thread { started: index, asked, source });
        }
    }
    if let Some(Err(source)) = quota.map(|quota| follow(&shared, quota)) {
        shared.abort_start(0);
        return Err(BuildError::Thread { started: asked, asked, source });
    }
    Ok(shared)
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("workers", &self.workers)
            .field("strategy", &self.strategy)
            .field("max_threads", &self.max_threads)
            .field("pin", &self.pin)
            .field("stack_size", &self.stack_size)
            .field("trace", &self.trace)
            .field("max_workers", &self.max_workers)
            .field("max_queued", &self.max_queued)
            .finish_non_exhaustive()
    }
}
