//! Resizing: a pool that uses more or fewer workers while it runs.

use std::fmt;

use crate::api::builder::Builder;
use crate::api::current::PoolHandle;
use crate::api::pool::{Inner, Pool, with_shared};
use crate::worker::quota::Quota;

/// The reason why a pool was not resized. It uses as many workers as before.
///
/// ```
/// use heist::{Pool, ResizeError};
///
/// let pool = Pool::builder().workers(2).build()?;
/// assert_eq!(pool.resize(0), Err(ResizeError::ZeroWorkers));
/// assert_eq!(pool.resize(3), Err(ResizeError::AboveMaximum { asked: 3, max_workers: 2 }));
/// # Ok::<(), heist::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ResizeError {
    /// The pool was to use no worker, and would run nothing any more.
    ZeroWorkers,
    /// The pool was to use more workers than it was built for.
    AboveMaximum {
        /// The number of workers that were requested.
        asked: usize,
        /// The largest number of workers that the pool can use.
        max_workers: usize,
    },
}

impl fmt::Display for ResizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroWorkers => {
                f.write_str("a pool needs a worker: resize it to at least one, or stop it")
            }
            Self::AboveMaximum { asked, max_workers } => write!(
                f,
                "the pool was built for at most {max_workers} workers, and {asked} were asked for: build it with \
                 `Builder::max_workers({asked})`"
            ),
        }
    }
}

impl std::error::Error for ResizeError {}

impl Builder {
    /// Sets the largest number of workers that [`Pool::resize`] can set. The default is the number of
    /// [workers](Self::workers) with which the pool starts.
    ///
    /// The threads of all of them are started with the pool. Those that are not used sleep, and keep the memory of their stacks.
    /// The others take them for busy: before a worker sleeps for long, it looks once more whether they have something for it. A
    /// pool that is built for more than eight workers divides them into several groups, which costs a little even when few of
    /// them are used.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(2).max_workers(4).build()?;
    /// assert_eq!((pool.workers(), pool.max_workers()), (2, 4));
    /// pool.resize(4).unwrap();
    /// assert_eq!(pool.workers(), 4);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn max_workers(mut self, workers: usize) -> Self {
        self.max_workers = Some(workers);
        self
    }

    /// Makes the pool follow the CPU limit of the control groups that contain the process, such as that of its container: it
    /// uses no more workers than the limit has whole processors, and at least one.
    ///
    /// The limit is read when the pool is built, and then once a second by a thread of its own, which sleeps in between. If the
    /// limit grows, the pool uses more workers again, up to the number that was asked for by [`workers`](Self::workers) or
    /// [`Pool::resize`]. If no number was asked for, the pool is built for all processors of the affinity mask, whatever the limit
    /// is at the time. Without this setting, a pool considers the limit only when it is built.
    ///
    /// Where there are no control groups, which is everywhere but on Linux and Android, there is no limit.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(2).follow_cgroup().build()?;
    /// assert!((1..=2).contains(&pool.workers()));
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn follow_cgroup(mut self) -> Self {
        self.quota = Some(Quota::of_process());
        self
    }
}

impl Pool {
    /// Makes the pool use that many workers from now on: at least one, and at most [`max_workers`](Self::max_workers).
    ///
    /// It returns at once, and can be called at any time, also by a task of the pool. Nothing is lost:
    ///
    /// * If there are fewer workers than before, those with the highest numbers stop at the end of their tasks; what they have
    ///   queued is done by the others. A worker that waits inside a task goes on until its task is done. So more tasks may run
    ///   for a while than the pool has workers.
    /// * If there are more, they begin at once.
    ///
    /// The threads of workers that are not used count towards [`Builder::max_threads`]. If that leaves no other thread to a task
    /// that waits, one of them runs what is queued, as long as the task waits.
    ///
    /// [`stop`](Self::stop) and [`stop_now`](Self::stop_now) use all workers for what is left, whatever the size. After them a
    /// resize has no effect.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(4).build()?;
    /// pool.resize(1)?;
    /// assert_eq!(pool.workers(), 1);
    /// let sum: u32 = (0..100).map(|n| pool.spawn(move || n)).map(|task| task.join().unwrap()).sum();
    /// assert_eq!(sum, 4950);
    /// pool.resize(4)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error, and changes nothing, if the number is zero or above [`max_workers`](Self::max_workers).
    pub fn resize(&self, workers: usize) -> Result<(), ResizeError> {
        check(workers, self.max_workers())?;
        with_shared!(self, shared => shared.ask_for_workers(workers));
        Ok(())
    }

    /// Returns the largest number of workers that the pool can use: see [`Builder::max_workers`].
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(3).build()?;
    /// assert_eq!(pool.max_workers(), 3);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn max_workers(&self) -> usize {
        with_shared!(self, shared => shared.config.workers)
    }
}

impl PoolHandle {
    /// Makes the pool use that many workers from now on, as [`Pool::resize`] does.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let handle = pool.handle();
    /// // A task can make room for others.
    /// pool.spawn(move || handle.resize(1)).join().unwrap()?;
    /// assert_eq!(pool.workers(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error, and changes nothing, if the number is zero or above the pool's
    /// [`max_workers`](Pool::max_workers).
    pub fn resize(&self, workers: usize) -> Result<(), ResizeError> {
        check(workers, self.any_pool().max_workers())?;
        self.any_pool().ask_for_workers(workers);
        Ok(())
    }
}

fn check(asked: usize, max_workers: usize) -> Result<(), ResizeError> {
    match asked {
        0 => Err(ResizeError::ZeroWorkers),
        _ if asked > max_workers => Err(ResizeError::AboveMaximum { asked, max_workers }),
        _ => Ok(()),
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::fs;
    use std::time::Duration;

    use heist_testkit::machine::Root;
    use heist_testkit::watchdog::eventually;

    use super::*;

    const LIMIT: &str = "sys/fs/cgroup/box/cpu.max";

    fn builder(root: &Root) -> Builder {
        let quota = Quota { root: root.path().to_owned(), period: Duration::from_millis(1) };
        let mut builder = Pool::builder().workers(4);
        builder.quota = Some(quota);
        builder
    }

    /// Waits until the pool uses so many workers.
    fn wait_for(pool: &Pool, workers: usize) {
        eventually("the pool is resized", || {
            assert_eq!(pool.install(|| 6 * 7), 42);
            pool.workers() == workers
        });
    }

    #[test]
    fn a_pool_follows_its_group() {
        let root = Root::new().file("proc/self/cgroup", "0::/box\n").file(LIMIT, "250000 100000\n");
        let pool = builder(&root).build().unwrap();
        assert_eq!(pool.workers(), 2, "rounded down");
        let root = root.file(LIMIT, "50000 100000\n");
        wait_for(&pool, 1);
        let root = root.file(LIMIT, "max 100000\n");
        wait_for(&pool, 4);
        // The smaller one of what the user asks for and what the system grants.
        pool.resize(3).unwrap();
        assert_eq!(pool.workers(), 3);
        let root = root.file(LIMIT, "200000 100000\n");
        wait_for(&pool, 2);
        pool.resize(1).unwrap();
        wait_for(&pool, 1);
        // A group that is gone limits nothing.
        fs::remove_dir_all(root.path().join("sys")).unwrap();
        pool.resize(4).unwrap();
        wait_for(&pool, 4);
        pool.stop();
    }

    #[test]
    fn a_pool_without_a_limit_has_all_its_workers() {
        let pool = builder(&Root::new()).build().unwrap();
        assert_eq!(pool.workers(), 4);
        drop(pool);
    }
}
