//! What code can ask about the pool and the worker that it runs on.

use std::fmt;
use std::hash::{Hash, Hasher};

use crate::api::handle::JoinHandle;
use crate::api::pool::{Pool, install_on};
use crate::fork::job;
use crate::priority::Priority;
use crate::stats::Stats;
use crate::sync::Arc;
use crate::task::Task;
use crate::worker::current::{AnyPool, with_worker};
use crate::worker::dump::PoolDump;

/// Returns the number of the worker that the calling thread is at the moment, from zero to one less than the largest number of
/// workers of the pool ([`Builder::max_workers`](crate::Builder::max_workers), or [`workers`](crate::Builder::workers) if
/// that was not set). At any moment, no two threads of a pool have the same number. After a
/// [`resize`](crate::Pool::resize), a task that still runs may be a worker beyond the new size.
///
/// Returns `None` on a thread of no pool, and on a thread of a pool that has no core, the right to run as a worker:
///
/// * A task that waits, for a task, a scope or another pool, may go on without a core when its wait is over, until a
///   worker gives it one. Meanwhile it is not one of the workers.
/// * A thread of no pool that runs a [`join`](crate::join()), a [`scope`](crate::scope()) or a loop takes part in the global
///   pool, but is not one of its workers.
/// * The hooks of [`Builder::on_thread_start`](crate::Builder::on_thread_start) and
///   [`Builder::on_thread_stop`](crate::Builder::on_thread_stop) run before a thread has its first core, and after it had
///   its last one.
///
/// So the number may change at every wait, and a task may be another worker after a [`join`](crate::join()) than before
/// it. Use it for statistics, or to choose one of several places that are protected in other ways. It does not stay
/// the caller's own.
///
/// ```
/// assert_eq!(heist::worker_index(), None);
///
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let index = pool.install(heist::worker_index);
/// assert!(matches!(index, Some(0 | 1)));
/// # Ok::<(), heist::BuildError>(())
/// ```
pub fn worker_index() -> Option<usize> {
    with_worker(|worker| worker.worker_index()).flatten()
}

impl Pool {
    /// Returns a handle to the pool that the calling thread belongs to, or `None` on a thread of no pool.
    ///
    /// ```
    /// use heist::Pool;
    ///
    /// assert!(Pool::current().is_none());
    ///
    /// let pool = Pool::builder().workers(2).build()?;
    /// let current = pool.install(Pool::current).unwrap();
    /// assert_eq!(current, pool.handle());
    /// assert_eq!(current.workers(), 2);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn current() -> Option<PoolHandle> {
        with_worker(|worker| PoolHandle::new(worker.owned_pool()))
    }
}

/// A handle to a pool that somebody else owns. It can be cloned, and costs no more than a counted pointer.
///
/// A handle does not keep the pool running. When the [`Pool`] is stopped or dropped, its threads end, whatever handles there
/// are. From then on tasks that are spawned by a handle are refused, as those of the pool are. A handle keeps only the memory
/// of the pool's queues and counters.
///
/// Two handles are equal if they are handles to the same pool.
///
/// ```
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let handle = pool.handle();
/// assert_eq!(handle.spawn(|| 6 * 7).join().unwrap(), 42);
///
/// drop(pool);
/// assert_eq!(handle.stats().threads, 0);
/// assert!(matches!(handle.spawn(|| ()).join(), Err(heist::JoinError::Stopped)));
/// # Ok::<(), heist::BuildError>(())
/// ```
// It owns the shared state, as a pipeline does whose results were not taken yet, and not a `Pool`: to drop a `Pool` is to stop
// it. A weak pointer would spare the memory, but then every method could fail, and a handle to a pool that is gone could be
// equal to one to a pool that is in the same place.
#[derive(Clone)]
pub struct PoolHandle(Arc<dyn AnyPool>);

impl PoolHandle {
    pub(super) fn new(pool: Arc<dyn AnyPool>) -> Self {
        Self(pool)
    }

    pub(super) fn any_pool(&self) -> &dyn AnyPool {
        &*self.0
    }

    #[cfg(feature = "futures")]
    pub(super) fn owned_pool(&self) -> Arc<dyn AnyPool> {
        Arc::clone(&self.0)
    }

    /// Spawns a task on the pool, as [`Pool::spawn`] does.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let twice = pool.install(|| {
    ///     let here = heist::Pool::current().expect("a thread of the pool");
    ///     here.spawn(|| 21 * 2)
    /// });
    /// assert_eq!(twice.join().unwrap(), 42);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn spawn<F, T>(&self, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        if job::is_controlled() || self.0.admission().is_some() {
            return self.task().spawn(f);
        }
        // SAFETY: the closure is `'static`, so it borrows nothing.
        let (task, handle) = unsafe { Task::new(f) };
        self.0.submit(Priority::Normal, task, 1);
        JoinHandle::new(handle, self.0.id())
    }

    /// Runs a closure on the pool, waits for it, and returns its result, as [`Pool::install`] does.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let mut numbers = [3, 1, 2];
    /// pool.handle().install(|| heist::parallel::sort(&mut numbers));
    /// assert_eq!(numbers, [1, 2, 3]);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// Panics with the panic of the closure, and if the pool has stopped.
    pub fn install<F, R>(&self, f: F) -> R
    where
        F: FnOnce() -> R + Send,
        R: Send,
    {
        install_on(self.any_pool(), self.0.id(), f)
    }

    /// Returns the number of workers.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// assert_eq!(pool.handle().workers(), 2);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn workers(&self) -> usize {
        self.0.workers()
    }

    /// Returns the counters of the pool as they are now.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// pool.spawn(|| ());
    /// pool.stop();
    /// assert_eq!(pool.handle().stats(), pool.stats());
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn stats(&self) -> Stats {
        self.0.stats()
    }

    /// Returns what the pool does at the moment, as [`Pool::dump`] does. A thread that notices that a program hangs can
    /// have a handle for this. In a pool that keeps a [trace](crate::trace), the text has the last events of each thread.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let handle = pool.handle();
    /// pool.stop();
    /// assert!(handle.dump().to_string().starts_with("pool of 2 workers, ended"));
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn dump(&self) -> PoolDump {
        self.0.dump()
    }
}

impl PartialEq for PoolHandle {
    fn eq(&self, other: &Self) -> bool {
        self.0.id() == other.0.id()
    }
}

impl Eq for PoolHandle {}

impl Hash for PoolHandle {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id().hash(state);
    }
}

impl fmt::Debug for PoolHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolHandle").field("workers", &self.workers()).finish_non_exhaustive()
    }
}
