//! `for_each`: a closure that is called for each item.

use std::marker::PhantomData;
use std::ops::Range;

use super::drive::{self, Work};
use super::reduce::Closures;
use super::{IntoPieces, Pieces, WithMinLen, with_min_len};

/// Calls a closure for each item of a slice, shared or mutable, of a vector, of a range, or of other [`Pieces`].
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

/// Like [`for_each`], but each call of the closure is also given a state that earlier calls have used, for example a buffer or
/// a connection.
///
/// `init` makes a state for the first item, and one more for each part of the loop that is begun before the part before it has
/// ended: as a rule, one that another thread has taken over. If there are no items, it is not called. A state is used by one
/// thread at a time, but may move to another thread.
///
/// ```
/// use std::sync::mpsc;
///
/// let (sender, receiver) = mpsc::channel();
/// heist::parallel::for_each_init(1..=100, || sender.clone(), |sender, n| sender.send(n).unwrap());
/// drop(sender);
/// assert_eq!(receiver.iter().sum::<i32>(), 5050);
/// ```
pub fn for_each_init<I, S, N, F>(items: I, init: N, f: F)
where
    I: IntoPieces,
    S: Send,
    N: Fn() -> S + Sync,
    F: Fn(&mut S, <I::Pieces as Pieces>::Item) + Sync,
{
    with_min_len(1).for_each_init(items, init, f);
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

    /// Like [`for_each_init`], with this minimum length.
    ///
    /// ```
    /// let mut numbers = [1, 2, 3];
    /// heist::parallel::with_min_len(2).for_each_init(&mut numbers, || 7, |seven, n| *n += *seven);
    /// assert_eq!(numbers, [8, 9, 10]);
    /// ```
    pub fn for_each_init<I, S, N, F>(self, items: I, init: N, f: F)
    where
        I: IntoPieces,
        S: Send,
        N: Fn() -> S + Sync,
        F: Fn(&mut S, <I::Pieces as Pieces>::Item) + Sync,
    {
        let pieces = items.into_pieces();
        if !pieces.is_empty() {
            drive::run(&ForEachInit { init, f, pieces: PhantomData }, pieces, self.0);
        }
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
}

/// A loop with a state for several items.
struct ForEachInit<P, N, F> {
    init: N,
    f: F,
    pieces: PhantomData<fn(P)>,
}

impl<P, S, N, F> Work for ForEachInit<P, N, F>
where
    P: Pieces,
    S: Send,
    N: Fn() -> S + Sync,
    F: Fn(&mut S, P::Item) + Sync,
{
    type Pieces = P;
    type Output = S;

    #[inline]
    fn each(&self, pieces: P) -> S {
        self.more((self.init)(), pieces)
    }

    /// The state of the later items is dropped.
    #[inline]
    fn combine(&self, left: S, _: S) -> S {
        left
    }

    #[inline]
    fn more(&self, mut state: S, pieces: P) -> S {
        pieces.into_iter().for_each(|item| (self.f)(&mut state, item));
        state
    }
}
