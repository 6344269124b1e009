//! Parallel loops over slices and ranges: for, map, reduce and sort.
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
//! Inside a pool, that pool's workers take part. Outside of any pool, the workers of the
//! [global](crate::Pool::global) pool do and, as long as the loop is short, the calling thread.
//!
//! # Panics
//!
//! If a closure panics, the loop panics with one of the panics, after what was running has ended. Other items may
//! or may not have been processed.

mod drive;
pub(crate) mod external;
mod map;
mod pace;
mod pieces;
mod sort;

use std::marker::PhantomData;
use std::ops::Range;

use crate::worker::current::with_worker;
use drive::Work;
pub use pieces::{IntoPieces, Pieces};
pub use sort::{sort, sort_by, sort_by_key, sort_unstable, sort_unstable_by, sort_unstable_by_key};

/// Calls a closure for each item of a slice, shared or mutable, of a vector, or of a range.
///
/// ```
/// let mut words = ["a", "b", "c"].map(String::from);
/// heist::parallel::for_each(&mut words, |word| word.push('!'));
/// assert_eq!(words, ["a!", "b!", "c!"]);
/// ```
pub fn for_each<I, F>(items: I, f: F)
where
    I: IntoPieces,
    F: Fn(<I::Pieces as Pieces>::Item) + Sync,
{
    with_min_len(1).for_each(items, f);
}

/// Calls a closure for each number of a range.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// let sum = AtomicUsize::new(0);
/// heist::parallel::for_range(0..100, |n| { sum.fetch_add(n, Ordering::Relaxed); });
/// assert_eq!(sum.into_inner(), 4950);
/// ```
pub fn for_range<F>(range: Range<usize>, f: F)
where
    F: Fn(usize) + Sync,
{
    with_min_len(1).for_each(range, f);
}

/// Calls a closure for each item and returns the results in the order of the items.
///
/// ```
/// let lengths = heist::parallel::map(&["one", "three"], |word| word.len());
/// assert_eq!(lengths, [3, 5]);
/// ```
pub fn map<I, F, R>(items: I, f: F) -> Vec<R>
where
    I: IntoPieces,
    F: Fn(<I::Pieces as Pieces>::Item) -> R + Sync,
    R: Send,
{
    with_min_len(1).map(items, f)
}

/// Folds the items in several pieces, and combines the results of the pieces in the order of the items.
///
/// The items are folded into one accumulator as long as no other thread helps. `identity` and `combine` are called once more
/// for each part that is begun before the part before it has ended: as a rule, one that another thread has taken over. So an
/// accumulator may be large.
///
/// If `combine` is associative with the value of `identity` as its neutral element, and `fold` is consistent with
/// it, the result is the same every time. `combine` need not be commutative.
///
/// ```
/// let text = heist::parallel::reduce(
///     &["to", "get", "her"],
///     String::new,
///     |text, word| text + word,
///     |left, right| left + &right,
/// );
/// assert_eq!(text, "together");
/// ```
pub fn reduce<I, A, N, F, C>(items: I, identity: N, fold: F, combine: C) -> A
where
    I: IntoPieces,
    A: Send,
    N: Fn() -> A + Sync,
    F: Fn(A, <I::Pieces as Pieces>::Item) -> A + Sync,
    C: Fn(A, A) -> A + Sync,
{
    with_min_len(1).reduce(items, identity, fold, combine)
}

/// Like [`reduce`], but `each` receives a whole piece of the items, so that it can be vectorised. Returns `None`
/// if there are no items.
///
/// `each` is called for some microseconds' worth of items at a time, and `combine` for each of these results. If results are
/// large, use [`reduce`].
///
/// ```
/// let numbers: Vec<u32> = (1..=100).collect();
/// let total = heist::parallel::reduce_pieces(
///     &numbers,
///     |some: &[u32]| some.iter().sum::<u32>(),
///     |left, right| left + right,
/// );
/// assert_eq!(total, Some(5050));
/// ```
pub fn reduce_pieces<I, A, F, C>(items: I, each: F, combine: C) -> Option<A>
where
    I: IntoPieces,
    A: Send,
    F: Fn(I::Pieces) -> A + Sync,
    C: Fn(A, A) -> A + Sync,
{
    with_min_len(1).reduce_pieces(items, each, combine)
}

/// Returns the same loops with a minimum length: pieces of fewer items are never shared with another worker.
///
/// ```
/// use heist::parallel;
///
/// let numbers = vec![0.5_f32; 1000];
/// let square = |some: &[f32]| some.iter().map(|x| x * x).sum::<f32>();
/// let squares = parallel::with_min_len(16_384).reduce_pieces(&numbers, square, |a, b| a + b);
/// assert_eq!(squares, Some(250.0));
/// ```
pub fn with_min_len(items: usize) -> WithMinLen {
    WithMinLen(items)
}

/// Parallel loops with a minimum length: see [`with_min_len`].
///
/// ```
/// let loops: heist::parallel::WithMinLen = heist::parallel::with_min_len(100);
/// assert_eq!(loops.map(0..3, |n| n * n), [0, 1, 4]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct WithMinLen(usize);

impl WithMinLen {
    /// Like [`for_each`], with this minimum length.
    ///
    /// ```
    /// let mut numbers = [1, 2, 3];
    /// heist::parallel::with_min_len(2).for_each(&mut numbers, |n| *n += 1);
    /// assert_eq!(numbers, [2, 3, 4]);
    /// ```
    pub fn for_each<I, F>(self, items: I, f: F)
    where
        I: IntoPieces,
        F: Fn(<I::Pieces as Pieces>::Item) + Sync,
    {
        let each = |some: I::Pieces| some.into_iter().for_each(&f);
        drive::run(&Closures::new(each, |(), ()| ()), items.into_pieces(), self.0);
    }

    /// Like [`for_range`], with this minimum length.
    ///
    /// ```
    /// heist::parallel::with_min_len(10).for_range(0..100, |n| assert!(n < 100));
    /// ```
    pub fn for_range<F>(self, range: Range<usize>, f: F)
    where
        F: Fn(usize) + Sync,
    {
        self.for_each(range, f);
    }

    /// Like [`map`](fn@map), with this minimum length.
    ///
    /// ```
    /// assert_eq!(heist::parallel::with_min_len(2).map(&[1, 2, 3], |n| n * 2), [2, 4, 6]);
    /// ```
    pub fn map<I, F, R>(self, items: I, f: F) -> Vec<R>
    where
        I: IntoPieces,
        F: Fn(<I::Pieces as Pieces>::Item) -> R + Sync,
        R: Send,
    {
        map::map(items.into_pieces(), &f, self.0)
    }

    /// Like [`reduce`], with this minimum length.
    ///
    /// ```
    /// let most = heist::parallel::with_min_len(2).reduce(&[3, 9, 4], || 0, |m, &n| n.max(m), u32::max);
    /// assert_eq!(most, 9);
    /// ```
    pub fn reduce<I, A, N, F, C>(self, items: I, identity: N, fold: F, combine: C) -> A
    where
        I: IntoPieces,
        A: Send,
        N: Fn() -> A + Sync,
        F: Fn(A, <I::Pieces as Pieces>::Item) -> A + Sync,
        C: Fn(A, A) -> A + Sync,
    {
        let work = Fold { identity, fold, combine, pieces: PhantomData };
        drive::run(&work, items.into_pieces(), self.0)
    }

    /// Like [`reduce_pieces`], with this minimum length.
    ///
    /// ```
    /// use heist::parallel::with_min_len;
    ///
    /// let count = with_min_len(2).reduce_pieces(0..7, |some| some.len(), |a, b| a + b);
    /// assert_eq!(count, Some(7));
    /// ```
    pub fn reduce_pieces<I, A, F, C>(self, items: I, each: F, combine: C) -> Option<A>
    where
        I: IntoPieces,
        A: Send,
        F: Fn(I::Pieces) -> A + Sync,
        C: Fn(A, A) -> A + Sync,
    {
        let pieces = items.into_pieces();
        if pieces.len() == 0 {
            return None;
        }
        Some(drive::run(&Closures::new(each, combine), pieces, self.0))
    }
}

/// Returns the number of workers of the pool that this thread uses.
fn workers() -> usize {
    with_worker(|worker| worker.workers()).unwrap_or_else(external::workers)
}

/// A loop that folds items into an accumulator.
struct Fold<P, N, F, C> {
    identity: N,
    fold: F,
    combine: C,
    pieces: PhantomData<fn(P)>,
}

impl<P, A, N, F, C> Work for Fold<P, N, F, C>
where
    P: Pieces,
    A: Send,
    N: Fn() -> A + Sync,
    F: Fn(A, P::Item) -> A + Sync,
    C: Fn(A, A) -> A + Sync,
{
    type Pieces = P;
    type Output = A;

    #[inline]
    fn each(&self, pieces: P) -> A {
        self.more((self.identity)(), pieces)
    }

    #[inline]
    fn combine(&self, left: A, right: A) -> A {
        (self.combine)(left, right)
    }

    #[inline]
    fn more(&self, done: A, pieces: P) -> A {
        pieces.into_iter().fold(done, &self.fold)
    }
}

/// A loop that is made of two closures.
struct Closures<P, L, C> {
    each: L,
    combine: C,
    pieces: PhantomData<fn(P)>,
}

impl<P, L, C> Closures<P, L, C> {
    fn new<A>(each: L, combine: C) -> Self
    where
        L: Fn(P) -> A,
    {
        Self { each, combine, pieces: PhantomData }
    }
}

impl<P, A, L, C> Work for Closures<P, L, C>
where
    P: Pieces,
    A: Send,
    L: Fn(P) -> A + Sync,
    C: Fn(A, A) -> A + Sync,
{
    type Pieces = P;
    type Output = A;

    #[inline]
    fn each(&self, pieces: P) -> A {
        (self.each)(pieces)
    }

    #[inline]
    fn combine(&self, left: A, right: A) -> A {
        (self.combine)(left, right)
    }
}
