//! The registry, which the threads of a pool share, and the pool that the current thread belongs to.

use std::cell::Cell;
use std::mem;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};

use heist::engine::{self, Engine};

use crate::builder::ThreadPoolBuilder;
use crate::error::{ErrorKind, ThreadPoolBuildError};
use crate::fifo::{self, Fifo};
use crate::global::global;
use crate::log;
use crate::thread::{ThreadBuilder, ThreadSpawn};
use crate::unwind::{Payload, abort, catch};

/// Called with the payload of a panic that cannot be propagated to a caller.
pub(crate) type PanicHandler = dyn Fn(Payload) + Send + Sync;

/// Called by a thread with its index when it starts or ends.
pub(crate) type ThreadHandler = dyn Fn(usize) + Send + Sync;

/// An engine, and what Rayon adds to it. Alive until the last thread has ended.
pub(crate) struct Registry {
    pub(crate) engine: Engine,
    panic_handler: Option<Box<PanicHandler>>,
    start_handler: Option<Box<ThreadHandler>>,
    exit_handler: Option<Box<ThreadHandler>>,
    /// A queue for each thread, for the jobs that it spawns in FIFO order.
    fifos: Box<[Fifo]>,
    /// Whether all jobs are spawned in FIFO order.
    breadth_first: bool,
}

/// The pool and the index of the current thread. Only [`enter_pool`] and [`leave_pool`] write it.
#[derive(Clone, Copy)]
struct Current {
    registry: NonNull<Registry>,
    index: usize,
}

thread_local! {
    static CURRENT: Cell<Option<Current>> = const { Cell::new(None) };
}

/// The current thread as a thread of a pool.
#[derive(Clone, Copy)]
pub(crate) struct CurrentThread<'a> {
    pub(crate) registry: &'a Registry,
    pub(crate) index: usize,
}

/// Calls `f` with the pool and the index of the current thread, or with `None` if it belongs to no pool.
#[inline]
pub(crate) fn with_current_thread<R>(f: impl FnOnce(Option<CurrentThread<'_>>) -> R) -> R {
    let thread = CURRENT.get().map(|Current { registry, index }| {
        // SAFETY: the registry is alive until the thread leaves the pool, and the thread does not leave it
        // within this call: it does so only when it has nothing more to run.
        let registry = unsafe { registry.as_ref() };
        CurrentThread { registry, index }
    });
    f(thread)
}

/// Calls `f` with the pool that the current thread belongs to, or otherwise with the global pool.
#[inline]
pub(crate) fn with_current_registry<R>(f: impl FnOnce(&Registry) -> R) -> R {
    with_current_thread(|thread| f(thread.map_or_else(|| &**global(), |thread| thread.registry)))
}

/// Calls `f` on a thread of the pool that the current thread belongs to, or otherwise of the global pool.
#[inline]
pub(crate) fn run_in_pool<R: Send>(f: impl FnOnce(&Registry) -> R + Send) -> R {
    with_current_thread(|thread| match thread {
        Some(thread) => f(thread.registry),
        None => run_in_global_pool(f),
    })
}

/// Apart from [`run_in_pool`], so that the frames of recursive calls are small.
#[cold]
#[inline(never)]
fn run_in_global_pool<R: Send>(f: impl FnOnce(&Registry) -> R + Send) -> R {
    let registry = &**global();
    registry.engine.run(move |_| f(registry))
}

/// Calls user code. If it panics, calls the panic handler of the pool that the current thread belongs to.
#[inline]
pub(crate) fn catch_and_report(code: impl FnOnce()) {
    if let Err(payload) = catch(code) {
        with_current_thread(|thread| {
            let thread = thread.expect("jobs and handlers run on the threads of a pool");
            thread.registry.report(payload);
        });
    }
}

/// Makes the calling thread belong to a pool.
///
/// # Safety
///
/// The registry is alive until the thread [leaves the pool](leave_pool).
pub(crate) unsafe fn enter_pool(registry: *const Registry, index: usize) {
    let registry = NonNull::new(registry.cast_mut()).expect("the pointer comes from an `Arc`");
    CURRENT.set(Some(Current { registry, index }));
}

/// Makes the calling thread belong to no pool.
pub(crate) fn leave_pool() {
    CURRENT.set(None);
}

impl Registry {
    /// Builds a registry and starts its threads. If it returns an error, the threads that were started end
    /// again. The channel of the receiver is closed when all threads have started.
    pub(crate) fn build<S: ThreadSpawn>(
        mut builder: ThreadPoolBuilder<S>,
    ) -> Result<(Arc<Self>, Receiver<()>), ThreadPoolBuildError> {
        let threads = builder.threads();
        let (engine, workers) = Engine::new(threads, builder.use_current_thread);
        let registry = Arc::new(Self {
            engine,
            panic_handler: builder.panic_handler.take(),
            start_handler: builder.start_handler.take(),
            exit_handler: builder.exit_handler.take(),
            fifos: Fifo::for_each(threads),
            breadth_first: builder.breadth_first,
        });
        let close = CloseOnDrop(&registry);
        let (started, all_started) = mpsc::channel();
        let mut log = log::path();
        let mut current = None;
        for worker in workers {
            let name = builder.name_of(worker.index());
            let (registry, started) = (Arc::clone(&registry), started.clone());
            let thread =
                ThreadBuilder::new(name, builder.stack_size, registry, worker, started, log.take());
            if thread.index() > 0 || !builder.use_current_thread {
                let spawned = builder.spawn_handler.spawn(thread);
                spawned.map_err(|error| ThreadPoolBuildError::new(ErrorKind::IOError(error)))?;
            } else if engine::is_inside() {
                return Err(ThreadPoolBuildError::new(ErrorKind::CurrentThreadAlreadyInPool));
            } else {
                current = Some(thread);
            }
        }
        // Last, so that the current thread belongs to no pool if the build fails.
        if let Some(thread) = current {
            thread.attach();
        }
        mem::forget(close);
        Ok((registry, all_started))
    }

    /// Returns the number of threads.
    pub(crate) fn threads(&self) -> usize {
        self.engine.threads()
    }

    /// Returns the index of the current thread, or `None` if it is not a thread of this pool.
    pub(crate) fn current_thread_index(&self) -> Option<usize> {
        with_current_thread(|thread| {
            thread.filter(|thread| ptr::eq(thread.registry, self)).map(|thread| thread.index)
        })
    }

    /// Runs `job` on a thread of the pool. If the current thread is one, this is the next job that it runs.
    ///
    /// # Safety
    ///
    /// 1. The job does not panic.
    /// 2. What it borrows is alive until it has run.
    pub(crate) unsafe fn spawn_job(&self, job: impl FnOnce() + Send) {
        if self.breadth_first {
            // SAFETY: the caller guarantees 1. and 2.
            unsafe { self.spawn_job_fifo(job) };
        } else {
            // SAFETY: the caller guarantees 1. and 2.
            unsafe { self.engine.spawn(job) };
        }
    }

    /// Runs `job` on a thread of the pool. If the current thread is one, the job comes after those that it
    /// has spawned with this function before.
    ///
    /// # Safety
    ///
    /// The conditions are those of [`spawn_job`](Self::spawn_job).
    pub(crate) unsafe fn spawn_job_fifo(&self, job: impl FnOnce() + Send) {
        let Some(index) = self.current_thread_index() else {
            // SAFETY: the caller guarantees 1. and 2.
            unsafe { self.engine.spawn(job) };
            return;
        };
        // SAFETY: a placeholder calls the job, and the caller guarantees that what it borrows is alive
        // until then.
        let job = unsafe { fifo::erase_lifetime(job) };
        self.fifos[index].push(job);
        let placeholder = move || {
            let job = with_current_thread(|thread| {
                let thread = thread.expect("a job runs on a thread of its pool");
                thread.registry.fifos[index].pop()
            });
            job();
        };
        // SAFETY: the placeholder borrows nothing, and the job does not panic.
        unsafe { self.engine.spawn(placeholder) };
    }

    pub(crate) fn call_start_handler(&self, index: usize) {
        if let Some(handler) = &self.start_handler {
            catch_and_report(|| handler(index));
        }
    }

    pub(crate) fn call_exit_handler(&self, index: usize) {
        if let Some(handler) = &self.exit_handler {
            catch_and_report(|| handler(index));
        }
    }

    /// Calls the panic handler, or aborts the process if there is none: a panic must not go unnoticed.
    #[cold]
    #[inline(never)]
    fn report(&self, payload: Payload) {
        match &self.panic_handler {
            None => abort("a spawned job or a handler panicked, and the pool has no panic handler"),
            Some(handler) => {
                if catch(|| handler(payload)).is_err() {
                    abort("the panic handler panicked");
                }
            }
        }
    }
}

/// Ends the threads of a pool whose build has failed.
struct CloseOnDrop<'a>(&'a Registry);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.engine.close();
    }
}
