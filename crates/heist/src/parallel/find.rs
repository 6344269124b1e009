//! Searches: `find_any`, `find_first`, `any` and `all`. They stop early.

use super::stop::{search_any, search_first};
use super::{IntoPieces, Pieces, WithMinLen, with_min_len};

/// Returns an item that the closure accepts, or `None` if there is none. If there are several, any of them may be returned.
///
/// Once a thread has found one, the others stop at their next item: each thread looks before each item, which costs next
/// to nothing.
///
/// ```
/// let found = heist::parallel::find_any(0..1_000_000_u64, |n| n * n == 1_764);
/// assert_eq!(found, Some(42));
/// ```
pub fn find_any<I, F>(items: I, accept: F) -> Option<<I::Pieces as Pieces>::Item>
where
    I: IntoPieces,
    F: Fn(&<I::Pieces as Pieces>::Item) -> bool + Sync,
    <I::Pieces as Pieces>::Item: Send,
{
    with_min_len(1).find_any(items, accept)
}

/// Returns the first item, in the order of the items, that the closure accepts, or `None` if there is none.
///
/// Once a thread has found one, the others only go on with items before it. So the closure is called for all items before the
/// one that is returned, and perhaps for some after it. [`find_any`] ends sooner if any item will do.
///
/// ```
/// let first = heist::parallel::find_first(&[1, 3, 4, 5, 6], |n| *n % 2 == 0);
/// assert_eq!(first, Some(&4));
/// ```
pub fn find_first<I, F>(items: I, accept: F) -> Option<<I::Pieces as Pieces>::Item>
where
    I: IntoPieces,
    F: Fn(&<I::Pieces as Pieces>::Item) -> bool + Sync,
    <I::Pieces as Pieces>::Item: Send,
{
    with_min_len(1).find_first(items, accept)
}

/// Returns whether the closure accepts at least one item. It stops as early as [`find_any`] does.
///
/// ```
/// assert!(heist::parallel::any(&["one", "two", "three"], |word| word.len() > 3));
/// ```
pub fn any<I, F>(items: I, accept: F) -> bool
where
    I: IntoPieces,
    F: Fn(<I::Pieces as Pieces>::Item) -> bool + Sync,
{
    with_min_len(1).any(items, accept)
}

/// Returns whether the closure accepts every item. It stops at the first one that is not accepted, as [`find_any`] does at
/// one that is.
///
/// ```
/// assert!(heist::parallel::all(0..1000, |n| n < 1000));
/// ```
pub fn all<I, F>(items: I, accept: F) -> bool
where
    I: IntoPieces,
    F: Fn(<I::Pieces as Pieces>::Item) -> bool + Sync,
{
    with_min_len(1).all(items, accept)
}

impl WithMinLen {
    /// Like [`find_any`], with this minimum length.
    ///
    /// ```
    /// assert_eq!(heist::parallel::with_min_len(2).find_any(&[1, 2, 3], |n| **n > 2), Some(&3));
    /// ```
    pub fn find_any<I, F>(self, items: I, accept: F) -> Option<<I::Pieces as Pieces>::Item>
    where
        I: IntoPieces,
        F: Fn(&<I::Pieces as Pieces>::Item) -> bool + Sync,
        <I::Pieces as Pieces>::Item: Send,
    {
        search_any(items.into_pieces(), self.0, |item| accept(&item).then_some(item))
    }

    /// Like [`find_first`], with this minimum length.
    ///
    /// ```
    /// assert_eq!(heist::parallel::with_min_len(2).find_first(&[1, 2, 3], |n| **n > 1), Some(&2));
    /// ```
    pub fn find_first<I, F>(self, items: I, accept: F) -> Option<<I::Pieces as Pieces>::Item>
    where
        I: IntoPieces,
        F: Fn(&<I::Pieces as Pieces>::Item) -> bool + Sync,
        <I::Pieces as Pieces>::Item: Send,
    {
        search_first(items.into_pieces(), self.0, |item| accept(&item).then_some(item))
    }

    /// Like [`any`], with this minimum length.
    ///
    /// ```
    /// assert!(!heist::parallel::with_min_len(2).any(&[1, 2, 3], |n| *n > 3));
    /// ```
    pub fn any<I, F>(self, items: I, accept: F) -> bool
    where
        I: IntoPieces,
        F: Fn(<I::Pieces as Pieces>::Item) -> bool + Sync,
    {
        search_any(items.into_pieces(), self.0, |item| accept(item).then_some(())).is_some()
    }

    /// Like [`all`], with this minimum length.
    ///
    /// ```
    /// assert!(heist::parallel::with_min_len(2).all(&[1, 2, 3], |n| *n < 4));
    /// ```
    pub fn all<I, F>(self, items: I, accept: F) -> bool
    where
        I: IntoPieces,
        F: Fn(<I::Pieces as Pieces>::Item) -> bool + Sync,
    {
        !self.any(items, |item| !accept(item))
    }
}
