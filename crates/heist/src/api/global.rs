//! The global pool, which free functions use outside of any other pool.

use std::mem::ManuallyDrop;
use std::sync::LazyLock;

use crate::api::call::WithoutMigrated;
use crate::api::handle::JoinHandle;
use crate::api::join::fork;
use crate::api::pool::{Inner, Pool, with_shared};
use crate::api::scope::{Scope, open};
use crate::task::Task;
use crate::worker::current::{current_pool, with_worker};
use crate::worker::guest::{Offers, visit};

/// Started by its first use, and never stopped.
static GLOBAL: LazyLock<Pool> = LazyLock::new(|| match Pool::builder().with_guests().build() {
    Ok(pool) => pool,
    Err(error) => panic!("heist: the global pool cannot be started: {error}"),
});

impl Pool {
    /// Returns the pool that free functions use outside of any pool. It is started by its first use, with as many
    /// workers as `HEIST_WORKERS` says, or else as the system grants to the process.
    ///
    /// ```
    /// assert!(heist::Pool::global().workers() >= 1);
    /// ```
    ///
    /// # Panics
    ///
    /// Panics if the pool cannot be started, with the message of the [`BuildError`](crate::BuildError).
    pub fn global() -> &'static Self {
        &GLOBAL
    }
}

/// Calls a closure that forks, for a thread that belongs to no pool: on that thread, as a guest of the global pool, or else
/// on that pool.
pub(crate) fn outside<R: Send>(offers: Offers, f: impl FnOnce() -> R + Send) -> R {
    let pool = Pool::global();
    with_shared!(pool, shared => visit(shared, offers, f)).unwrap_or_else(|f| pool.install(f))
}

#[cfg(shuttle)]
impl Pool {
    /// Calls a closure that forks on the calling thread, which belongs to no pool, as a guest of this pool, or else on the
    /// pool.
    #[doc(hidden)]
    pub fn visit<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
        with_shared!(self, shared => visit(shared, Offers::Later, f))
            .unwrap_or_else(|f| self.install(f))
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
    let mut f = Some(f);
    let spawned = with_worker(|worker| {
        // SAFETY: the closure is `'static`, so it borrows nothing.
        let (task, handle) = unsafe { Task::new(f.take().expect("once")) };
        worker.push_local(task, 1);
        JoinHandle::new(handle, current_pool())
    });
    spawned.unwrap_or_else(|| Pool::global().spawn(f.take().expect("not used above")))
}
