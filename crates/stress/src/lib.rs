//! Stress tests for heist and heist-deque.
//!
//! A [`Subject`] is a part of the libraries: queues, pools, forks, loops, pipelines, engines. A *case* is
//! one run of a subject with fixed parameters, of which everything is checked: each item, task and leaf
//! must come exactly once, each result must be the expected one, and the counters of the pool must agree
//! with what happened.
//!
//! There are two users:
//!
//! * `heist soak` runs [random cases](random) for as long as the user likes, and calls each of them a
//!   *shape*. A seed and a number identify a random case, and running it again takes only these two.
//! * The program `stress` runs whole subjects with [`Subject::run`]: large cases whose results are known,
//!   and then some random ones. ThreadSanitizer, AddressSanitizer and the checks run it.
//!
//! ThreadSanitizer forgets what a thread did once the thread has ended and was detached, which is what
//! dropping its `JoinHandle` does (even that of a scoped thread). Every case therefore keeps the handles of
//! its threads and joins them.

mod rng;
mod error;
mod planned;
mod exactly_once;
mod pool_choice;
mod watchdog;
mod monitor;
mod subject;
pub mod random;
mod queues;
mod pools;
mod forks;
mod loops;
mod pipelines;
mod engines;

pub use error::{Error, Violation};
pub use monitor::Monitor;
pub use subject::{Size, Subject};
pub use watchdog::{Watchdog, Watched};
