//! Work-stealing queues for schedulers.
//!
//! A *deque* has one owner, which pushes and pops at one end, and any number of thieves, which take
//! items from the other end. The owner pops its newest item, which is probably still in its cache. A
//! thief takes the oldest item, which is usually the largest piece of work. The three flavours have
//! the same handles and the same methods; choose one by its module:
//!
//! | module | when the deque is full | synchronization |
//! |---|---|---|
//! | [`bounded`] | `push` returns the item in [`Full`] | one exchange per pop, one compare-exchange per steal |
//! | [`growable`] | `push` doubles the capacity | the same |
//! | [`locked`] | never full | a mutex, which thieves only try to lock; the baseline for measurements |
//!
//! [`Injector`] is a shared first-in first-out queue for work that comes from outside.
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
//! # Guarantees of every flavour
//!
//! * Items can be of any type `T: Send`: zero-sized, large, with a destructor, or with a destructor that
//!   panics. Every item is returned once or dropped once, in whatever order the handles are dropped.
//! * There is no data race, for any `T`: a thief claims a slot before it reads the item.
//! * When the owner's `pop` returns `None`, the deque stays empty until the owner pushes again.
//! * `Worker` is `Send` and not `Sync`; `Stealer` is `Clone + Send + Sync`.
//!
//! # Relation to the Chase-Lev deque
//!
//! The lock-free deques descend from that of Chase and Lev, and differ in that the owner and the thieves
//! meet at the word of the item's slot instead of at two shared indices: `bottom` is private to the
//! owner, and no operation needs a fence.
//!
//! # Putting threads to sleep
//!
//! No operation of this crate sleeps until work arrives: a thief that finds nothing gets [`Steal::Empty`]. A
//! scheduler that puts a thread to sleep after a last look must not miss a push that happens at the same
//! time. It needs a `fence(Ordering::SeqCst)` between announcing the sleep and the last look (`steal` or
//! `is_empty`), and another one between a push and the check for sleepers. With both fences, at least one
//! of the two threads sees what the other did.
//!
//! # Without std
//!
//! With `default-features = false` the crate needs only `alloc`, and [`locked`] is missing.

#![no_std]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

// Each module uses only the modules above it.
mod sync;

mod order;

mod steal;
mod error;

mod pad;
mod teardown;
mod shared;
mod ticket;
mod slot;

mod destination;

mod ring;
mod owner;

pub mod bounded;
pub mod growable;
mod injector;
#[cfg(feature = "std")]
pub mod locked;

pub use destination::Destination;
pub use error::{CapacityError, Full};
pub use injector::Injector;
pub use steal::Steal;

/// The maximum number of items that one batch steal moves.
///
/// The value is a guess that has served other libraries well. It is large enough to be worth the transfer
/// from another processor's cache, and small enough to leave something for the next thief.
///
/// ```
/// let injector = heist_deque::Injector::new();
/// (0..1000).for_each(|n| injector.push(n));
/// let (worker, _) = heist_deque::growable::new();
/// assert!(injector.steal_batch(&worker).is_success());
/// assert_eq!(worker.len(), heist_deque::BATCH_LIMIT);
/// ```
pub const BATCH_LIMIT: usize = 32;

/// Runs the example of the README as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Internals that the other crates of this repository share with this one, so that the model checkers
/// instrument all of them through one module. Unstable: this module changes without notice.
#[doc(hidden)]
pub mod facade {
    pub use crate::destination::Watched;
    pub use crate::pad::Padded;
    pub use crate::sync::{UnsafeCell, site};
}

/// Lets a model weaken one named ordering of the real code.
#[cfg(loom)]
#[doc(hidden)]
pub mod twin {
    pub use crate::order::{ARGUED, SHOWN};
    pub use crate::sync::weaken;
}
