//! Copies of the process: a child of `fork()` has a copy of every pool, and of all threads only the one that has called it. In
//! such a copy nobody works for these pools, and what another thread had locked stays locked.
//!
//! The child is told by a handler that `fork()` calls in it. A child that was made in another way, such as by a bare system
//! call, is not told. On systems without `fork()` there are no copies.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, Once};
use std::time::Duration;

/// How many times the process was copied, from the first one that has used this crate to this one.
///
/// Ordering: relaxed. It changes when there is only one thread.
static COPIES: AtomicUsize = AtomicUsize::new(0);

/// The pools that were built in a copy, each with the number of that copy. In the first process nobody asks for them. A pool that is
/// gone stays here: the next one at its address was built here as well.
static POOLS: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// A lock that is not free for so many milliseconds, in a copy of the process, is that of a thread which is not there: no user
/// code runs under the locks of this crate.
const PATIENCE: u32 = 10_000;
/// How often a thread yields its processor before it sleeps for the first of these milliseconds. The pools of the copy itself have
/// locks that are free again after a moment.
const YIELDS: u32 = 1_000;

/// Returns which copy of the first process this one is: zero if it is none.
#[inline(always)]
pub(crate) fn copies() -> usize {
    COPIES.load(Ordering::Relaxed)
}

/// Returns whether the pool with that id was built before this process was copied, so that it has no threads here. Zero is no pool.
#[inline(always)]
pub(crate) fn is_left_behind(pool: usize) -> bool {
    copies() != 0 && pool != 0 && !is_built_here(pool)
}

#[cold]
fn is_built_here(pool: usize) -> bool {
    super::lock(&POOLS).contains(&(copies(), pool))
}

/// Notes that the pool with that id was built in this process.
pub(crate) fn note_built(pool: usize) {
    if copies() != 0 && !is_built_here(pool) {
        super::lock(&POOLS).push((copies(), pool));
    }
}

/// Ends the process if it was copied since there were so many copies, because this thread would wait for one that is not there.
#[inline(always)]
pub(crate) fn must_not_be_copied(since: usize) {
    if copies() != since {
        die();
    }
}

/// Panics because a pool is used in a copy of the process that has none of its threads.
#[cold]
pub(crate) fn refuse_copy() -> ! {
    panic!(
        "heist: the pool was built before this process was forked, and its threads exist only in the parent: build a pool in the \
         child"
    )
}

/// Ends a copy of the process in which something would never happen.
#[cold]
fn die() -> ! {
    eprintln!(
        "heist: fork() was called by a task of a pool, and the child waits for threads that exist only in the parent: call \
         exec or _exit in the child, or fork before the pool is built"
    );
    std::process::abort();
}

/// Locks a mutex in a copy of the process, where nobody may be left to unlock it.
#[cold]
pub(crate) fn lock_in_copy<T>(mutex: &Mutex<T>) -> super::MutexGuard<'_, T> {
    for _ in 0..YIELDS {
        if let Some(guard) = super::try_lock(mutex) {
            return guard;
        }
        std::thread::yield_now();
    }
    for _ in 0..PATIENCE {
        if let Some(guard) = super::try_lock(mutex) {
            return guard;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    die()
}

/// Has `fork()` call `before`, and then `after` in both processes, and then `in_copy` in the new one, where the process is noted as
/// a copy by then. Only the first call has an effect.
pub(crate) fn watch_copies(before: Handler, after: Handler, in_copy: Handler) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| system::watch(before, after, in_copy));
}

type Handler = unsafe extern "C" fn();

#[cfg(all(unix, not(miri)))]
mod system {
    use super::{COPIES, Handler, Ordering};

    unsafe extern "C" fn count() {
        COPIES.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn watch(before: Handler, after: Handler, in_copy: Handler) {
        // Handlers after a fork are called in the order of these calls. If there is no memory for them, a copy behaves as on a
        // system without them.
        //
        // SAFETY: the handlers do not unwind, and use nothing that a copy of the process does not have.
        let _ = unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after)) };
        // SAFETY: as above.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(count)) };
        // SAFETY: as above.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(in_copy)) };
    }
}

#[cfg(not(all(unix, not(miri))))]
mod system {
    use super::Handler;

    pub(super) fn watch(_: Handler, _: Handler, _: Handler) {}
}
