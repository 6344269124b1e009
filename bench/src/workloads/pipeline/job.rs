//! The work on a batch, and the checksum that shows that every batch was processed exactly once.

use std::hint::black_box;
use std::iter;
use std::ops::Range;

use harness::random::mix;

/// The number of items in a batch.
pub(super) const BATCH: usize = 64;

/// The constant of Steele, Lea and Flood's SplitMix64. Any odd number with as many ones as zeros would do.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The amount of work.
#[derive(Clone, Copy)]
pub(super) struct Job {
    pub(super) batches: u64,
    /// The number of passes over a batch.
    pub(super) rounds: u32,
}

impl Job {
    pub(super) fn is_small(self) -> bool {
        self.rounds == 1
    }

    /// Returns the source. Its length is hidden from the compiler.
    pub(super) fn items(self) -> Range<u64> {
        0..black_box(self.batches) * BATCH as u64
    }

    /// Returns the source in buffers of this many batches, for entries that do not split it themselves.
    pub(super) fn buffers(self, batches: usize) -> impl Iterator<Item = Vec<u64>> + Send {
        let (mut items, size) = (self.items(), batches * BATCH);
        iter::from_fn(move || {
            let mut buffer = Vec::with_capacity(size);
            buffer.extend(items.by_ref().take(size));
            (!buffer.is_empty()).then_some(buffer)
        })
    }

    /// Works on a batch. It is compiled once, and each number depends on the one before, so that no compiler finds
    /// a shorter way. It takes 2.2 ns a number on the machine of the records.
    #[inline(never)]
    pub(super) fn work(self, batch: &[u64]) -> u64 {
        let mut hash: u64 = 0;
        for _ in 0..self.rounds {
            for number in batch {
                hash = (hash ^ number).wrapping_mul(ODD);
                hash = (hash ^ (hash >> 32)).wrapping_mul(ODD);
            }
        }
        hash
    }
}

/// The sink: a checksum of the results.
pub(super) trait Sink:
    Default + Copy + std::fmt::Debug + PartialEq + Send + Sync + 'static
{
    /// Whether the order of results matters.
    const ORDERED: bool;

    fn take(&mut self, result: u64);
}

/// A checksum that does not depend on the order.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(super) struct Sum(u64);

impl Sink for Sum {
    const ORDERED: bool = false;

    #[inline]
    fn take(&mut self, result: u64) {
        // The result is mixed, because otherwise errors in two results could cancel out; and what is added is
        // never zero.
        self.0 = self.0.wrapping_add(mix(result) | 1);
    }
}

impl Sum {
    pub(super) fn of(result: u64) -> Self {
        let mut sum = Self::default();
        sum.take(result);
        sum
    }

    pub(super) fn merge(self, other: Self) -> Self {
        Self(self.0.wrapping_add(other.0))
    }
}

/// A checksum that depends on the order of batches.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(super) struct Chain(u64);

impl Sink for Chain {
    const ORDERED: bool = true;

    #[inline]
    fn take(&mut self, result: u64) {
        // The addition of one makes it notice zeros at the beginning.
        self.0 = (self.0.rotate_left(5) ^ result).wrapping_mul(ODD).wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all<S: Sink>(results: impl IntoIterator<Item = u64>) -> S {
        let mut sink = S::default();
        results.into_iter().for_each(|result| sink.take(result));
        sink
    }

    #[test]
    fn buffers_are_the_source() {
        let job = Job { batches: 5, rounds: 1 };
        let sizes: Vec<_> = job.buffers(2).map(|buffer| buffer.len() / BATCH).collect();
        assert_eq!(sizes, [2, 2, 1]);
        assert!(job.buffers(2).flatten().eq(job.items()));
    }

    #[test]
    fn every_number_and_every_round_counts() {
        let job = Job { batches: 1, rounds: 1 };
        let batch: Vec<u64> = job.items().collect();
        let result = job.work(&batch);
        for place in 0..BATCH {
            let mut other = batch.clone();
            other[place] += 1;
            assert_ne!(job.work(&other), result);
        }
        assert_ne!(Job { rounds: 2, ..job }.work(&batch), result);
    }

    #[test]
    fn a_lost_or_duplicated_result_is_noticed() {
        for other in [&[1, 2][..], &[1, 2, 3, 3], &[2, 2, 2], &[0, 1, 2, 3]] {
            let other = || other.iter().copied();
            assert_ne!(all::<Sum>(1..=3), all::<Sum>(other()));
            assert_ne!(all::<Chain>(1..=3), all::<Chain>(other()));
        }
    }

    #[test]
    fn only_the_chain_has_an_order() {
        assert_eq!(all::<Sum>([1, 2, 3]), all::<Sum>([3, 1, 2]));
        assert_ne!(all::<Chain>([1, 2, 3]), all::<Chain>([3, 1, 2]));
    }
}
