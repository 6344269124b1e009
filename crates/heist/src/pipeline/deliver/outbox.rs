//! The outboxes of the workers, where results wait for the consumer.

use std::collections::VecDeque;

use crate::panic::contain_each;
use crate::sync::{Mutex, Padded, lock};

/// The results of some batches. If results are delivered in order, the batches are in ascending order of
/// their numbers.
pub(crate) struct Chunk<R> {
    pub(crate) results: VecDeque<R>,
    pub(crate) batches: VecDeque<BatchEntry>,
}

/// A batch whose results are in a chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchEntry {
    pub(crate) number: u64,
    pub(crate) weight: u64,
    /// The index in the source of the first item of the batch.
    pub(crate) first: u64,
    /// How many items the batch had.
    pub(crate) items: usize,
    /// How many results the batch has.
    pub(crate) results: usize,
}

impl<R> Drop for Chunk<R> {
    /// Drops the results one by one: the drop of each is the user's code and may panic.
    fn drop(&mut self) {
        contain_each(self.results.drain(..));
    }
}

impl<R> Default for Chunk<R> {
    fn default() -> Self {
        Self { results: VecDeque::new(), batches: VecDeque::new() }
    }
}

/// The chunks of one worker, never none. The last one is being filled.
type Outbox<R> = Mutex<Vec<Chunk<R>>>;

/// The outboxes of all workers. The consumer can take what is in them at any time.
pub(crate) struct Outboxes<R> {
    outboxes: Box<[Padded<Outbox<R>>]>,
    ordered: bool,
}

impl<R> Outboxes<R> {
    pub(crate) fn new(workers: usize, ordered: bool) -> Self {
        let outboxes = (0..workers).map(|_| Padded(Mutex::new(vec![Chunk::default()]))).collect();
        Self { outboxes, ordered }
    }

    /// Returns the number of outboxes. The consumer has no use for more empty chunks than that.
    pub(super) fn len(&self) -> usize {
        self.outboxes.len()
    }

    /// Stores the results of a batch, and leaves `results` empty.
    #[inline]
    pub(crate) fn store(&self, worker: usize, entry: BatchEntry, results: &mut VecDeque<R>) {
        let mut chunks = lock(&self.outboxes[worker].0);
        let last = chunks.last().and_then(|chunk| chunk.batches.back());
        if self.ordered && last.is_some_and(|last| entry.number < last.number) {
            chunks.push(Chunk::default());
        }
        let chunk = chunks.last_mut().expect("an outbox always has a chunk");
        chunk.batches.push_back(entry);
        match (entry.results, results.pop_front()) {
            // For a single result, this is by far the quickest way.
            (1, Some(only)) => chunk.results.push_back(only),
            (_, first) => {
                chunk.results.extend(first);
                chunk.results.append(results);
            }
        }
    }

    /// Moves all chunks with results to `into`, and replaces them by empty ones, from `spares` if there are
    /// some.
    pub(super) fn take(&self, into: &mut Vec<Chunk<R>>, spares: &mut Vec<Chunk<R>>) {
        for chunks in &self.outboxes {
            let mut chunks = lock(&chunks.0);
            if chunks[0].batches.is_empty() {
                continue;
            }
            into.append(&mut chunks);
            chunks.push(spares.pop().unwrap_or_default());
        }
    }
}
