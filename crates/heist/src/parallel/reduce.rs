//! `reduce`: one result of all items.

use std::marker::PhantomData;

use super::drive::{self, Work};
use super::{IntoPieces, Pieces, WithMinLen, with_min_len};

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

impl WithMinLen {
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
pub(super) struct Closures<P, L, C> {
    each: L,
    combine: C,
    pieces: PhantomData<fn(P)>,
}

impl<P, L, C> Closures<P, L, C> {
    pub(super) fn new<A>(each: L, combine: C) -> Self
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
