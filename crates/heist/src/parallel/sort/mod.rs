//! Parallel sorts of slices.
//!
//! The leaves are sorted by the standard library, whose sorts are hard to beat on one thread. Splitting a slice
//! into leaves, and joining sorted leaves, is as parallel as sorting the leaves: a partition in place for the
//! unstable sorts, a merge through a buffer for the stable ones.
//!
//! Elements are `Send` and need not be `Sync`: no element is ever seen by two threads at once.

use std::cmp::Ordering;

use super::workers;

mod ordered;
mod partition;
mod unstable;
mod walk;
mod merge;
mod stable;

/// Shorter slices are sorted on the calling thread: two workers hardly sort fewer integers than this sooner than
/// one.
const WORTHWHILE: usize = 10_000;

/// An order of elements, as the caller gives it. It may panic, and may not be an order at all.
trait Compare<T>: Fn(&T, &T) -> Ordering + Sync {
    fn is_less(&self, a: &T, b: &T) -> bool {
        self(a, b) == Ordering::Less
    }
}

impl<T, F: Fn(&T, &T) -> Ordering + Sync> Compare<T> for F {}

/// Sorts a slice and keeps the order of equal elements.
///
/// ```
/// let mut numbers: Vec<u32> = (0..50_000).rev().map(|n| n % 1000).collect();
/// heist::parallel::sort(&mut numbers);
/// assert!(numbers.is_sorted());
/// ```
///
/// It is a merge sort with a buffer as long as the slice. A slice that is sorted already needs no buffer.
///
/// # Panics
///
/// Panics if a comparison does, or if the order turns out not to be total. The slice then holds the same
/// elements, in an unspecified order.
pub fn sort<T>(v: &mut [T])
where
    T: Ord + Send,
{
    stable::sort(v, &T::cmp);
}

/// Sorts a slice by a comparison and keeps the order of equal elements.
///
/// ```
/// let mut words = vec!["pear", "fig", "apple", "plum"];
/// heist::parallel::sort_by(&mut words, |a, b| a.len().cmp(&b.len()));
/// assert_eq!(words, ["fig", "pear", "plum", "apple"]);
/// ```
///
/// Otherwise like [`sort`].
pub fn sort_by<T, F>(v: &mut [T], compare: F)
where
    T: Send,
    F: Fn(&T, &T) -> Ordering + Sync,
{
    stable::sort(v, &compare);
}

/// Sorts a slice by a key and keeps the order of elements with equal keys.
///
/// ```
/// let mut words = vec!["pear", "fig", "apple", "plum"];
/// heist::parallel::sort_by_key(&mut words, |word| word.len());
/// assert_eq!(words, ["fig", "pear", "plum", "apple"]);
/// ```
///
/// The key is computed again for every comparison. Otherwise like [`sort`].
pub fn sort_by_key<T, K, F>(v: &mut [T], key: F)
where
    T: Send,
    K: Ord,
    F: Fn(&T) -> K + Sync,
{
    stable::sort(v, &|a: &T, b: &T| key(a).cmp(&key(b)));
}

/// Sorts a slice in place. The order of equal elements may change.
///
/// ```
/// let mut numbers: Vec<u32> = (0..50_000).rev().map(|n| n % 1000).collect();
/// heist::parallel::sort_unstable(&mut numbers);
/// assert!(numbers.is_sorted());
/// ```
///
/// It is a quicksort that allocates nothing, and mostly faster than [`sort`].
///
/// # Panics
///
/// Panics if a comparison does, or if the order turns out not to be total. The slice then holds the same
/// elements, in an unspecified order.
pub fn sort_unstable<T>(v: &mut [T])
where
    T: Ord + Send,
{
    unstable::sort(v, &T::cmp);
}

/// Sorts a slice in place by a comparison. The order of equal elements may change.
///
/// ```
/// let mut numbers = vec![0.5, -1.0, 2.0];
/// heist::parallel::sort_unstable_by(&mut numbers, f64::total_cmp);
/// assert_eq!(numbers, [-1.0, 0.5, 2.0]);
/// ```
///
/// Otherwise like [`sort_unstable`].
pub fn sort_unstable_by<T, F>(v: &mut [T], compare: F)
where
    T: Send,
    F: Fn(&T, &T) -> Ordering + Sync,
{
    unstable::sort(v, &compare);
}

/// Sorts a slice in place by a key. The order of elements with equal keys may change.
///
/// ```
/// let mut numbers = vec![-3_i32, 1, 2];
/// heist::parallel::sort_unstable_by_key(&mut numbers, |n| n.abs());
/// assert_eq!(numbers, [1, 2, -3]);
/// ```
///
/// The key is computed again for every comparison. Otherwise like [`sort_unstable`].
pub fn sort_unstable_by_key<T, K, F>(v: &mut [T], key: F)
where
    T: Send,
    K: Ord,
    F: Fn(&T) -> K + Sync,
{
    unstable::sort(v, &|a: &T, b: &T| key(a).cmp(&key(b)));
}

/// Returns the number of workers that sort a slice: one if the slice is too short to use the pool.
fn sorters<T>(v: &[T]) -> usize {
    if size_of::<T>() == 0 || v.len() < WORTHWHILE { 1 } else { workers() }
}
