//! Work-stealing parallelism.
//!
//! [`join`] runs two closures, possibly in parallel, for about the cost of two calls, so that no sequential
//! cutoff is needed. [`scope`] runs any number of closures. [`parallel`] has loops and sorts, [`pipeline`] has
//! streams in batches.
//!
//! ```
//! fn fibonacci(n: u64) -> u64 {
//!     if n < 2 {
//!         return n;
//!     }
//!     let (a, b) = heist::join(|| fibonacci(n - 1), || fibonacci(n - 2));
//!     a + b
//! }
//! assert_eq!(fibonacci(20), 6765);
//!
//! let mut words = vec!["pear", "fig", "apple"];
//! heist::parallel::sort(&mut words);
//! assert_eq!(heist::parallel::map(&words, |word| word.len()), [5, 3, 4]);
//! ```
//!
//! A [`Pool`] runs closures on its workers. Each worker has a deque of its own; an idle worker steals the oldest
//! tasks of another. [`Pool::spawn`] returns a [`JoinHandle`], which can be joined or awaited. [`Pool::install`]
//! runs a closure that borrows and returns its result. [`block_on`] waits for a future without keeping a worker from other
//! tasks. With the feature `futures`, `Pool::spawn_future` has the workers poll a future.
//!
//! ```
//! let pool = heist::Pool::builder().workers(2).build()?;
//! let handle = pool.spawn(|| (1..=100).sum::<u32>());
//! assert_eq!(handle.join().unwrap(), 5050);
//!
//! pool.stop();
//! let stats = pool.stats();
//! assert_eq!(stats.total.tasks_submitted, stats.total.tasks_completed);
//! # Ok::<(), heist::BuildError>(())
//! ```
//!
//! # Guarantees of every [`Strategy`]
//!
//! * A task runs at most once. It completes, panics, or is cancelled by a stop, and is counted as one of these.
//! * A panic goes to the thread that waits for the task, or else to [`Builder::on_panic`]. The worker continues.
//! * A worker that waits for a task does not keep other tasks from running.
//! * An idle pool uses no processor time: nothing polls, and there is no timer. No wake-up is lost.
//! * [`Pool::stop`] waits for all tasks, and all threads have ended when it returns.
//! * Both closures of a join, and all closures of a scope, have ended before it returns or panics. A thread that
//!   waits for them runs other parts of the same task meanwhile, and nothing else; see [`isolate`] if it holds a
//!   lock.

// Each module uses only those above it: `ci/layers.sh` checks that.
mod cancel;
mod cluster;
mod error;
mod order;
mod panic;
mod priority;
mod sync;
pub mod topology;

mod stats;
pub mod trace;

mod task;
mod queues;
mod idle;
mod fork;
mod worker;
mod api;

#[doc(hidden)]
pub mod engine;
pub mod parallel;
pub mod pipeline;

/// The example of the README, so that it is run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(all(test, loom))]
mod models;

pub use api::block::block_on;
pub use api::builder::Builder;
pub use api::current::{PoolHandle, worker_index};
#[cfg(feature = "futures")]
pub use api::future::{FutureHandle, spawn_future};
pub use api::global::spawn;
pub use api::handle::{AbortOnDrop, JoinHandle};
pub use api::isolate::isolate;
pub use api::join::join;
pub use api::limit::Full;
pub use api::pin::Pin;
pub use api::pool::Pool;
pub use api::resize::ResizeError;
pub use api::scope::{Scope, scope};
pub use api::scoped::ScopedJoinHandle;
pub use api::stop::stop_point;
pub use api::task::{TaskBuilder, current_priority, is_cancelled};
pub use api::yields::yield_now;
pub use cancel::{CancelGuard, CancelToken};
pub use error::{BuildError, Cancelled, JoinError};
pub use panic::Panic;
pub use priority::Priority;
pub use queues::Strategy;
pub use stats::{Counters, Stats};
pub use worker::dump::PoolDump;
