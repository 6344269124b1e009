//! `map`: the results of a closure in the order of the items.

use std::convert::Infallible;
use std::marker::PhantomData;

use super::drive::{self, Work};
use super::places::{Made, Places, collect};
use super::{IntoPieces, Pieces, WithMinLen, with_min_len};

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

/// Like [`map`](fn@map), but each call of the closure is also given a state that earlier calls have used, for example a buffer.
///
/// `init` makes a state for the first item, and one more for each part of the loop that is begun before the part before it has
/// ended: as a rule, one that another thread has taken over. If there are no items, it is not called. A state is used by one
/// thread at a time, but may move to another thread.
///
/// Which items share a state depends on the schedule. The results should not depend on what earlier calls left there.
///
/// ```
/// use std::fmt::Write;
///
/// let lengths = heist::parallel::map_init(0..1000_u32, String::new, |text, n| {
///     text.clear();
///     write!(text, "{n}").unwrap();
///     text.len()
/// });
/// assert_eq!(lengths[8..12], [1, 1, 2, 2]);
/// ```
pub fn map_init<I, S, N, F, R>(items: I, init: N, f: F) -> Vec<R>
where
    I: IntoPieces,
    S: Send,
    N: Fn() -> S + Sync,
    F: Fn(&mut S, <I::Pieces as Pieces>::Item) -> R + Sync,
    R: Send,
{
    with_min_len(1).map_init(items, init, f)
}

impl WithMinLen {
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
        self.map_init(items, || (), |(), item| f(item))
    }

    /// Like [`map_init`], with this minimum length.
    ///
    /// ```
    /// let sums = heist::parallel::with_min_len(3).map_init(1..=3, || 0, |sum, n| {
    ///     *sum += n;
    ///     *sum
    /// });
    /// assert_eq!(sums, [1, 3, 6]); // three items are not shared, so there is one state
    /// ```
    pub fn map_init<I, S, N, F, R>(self, items: I, init: N, f: F) -> Vec<R>
    where
        I: IntoPieces,
        S: Send,
        N: Fn() -> S + Sync,
        F: Fn(&mut S, <I::Pieces as Pieces>::Item) -> R + Sync,
        R: Send,
    {
        let pieces = items.into_pieces();
        if pieces.is_empty() {
            return Vec::new();
        }
        let work = Map { init, f, pieces: PhantomData };
        let made = collect(pieces, |places| {
            let (_state, made) = drive::run(&work, places, self.0);
            Ok::<_, Infallible>(made)
        });
        match made {
            Ok(results) => results,
            Err(never) => match never {},
        }
    }
}

/// A loop that makes a result of each item, with a state for several items.
struct Map<P, R, N, F> {
    init: N,
    f: F,
    pieces: PhantomData<fn(P) -> R>,
}

impl<P, S, R, N, F> Work for Map<P, R, N, F>
where
    P: Pieces,
    S: Send,
    R: Send,
    N: Fn() -> S + Sync,
    F: Fn(&mut S, P::Item) -> R + Sync,
{
    type Pieces = Places<P, R>;
    type Output = (S, Made<R>);

    fn each(&self, places: Places<P, R>) -> (S, Made<R>) {
        let mut state = (self.init)();
        let made = places.fill(|item| Some((self.f)(&mut state, item)));
        (state, made)
    }

    fn combine(&self, (state, left): (S, Made<R>), (_, right): (S, Made<R>)) -> (S, Made<R>) {
        (state, left.and(right))
    }

    fn more(&self, (mut state, made): (S, Made<R>), places: Places<P, R>) -> (S, Made<R>) {
        let more = places.fill(|item| Some((self.f)(&mut state, item)));
        (state, made.and(more))
    }
}
