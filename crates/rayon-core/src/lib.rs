//! Rayon's core API, on [heist]'s work stealing.
//!
//! Put this crate in the place of rayon-core, and Rayon and everything that is built on it run on heist, unchanged. A program
//! that does not do so has no use for this crate: it calls `heist` itself, or `rayon`.
//!
//! ```toml
//! [patch.crates-io]
//! rayon-core = { path = "…/crates/rayon-core" }
//! ```
//!
//! [`join`](join()) runs two closures, perhaps at once; [`scope`](scope()) many that borrow; [`spawn`](spawn()) some that nobody
//! waits for; [`broadcast`](broadcast()) one on every thread. They use the pool that the thread belongs to, or else the global
//! one. [`ThreadPoolBuilder`] makes pools.
//!
//! ```
//! let (a, b) = rayon_core::join(|| 1 + 1, || 2 + 2);
//! assert_eq!((a, b), (2, 4));
//! ```
//!
//! # What differs from stock
//!
//! * The second half of a join is not shown to others before one of them has nothing to do. Until then a join takes no
//!   atomic read-modify-write, no fence and no allocation.
//! * A half that is run by the thread of the join has not [migrated](FnContext::migrated), even if that thread came to
//!   it while it was waiting for something else.
//! * With [`breadth_first`](ThreadPoolBuilder::breadth_first) a thread runs what it has spawned oldest first, but not the
//!   halves of its joins.
//! * A failed build with [`use_current_thread`](ThreadPoolBuilder::use_current_thread) leaves the current thread as it was.
//! * On a thread of a heist pool, [`join`](join()) forks in that pool; everything else goes to the global one of this crate.
//! * If the environment variable `HEIST_RAYON_LOG` names a file, each pool adds a line to it when its first thread starts.
//! * The feature `web_spin_lock` is there and does nothing.
//!
//! # Where there are no threads
//!
//! On systems without threads the global pool is one thread: the first that uses it. What it spawns is run when it waits for
//! something, or [yields](yield_now).

mod unwind;
mod error;
mod log;
mod fifo;

mod registry;
mod global;
mod thread;
mod builder;
mod configuration;
mod pool;

mod join;
mod scope;
mod spawn;
mod broadcast;
mod yields;

/// The examples of the README, so that they are run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use broadcast::{BroadcastContext, broadcast, spawn_broadcast};
pub use builder::ThreadPoolBuilder;
#[expect(deprecated, reason = "for those who still use them")]
pub use configuration::{Configuration, initialize};
pub use error::ThreadPoolBuildError;
pub use join::{FnContext, join, join_context};
pub use pool::{ThreadPool, current_thread_has_pending_tasks, current_thread_index};
pub use scope::{Scope, ScopeFifo, in_place_scope, in_place_scope_fifo, scope, scope_fifo};
pub use spawn::{spawn, spawn_fifo};
pub use thread::ThreadBuilder;
pub use yields::{Yield, yield_local, yield_now};

/// The most threads that a pool can have. If more are asked for, there are so many.
///
/// ```
/// assert!(rayon_core::max_num_threads() >= rayon_core::current_num_threads());
/// ```
pub fn max_num_threads() -> usize {
    heist::engine::MAX_THREADS
}

/// How many threads the pool has that this thread belongs to, or else the global one.
///
/// ```
/// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(3).build()?;
/// assert_eq!(pool.install(|| rayon_core::current_num_threads()), 3);
/// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
/// ```
pub fn current_num_threads() -> usize {
    registry::with_current(|registry| registry.threads())
}
