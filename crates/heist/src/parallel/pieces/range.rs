//! Ranges of integers, with and without their end.

use std::ops::{Range, RangeInclusive};

use super::{Pieces, check_split};

/// Implements [`Pieces`] for ranges of the integer types.
macro_rules! ranges {
    ($($integer:ty)*) => {
        $(
            impl Pieces for Range<$integer> {
                type Item = $integer;
                type IntoIter = Self;

                fn len(&self) -> usize {
                    // `usize::MAX` if there are more items, as the documentation of `Pieces` says.
                    self.size_hint().0
                }

                fn split_at(self, middle: usize) -> (Self, Self) {
                    check_split(middle, Pieces::len(&self));
                    // By the check the result is in bounds, even if the addition wraps on the way.
                    let middle = self.start.wrapping_add(middle as $integer);
                    (self.start..middle, middle..self.end)
                }

                fn into_iter(self) -> Self {
                    self
                }
            }

            impl Pieces for RangeInclusive<$integer> {
                type Item = $integer;
                type IntoIter = Self;

                fn len(&self) -> usize {
                    // `usize::MAX` if there are more items, as the documentation of `Pieces` says.
                    self.size_hint().0
                }

                fn split_at(self, middle: usize) -> (Self, Self) {
                    check_split(middle, Pieces::len(&self));
                    #[allow(clippy::reversed_empty_ranges, reason = "it is to be empty")]
                    let empty = 1..=0;
                    if middle == 0 {
                        return (empty, self);
                    }
                    let (start, end) = self.into_inner();
                    // By the check this is in bounds, even if the addition wraps on the way.
                    let last = start.wrapping_add((middle - 1) as $integer);
                    let right = if last == end { empty } else { last + 1..=end };
                    (start..=last, right)
                }

                fn into_iter(self) -> Self {
                    self
                }
            }
        )*
    };
}

ranges! { usize u128 u64 u32 u16 u8 isize i128 i64 i32 i16 i8 }

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// Splits at every place, and expects the same items in the same order.
    fn splits<P>(pieces: P)
    where
        P: Pieces<Item: PartialEq + std::fmt::Debug> + Clone,
    {
        let all: Vec<_> = pieces.clone().into_iter().collect();
        assert_eq!(pieces.len(), all.len());
        for middle in 0..=all.len() {
            let (left, right) = pieces.clone().split_at(middle);
            assert_eq!((left.len(), right.len()), (middle, all.len() - middle));
            let both: Vec<_> = left.into_iter().chain(right.into_iter()).collect();
            assert_eq!(both, all, "{middle}");
        }
    }

    #[test]
    fn every_split_keeps_all_items() {
        splits(0..0_u8);
        splits(i8::MIN..i8::MAX);
        splits(i8::MIN..=i8::MAX);
        splits(0..=u8::MAX);
        splits(u128::MAX - 3..u128::MAX);
        splits(u128::MAX - 3..=u128::MAX);
        splits(i128::MIN..=i128::MIN + 3);
        splits(7..=7_usize);
        splits(RangeInclusive::new(8, 7_i64));
    }

    #[test]
    fn a_range_that_was_iterated_to_its_end_is_empty() {
        let mut range = 3..=4_u16;
        assert_eq!(range.by_ref().count(), 2);
        splits(range);
    }

    #[test]
    fn long_ranges_lose_no_item() {
        let (left, right) = Pieces::split_at(0..=u128::MAX, usize::MAX);
        assert_eq!(Pieces::len(&left), usize::MAX);
        assert_eq!(Pieces::len(&right), usize::MAX, "as a lower bound");
        assert_eq!((*left.end() + 1, *right.end()), (*right.start(), u128::MAX));
        let (left, right) = Pieces::split_at(0..=usize::MAX, usize::MAX);
        assert_eq!((*left.end(), right), (usize::MAX - 1, usize::MAX..=usize::MAX));
    }

    #[test]
    #[should_panic(expected = "split beyond the end: 4 of 3 items")]
    fn no_split_beyond_the_end() {
        let _ = Pieces::split_at(0..3_i32, 4);
    }
}
