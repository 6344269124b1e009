//! Work-stealing queues for people who write schedulers.
//!
//! A *deque* has one owner, who pushes and pops at one end, and any number of thieves, who take
//! from the other. The owner meets its newest item first (it is still in the cache); a thief gets
//! the oldest (it is usually the largest piece of work). Three flavours have the same handles and
//! the same verbs; pick one by its module:
//!
//! | module | when it is full | synchronization |
//! |---|---|---|
//! | [`bounded`] | hands the item back as [`Full`] | one atomic exchange per pop, one per steal |
//! | [`growable`] | doubles | the same |
//! | [`locked`] | never is | a mutex; thieves only try it. The baseline to measure against |
//!
//! And [`Injector`], a shared first-in first-out queue, for work that comes from outside.
//!
//! ```
//! use heist_deque::{Steal, bounded};
//!
//! let (worker, stealer) = bounded::new(64)?;
//! worker.push("oldest").unwrap();
//! worker.push("middle").unwrap();
//! worker.push("newest").unwrap();
//!
//! let thief = std::thread::spawn(move || stealer.steal());
//! assert_eq!(thief.join().unwrap(), Steal::Success("oldest"));
//! assert_eq!(worker.pop(), Some("newest"));
//! # Ok::<(), heist_deque::CapacityError>(())
//! ```
//!
//! # What holds for every flavour
//!
//! * Any `T: Send` goes in: zero-sized, large, with a destructor, with a destructor that panics.
//!   Every item comes out once or is dropped once, in whatever order the handles die.
//! * No data race for any `T`: a thief claims a slot first and reads it then.
//! * An owner's `pop` that returns `None` is final until the owner pushes again.
//! * `Worker` is `Send` and not `Sync`; `Stealer` is `Clone + Send + Sync`.
//!
//! # Going to sleep
//!
//! A thief that finds nothing is told so; nobody sleeps here. A scheduler that puts a thread to sleep
//! after a last look must not miss a push that comes at the same time: it puts a
//! `fence(Ordering::SeqCst)` between announcing the sleep and that look (`steal` or `is_empty`), and
//! another one between a push and the look for sleepers. With both, one of the two sees the other.
//!
//! # Without std
//!
//! With `default-features = false` the crate needs only `alloc`; [`locked`] is then left out.

#![no_std]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

// In the order in which an item meets them.
mod sync;

mod order;

mod steal;
mod error;

mod pad;
mod teardown;
mod shared;
mod ticket;
mod slot;

mod dest;

mod ring;
mod owner;

pub mod bounded;
pub mod growable;
mod injector;
#[cfg(feature = "std")]
pub mod locked;

pub use dest::Destination;
pub use error::{CapacityError, Full};
pub use injector::Injector;
pub use steal::Steal;

/// The most items that one batch steal moves.
///
/// A guess that has served others well: large enough to make the trip to another core's cache
/// worth it, small enough to leave something for the next thief.
///
/// ```
/// let injector = heist_deque::Injector::new();
/// (0..1000).for_each(|n| injector.push(n));
/// let (worker, _) = heist_deque::growable::new();
/// assert!(injector.steal_batch(&worker).is_success());
/// assert_eq!(worker.len(), heist_deque::BATCH_LIMIT);
/// ```
pub const BATCH_LIMIT: usize = 32;

/// The example of the README, so that it is run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// What the other crates of the house share with this one, so that there is one door for the model
/// checkers. Not for others: it changes without notice.
#[doc(hidden)]
pub mod facade {
    pub use crate::dest::Watched;
    pub use crate::pad::Padded;
    pub use crate::sync::{UnsafeCell, site};
}

/// Switches for the model checker: weaken one named ordering of the real code.
#[cfg(loom)]
#[doc(hidden)]
pub mod twin {
    pub use crate::order::{ARGUED, SHOWN};
    pub use crate::sync::weaken;
}
