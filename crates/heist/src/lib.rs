//! Work-stealing parallelism.
//!
//! [`join`] runs two closures, perhaps at once, for about the price of two calls: fork wherever there are two
//! things to do. [`scope`] runs many, [`parallel`] has loops and sorts.
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
//! A [`Pool`] runs closures on its workers. Each worker keeps its own tasks in a deque of its own;
//! one that has nothing to do takes the oldest from another. [`Pool::spawn`] gives a [`JoinHandle`],
//! to be joined or awaited; [`Pool::install`] runs a closure that borrows and returns its value.
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
//! # What holds, whatever the [`Strategy`]
//!
//! * A task runs at most once. It completes, panics, or is cancelled by a stop, and is counted as
//!   one of these.
//! * A panic goes to whoever waits, else to [`Builder::on_panic`]; the worker lives on.
//! * A worker that waits for a task does not keep others from running.
//! * An idle pool uses no processor time: nothing polls, nothing ticks. No wake-up is lost.
//! * [`Pool::stop`] waits for everything; no thread is left behind.
//! * Both closures of a join, and all of a scope, have ended before it returns or panics. A thread that waits for
//!   them runs parts of the same task meanwhile, and nothing else; see [`isolate`] if it holds a lock.

// Each module uses only those above it: `ci/layers.sh` checks that.
mod cancel;
mod error;
mod order;
mod panic;
mod sync;

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

pub use api::builder::Builder;
pub use api::global::spawn;
pub use api::handle::JoinHandle;
pub use api::isolate::isolate;
pub use api::join::join;
pub use api::pool::Pool;
pub use api::scope::{Scope, scope};
pub use cancel::CancelToken;
pub use error::{BuildError, JoinError};
pub use panic::Panic;
pub use queues::Strategy;
pub use stats::{Counters, Stats};
