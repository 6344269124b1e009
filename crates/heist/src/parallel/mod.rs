//! Parallel loops over slices, vectors and ranges: for, map, reduce, find and sort.
//!
//! ```
//! use heist::parallel;
//!
//! let mut numbers: Vec<u64> = (0..1000).collect();
//! parallel::for_each(&mut numbers, |number| *number *= 2);
//! let total = parallel::reduce(&numbers, || 0, |sum, number| sum + number, |a, b| a + b);
//! assert_eq!(total, 999_000);
//! ```
//!
//! A loop is split in two when another worker has nothing to do and enough is left to be worth sharing. A loop
//! that no other worker joins runs as a plain loop, in blocks. So there is no number of pieces to choose.
//! [`with_min_len`] sets the number of items below which a loop is never split.
//!
//! The calling thread takes part, and so do other workers of its pool, or else of the [global](crate::Pool::global) one. (Of
//! the sorts, that is so only inside a pool; a thread of no pool waits meanwhile.)
//!
//! # What a loop can run over
//!
//! | `items` | the closure receives |
//! |---|---|
//! | `&v`, of a slice, a vector or an array | `&T` |
//! | `&mut v` | `&mut T` |
//! | `v`, a vector or an array | `T` |
//! | `0..n`, `0..=n`, of any integer type | the integer |
//! | [`chunks(&v, n)`](chunks) | `&[T]` |
//! | [`chunks_mut(&mut v, n)`](chunks_mut) | `&mut [T]` |
//! | [`enumerate(items)`](enumerate) | `(usize, item)` |
//! | [`zip(a, b)`](zip) | `(item of a, item of b)` |
//!
//! # Loops that stop early
//!
//! [`find_any`], [`find_first`], [`any`], [`all`], [`try_for_each`] and [`try_map`] do not process all items if the result is
//! known before. What is left of a vector that was passed by value is dropped.
//!
//! All loops and sorts end early within [`CancelToken::run`](crate::CancelToken::run), when its token is cancelled.
//!
//! # Panics
//!
//! If a closure panics, the loop panics with one of the panics, after what was running has ended. Other items may
//! or may not have been processed.

mod attempt;
mod drive;
mod each;
pub(crate) mod external;
mod find;
mod map;
mod min_len;
mod pace;
mod pieces;
mod places;
mod reduce;
mod sort;
mod stop;

use crate::worker::current::with_worker;

pub use attempt::{Attempt, try_for_each, try_map};
pub use each::{for_each, for_each_init, for_range};
pub use find::{all, any, find_any, find_first};
pub use map::{map, map_init};
pub use min_len::{WithMinLen, with_min_len};
pub use pieces::{Chunks, ChunksMut, Enumerate, IntoPieces, Pieces, VecPieces, Zip};
pub use pieces::{chunks, chunks_mut, enumerate, zip};
pub use reduce::{reduce, reduce_pieces};
pub use sort::{sort, sort_by, sort_by_key, sort_unstable, sort_unstable_by, sort_unstable_by_key};

/// Returns the number of workers of the pool that this thread uses.
fn workers() -> usize {
    with_worker(|worker| worker.workers()).unwrap_or_else(external::workers)
}
