//! Copies of the process: a child of `fork()` has a copy of every pool, and of all threads only the one that has called it. In
//! such a copy nobody works for these pools, and what another thread had locked stays locked.
//!
//! The child is told by a handler that `fork()` calls in it. A child that was made in another way, such as by a bare system
//! call, is not told. On systems without `fork()` there are no copies.

use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, Once};
use std::time::Duration;
use std::{iter, ptr};

/// How many times the process was copied, from the first one that has used this crate to this one.
///
/// Ordering: relaxed. It changes when there is only one thread.
static COPIES: AtomicUsize = AtomicUsize::new(0);

/// The pool that was built last in a copy of the process. In the first process nobody asks for it. A list without a lock, because
/// the next copy may be made while another thread uses it.
///
/// Ordering: release when one is added, acquire when the list is read, so that the reader sees the entry. Whoever adds one has
/// seen those before it.
static POOLS: AtomicPtr<Built> = AtomicPtr::new(ptr::null_mut());

/// A pool that was built in a copy of the process. One that is gone stays in the list: the next one at its address was built there
/// as well.
struct Built {
    copy: usize,
    pool: usize,
    before: Option<&'static Self>,
}

/// A lock that is not free for so many milliseconds, in a copy of the process, is that of a thread which is not there: no user
/// code runs under the locks of this crate, except under those that `lock_for_long` takes.
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
    let mut pools = iter::successors(last_built(), |built| built.before);
    pools.any(|built| (built.copy, built.pool) == (copies(), pool))
}

fn last_built() -> Option<&'static Built> {
    // SAFETY: null, or an entry that was leaked, and is not written to since it was added.
    unsafe { POOLS.load(Ordering::Acquire).as_ref() }
}

/// Notes that the pool with that id was built in this process.
pub(crate) fn note_built(pool: usize) {
    if copies() != 0 && !is_built_here(pool) {
        add_built(pool);
    }
}

#[cold]
fn add_built(pool: usize) {
    let built = Box::leak(Box::new(Built { copy: copies(), pool, before: None }));
    loop {
        built.before = last_built();
        let before = built.before.map_or(ptr::null(), ptr::from_ref).cast_mut();
        // Ordering: that of a failure is relaxed, because the list is read again.
        let added = POOLS.compare_exchange(before, built, Ordering::Release, Ordering::Relaxed);
        if added.is_ok() {
            return;
        }
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

const LAST_WORDS: &str = "heist: fork() was called by a task of a pool, and the child waits for threads that exist only in the parent: call exec or \
     _exit in the child, or fork before the pool is built\n";

/// Ends a copy of the process in which something would never happen.
#[cold]
fn die() -> ! {
    system::say(LAST_WORDS);
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

    /// Writes a text to the standard error, without the lock of the standard library: a thread that is not here may have that.
    pub(super) fn say(text: &str) {
        // SAFETY: the text is readable for its length.
        let _ = unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len() as _) };
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

    pub(super) fn say(text: &str) {
        eprint!("{text}");
    }

    pub(super) fn watch(_: Handler, _: Handler, _: Handler) {}
}
