//! Rayon's core API on [heist]'s work-stealing scheduler.
//!
//! Put this crate in the place of rayon-core, and Rayon and everything that is built on it run on heist,
//! unchanged. Other programs do not need this crate: they use `heist` or `rayon` directly.
//!
//! ```toml
//! [patch.crates-io]
//! rayon-core = { path = "…/crates/rayon-core" }
//! ```
//!
//! * [`join`](join()) runs two closures, potentially in parallel.
//! * [`scope`](scope()) runs any number of closures that borrow, and waits for them.
//! * [`spawn`](spawn()) runs a closure that nothing waits for.
//! * [`broadcast`](broadcast()) runs a closure on every thread.
//!
//! They use the pool that the current thread belongs to, or otherwise the global pool.
//! [`ThreadPoolBuilder`] builds pools.
//!
//! ```
//! let (a, b) = rayon_core::join(|| 1 + 1, || 2 + 2);
//! assert_eq!((a, b), (2, 4));
//! ```
//!
//! # Differences from stock rayon-core
//!
//! * The second closure of a join is not visible to other threads until one of them is idle. Until then, a
//!   join needs no atomic read-modify-write, no fence and no allocation.
//! * A closure that runs on the thread of its join has not [migrated](FnContext::migrated), even if that
//!   thread took it while it waited for something else.
//! * With [`breadth_first`](ThreadPoolBuilder::breadth_first) a thread runs what it has spawned oldest
//!   first, but not the closures of its joins.
//! * If a build with [`use_current_thread`](ThreadPoolBuilder::use_current_thread) fails, the current
//!   thread does not belong to a pool.
//! * On a thread of a heist pool, [`join`](join()) forks in that pool. All other functions use the global
//!   pool of this crate.
//! * If the environment variable `HEIST_RAYON_LOG` names a file, each pool appends a line to it when its
//!   first thread starts.
//! * The feature `web_spin_lock` exists and has no effect.
//!
//! # Systems without threads
//!
//! On systems without threads, the global pool consists of one thread: the first one that uses it. This
//! thread runs what it has spawned when it waits for something or [yields](yield_now).

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

/// Runs the examples of the README as doctests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use broadcast::{BroadcastContext, broadcast, spawn_broadcast};
pub use builder::ThreadPoolBuilder;
#[expect(deprecated, reason = "part of the API of rayon-core")]
pub use configuration::{Configuration, initialize};
pub use error::ThreadPoolBuildError;
pub use join::{FnContext, join, join_context};
pub use pool::{ThreadPool, current_thread_has_pending_tasks, current_thread_index};
pub use scope::{Scope, ScopeFifo, in_place_scope, in_place_scope_fifo, scope, scope_fifo};
pub use spawn::{spawn, spawn_fifo};
pub use thread::ThreadBuilder;
pub use yields::{Yield, yield_local, yield_now};

/// Returns the maximum number of threads of a pool. If more are requested, a pool has this many.
///
/// ```
/// assert!(rayon_core::max_num_threads() >= rayon_core::current_num_threads());
/// ```
pub fn max_num_threads() -> usize {
    heist::engine::MAX_THREADS
}

/// Returns the number of threads of the pool that this thread belongs to, or otherwise of the global pool.
///
/// ```
/// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(3).build()?;
/// assert_eq!(pool.install(|| rayon_core::current_num_threads()), 3);
/// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
/// ```
pub fn current_num_threads() -> usize {
    registry::with_current_registry(|registry| registry.threads())
}
