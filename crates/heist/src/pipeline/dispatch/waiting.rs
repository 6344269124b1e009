//! The batches in a queue that has a lock, and which of them comes first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use super::batch::BoxedBatch;

/// The batches that wait in one queue.
pub(super) enum Waiting<T> {
    OldestFirst(VecDeque<BoxedBatch<T>>),
    HeaviestFirst(ByWeight<T>),
}

/// Batches in the order of their weights.
pub(super) struct ByWeight<T> {
    /// The heaviest batch comes first, and of equally heavy ones the oldest.
    batches: BTreeMap<Key, BoxedBatch<T>>,
    /// The weight of each batch by its number.
    weights: BTreeMap<u64, u64>,
}

/// The weight of a batch, and its number.
type Key = (Reverse<u64>, u64);

/// What a thread that only looks can know about the first batches of a queue.
#[derive(Default)]
pub(super) struct Front {
    /// The weight of the first batch.
    pub(super) weight: u64,
    /// The number of the first batch.
    pub(super) number: u64,
    /// The number of the oldest batch.
    pub(super) oldest: u64,
}

impl<T> Waiting<T> {
    pub(super) fn new(heaviest_first: bool) -> Self {
        if heaviest_first {
            let (batches, weights) = (BTreeMap::new(), BTreeMap::new());
            Self::HeaviestFirst(ByWeight { batches, weights })
        } else {
            Self::OldestFirst(VecDeque::new())
        }
    }

    pub(super) fn push(&mut self, batch: BoxedBatch<T>) {
        match self {
            Self::OldestFirst(batches) => batches.push_back(batch),
            Self::HeaviestFirst(ByWeight { batches, weights }) => {
                weights.insert(batch.number, batch.weight);
                batches.insert((Reverse(batch.weight), batch.number), batch);
            }
        }
    }

    /// Takes the first batch if its number is below `limit`, or else the oldest one if its number is.
    pub(super) fn take(&mut self, limit: u64) -> Option<BoxedBatch<T>> {
        let ByWeight { batches, weights } = match self {
            Self::OldestFirst(batches) => return batches.pop_front(),
            Self::HeaviestFirst(by_weight) => by_weight,
        };
        let first = batches.first_entry()?;
        if first.key().1 >= limit {
            let (number, weight) = weights.first_key_value()?;
            if *number >= limit {
                return None;
            }
            let oldest = (Reverse(*weight), *number);
            weights.remove(&oldest.1);
            return batches.remove(&oldest);
        }
        weights.remove(&first.key().1);
        Some(first.remove())
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::OldestFirst(batches) => batches.len(),
            Self::HeaviestFirst(by_weight) => by_weight.batches.len(),
        }
    }

    pub(super) fn front(&self) -> Option<Front> {
        match self {
            // Nobody looks.
            Self::OldestFirst(_) => None,
            Self::HeaviestFirst(ByWeight { batches, weights }) => {
                let ((Reverse(weight), number), _) = batches.first_key_value()?;
                let (oldest, _) = weights.first_key_value()?;
                Some(Front { weight: *weight, number: *number, oldest: *oldest })
            }
        }
    }
}
