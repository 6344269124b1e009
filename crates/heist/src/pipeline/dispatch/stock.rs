//! What is known about the queues of all workers without a look into each of them.

use std::mem;

use crate::pipeline::bits::ones;
use crate::pipeline::run::WorkerState;
use crate::sync::{AtomicU64, AtomicUsize, Ordering, Padded};

/// Which workers have batches in their queues, in a large pool whose workers pull from the source.
///
/// To look into the queues of hundreds of workers takes long, and takes the cache lines away from these workers.
///
/// Ordering: relaxed. Threads that steal take all of this as hints. A worker that is about to become inactive or to go, or that
/// looks whether another one is needed, relies on a clear bit of `any`. It passes a fence before it looks, and a thread that
/// pushes passes one after it has set its bit and pushed (steps W3, W6 and B2 of `../README.md`).
pub(crate) struct Stock {
    /// The workers whose queues may have batches. A worker sets its bit before it pushes to its queue, and clears it when it
    /// has found the queue empty. So a queue whose bit is clear has no batches.
    pub(super) any: Workers,
    /// The workers that have just taken many batches from the source.
    pub(super) plenty: Workers,
    /// The moves of each 64 workers. All workers of a large pool move batches, and would wait for one line.
    moves: Box<[Padded<Moves>]>,
}

/// How often one of these workers has begun to move batches from another queue to its own, and how often one has ended that.
#[derive(Default)]
struct Moves {
    begun: AtomicUsize,
    ended: AtomicUsize,
}

impl Stock {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            any: Workers::new(workers),
            plenty: Workers::new(workers),
            moves: (0..workers.div_ceil(WORD)).map(|_| Padded(Moves::default())).collect(),
        }
    }

    /// Moves batches to the queue of that worker, which calls this. They are in no queue meanwhile.
    pub(super) fn while_moving<R>(&self, worker: usize, move_some: impl FnOnce() -> R) -> R {
        let moves = &self.moves[worker / WORD].0;
        moves.begun.fetch_add(1, Ordering::Relaxed);
        let moved = move_some();
        moves.ended.fetch_add(1, Ordering::Relaxed);
        moved
    }

    /// Returns whether all queues are empty and no batch is on its way from one to another. `has_batches` looks into the queue
    /// of a worker.
    pub(super) fn is_empty(&self, has_batches: impl Fn(usize) -> bool) -> bool {
        let sum = |count: fn(&Moves) -> &AtomicUsize| {
            let counts = self.moves.iter().map(|moves| count(&moves.0).load(Ordering::Relaxed));
            counts.fold(0, usize::wrapping_add)
        };
        let ended = sum(|moves| &moves.ended);
        // A move that has begun before the loads below, and has not ended before those above, shows: no count ever decreases,
        // and of each word more moves have begun than have ended before.
        !self.any.after(0).any(has_batches) && sum(|moves| &moves.begun) == ended
    }
}

/// The number of workers that share a word of bits, and counts of moves.
const WORD: usize = 64;

/// A set of workers: a bit for each. Only the worker itself changes its bit.
pub(super) struct Workers {
    words: Box<[Padded<AtomicU64>]>,
}

impl Workers {
    fn new(workers: usize) -> Self {
        Self { words: (0..workers.div_ceil(WORD)).map(|_| Padded(AtomicU64::new(0))).collect() }
    }

    pub(super) fn insert(&self, worker: usize) {
        self.words[worker / WORD].0.fetch_or(1 << (worker % WORD), Ordering::Relaxed);
    }

    pub(super) fn remove(&self, worker: usize) {
        self.words[worker / WORD].0.fetch_and(!(1 << (worker % WORD)), Ordering::Relaxed);
    }

    /// Returns the workers in the set: first those after `first`, and then the others.
    pub(super) fn after(&self, first: usize) -> impl Iterator<Item = usize> {
        let (word, bit) = (first / WORD, first as u32 % WORD as u32);
        let later = (u64::MAX << bit) << 1;
        let parts = [(word, later)].into_iter();
        let parts = parts.chain((word + 1..self.words.len()).chain(0..word).map(|n| (n, u64::MAX)));
        parts.chain([(word, !later)]).flat_map(|(word, mask)| {
            let workers = ones(self.words[word].0.load(Ordering::Relaxed) & mask);
            workers.map(move |place| WORD * word + place)
        })
    }
}

/// A worker that has taken this many batches has plenty, until half of them are left. A guess.
pub(super) const PLENTY: usize = 16;

impl<T, R> WorkerState<T, R> {
    /// Notes that the worker is about to push to its queue.
    pub(crate) fn note_push(&mut self, stock: &Stock, worker: usize) {
        if !mem::replace(&mut self.has_some, true) {
            stock.any.insert(worker);
        }
    }

    /// Notes that the worker has taken batches from the source.
    pub(crate) fn note_pull(&mut self, stock: &Stock, worker: usize) {
        if self.left >= PLENTY && !mem::replace(&mut self.has_plenty, true) {
            stock.plenty.insert(worker);
        }
    }

    /// Notes that the worker has taken a batch from its queue, or has found none. `is_empty` says whether the queue is empty now.
    pub(super) fn note_taken(&mut self, stock: &Stock, worker: usize, is_empty: bool) {
        if is_empty && mem::replace(&mut self.has_some, false) {
            stock.any.remove(worker);
        }
        if (is_empty || self.left < PLENTY / 2) && mem::replace(&mut self.has_plenty, false) {
            stock.plenty.remove(worker);
        }
    }
}
