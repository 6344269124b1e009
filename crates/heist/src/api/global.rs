//! The global pool, which free functions use outside of any other pool.

use std::mem::ManuallyDrop;
use std::sync::OnceLock;

use crate::api::builder::Builder;
use crate::api::call::WithoutMigrated;
use crate::api::handle::JoinHandle;
use crate::api::join::fork;
use crate::api::pool::{Inner, Pool, with_shared};
use crate::api::scope::{Scope, open};
use crate::error::BuildError;
use crate::fork::job;
use crate::task::Task;
use crate::worker::current::{current_pool, has_admission, with_worker};
use crate::worker::guest::{Offers, visit};

/// Started by [`Builder::build_global`], or else by its first use, and never stopped by heist.
static GLOBAL: OnceLock<Pool> = OnceLock::new();

/// Starts the global pool for its first use.
#[cold]
fn start() -> Pool {
    match Pool::builder().with_guests().build() {
        Ok(pool) => pool,
        Err(error) => panic!("heist: the global pool cannot be started: {error}"),
    }
}

impl Pool {
    /// Returns the pool that free functions use outside of any pool. Unless [`Builder::build_global`] has started it, it
    /// is started by its first use, with as many workers as `HEIST_WORKERS` says, or else as the system grants to the
    /// process.
    ///
    /// ```
    /// assert!(heist::Pool::global().workers() >= 1);
    /// ```
    ///
    /// # Panics
    ///
    /// Panics if the pool cannot be started, with the message of the [`BuildError`](crate::BuildError).
    pub fn global() -> &'static Self {
        GLOBAL.get_or_init(start)
    }
}

impl Builder {
    /// Starts the pool as the [global](Pool::global) one, which free functions use outside of any pool.
    ///
    /// Call this at the beginning of `main`, before anything has used the global pool. If several threads call this and
    /// [`Pool::global`] at the same time, one of them starts the global pool. Each other call of this function returns
    /// an error, and a pool that it had started in vain has stopped by then.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(3).build_global()?;
    /// assert_eq!(heist::Pool::global().workers(), 3);
    /// assert!(std::ptr::eq(pool, heist::Pool::global()));
    ///
    /// let error = heist::Pool::builder().workers(4).build_global().unwrap_err();
    /// assert!(matches!(error, heist::BuildError::GlobalStarted { workers: 3 }));
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    ///
    /// The closures of [`thread_name`](Self::thread_name) and [`on_thread_start`](Self::on_thread_start) may run before
    /// this pool is the global one. They should not call [`Pool::global`], which would start another pool then. Free
    /// functions, such as [`spawn`](crate::spawn()), use this pool on its threads in any case.
    ///
    /// # Errors
    ///
    /// Returns [`BuildError::GlobalStarted`] if the global pool has been started already, and otherwise the errors of
    /// [`build`](Self::build), after which the global pool can still be started.
    pub fn build_global(self) -> Result<&'static Pool, BuildError> {
        let started = || {
            let workers = Pool::global().workers();
            BuildError::GlobalStarted { workers }
        };
        if GLOBAL.get().is_some() {
            return Err(started());
        }
        let pool = self.with_guests().build()?;
        // This waits for a call of `global` that is starting the pool. A lock around `build` would spare a pool that is
        // started in vain, but a closure of the builder that calls `global` would then wait for itself.
        match GLOBAL.set(pool) {
            Ok(()) => Ok(Pool::global()),
            Err(late) => {
                drop(late);
                Err(started())
            }
        }
    }
}

/// Calls a closure that forks, for a thread that belongs to no pool: on that thread, as a guest of the global pool, or else
/// on that pool.
pub(crate) fn outside<R: Send>(offers: Offers, f: impl FnOnce() -> R + Send) -> R {
    as_guest(Pool::global(), offers, f)
}

/// Calls a closure that forks, for a thread that belongs to no pool: on that thread, as a guest of this pool, or else on the
/// pool.
fn as_guest<R: Send>(pool: &Pool, offers: Offers, f: impl FnOnce() -> R + Send) -> R {
    let (mut f, mut result) = (Some(f), None);
    let mut call = || result = f.take().map(|f| f());
    if with_shared!(pool, shared => visit(shared, offers, &mut call)) {
        return result.expect("it was called");
    }
    pool.install(f.expect("it was not called"))
}

#[cfg(shuttle)]
impl Pool {
    /// Calls a closure that forks on the calling thread, which belongs to no pool, as a guest of this pool, or else on the
    /// pool.
    #[doc(hidden)]
    pub fn visit<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
        as_guest(self, Offers::Later, f)
    }
}

/// Runs [`join`](crate::join) for a thread that belongs to no pool.
#[cold]
#[inline(never)]
pub(crate) fn join_outside<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    outside(Offers::Later, || fork::<WithoutMigrated, _, _, _, _>(a, ManuallyDrop::new(b)))
}

/// Runs [`scope`](crate::scope) for a thread that belongs to no pool.
#[cold]
#[inline(never)]
pub(crate) fn scope_outside<'scope, F, R>(f: F) -> R
where
    F: FnOnce(&Scope<'scope>) -> R + Send,
    R: Send,
{
    outside(Offers::Later, || open(f))
}

/// Spawns a task on the pool that this thread belongs to, or else on the [global](Pool::global) one.
///
/// ```
/// let handle = heist::spawn(|| 6 * 7);
/// assert_eq!(handle.join().unwrap(), 42);
/// ```
pub fn spawn<F, T>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    if job::is_controlled() || has_admission() {
        if let Some(pool) = Pool::current() {
            return pool.spawn(f);
        }
    }
    let mut f = Some(f);
    let spawned = with_worker(|worker| {
        // SAFETY: the closure is `'static`, so it borrows nothing.
        let (task, handle) = unsafe { Task::new(f.take().expect("once")) };
        worker.push_local(task, 1);
        JoinHandle::new(handle, current_pool())
    });
    spawned.unwrap_or_else(|| Pool::global().spawn(f.take().expect("not used above")))
}
