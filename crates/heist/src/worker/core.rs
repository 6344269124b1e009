//! What a thread must hold to be a worker: the owner's end of a deque, a block of counters, random numbers.
//!
//! There are as many cores as workers. A thread that waits in the middle of a task may hand its core to
//! another thread (`handoff`) and continue without one.

use std::cell::Cell;

use crate::queues::Queues;
use crate::stats::{OwnBlock, Tally};

/// The core of one worker. Only the thread that holds it touches it.
pub(crate) struct Core<Q: Queues> {
    /// The worker's number.
    pub(crate) index: usize,
    /// The owner's end of the worker's queues.
    pub(crate) own: Q::Own,
    block: OwnBlock,
    /// Counts towards the next turn: see [`is_turn`](Self::is_turn). Each pool uses it for one interval only,
    /// depending on its wait policy: tasks until a look into the injector, or searches in vain until the demand is
    /// raised again.
    turn: Cell<u32>,
    /// State of the generator that chooses victims. Never zero.
    random: Cell<u64>,
}

impl<Q: Queues> Core<Q> {
    pub(crate) fn new(index: usize, own: Q::Own, block: OwnBlock) -> Self {
        // Odd, and different for every core.
        let seed = (index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        Self { index, own, block, turn: Cell::new(0), random: Cell::new(seed) }
    }

    /// Returns the worker's own counters.
    #[inline(always)]
    pub(crate) fn tally(&self) -> Tally<'_> {
        self.block.tally()
    }

    /// Makes the next call of [`is_turn`](Self::is_turn) return `true`.
    pub(crate) fn make_turn(&self, interval: u32) {
        self.turn.set(interval - 1);
    }

    /// Returns `true` once in `interval` calls. All calls for a core must be for the same interval.
    #[inline(always)]
    pub(crate) fn is_turn(&self, interval: u32) -> bool {
        let turn = self.turn.get() + 1;
        self.turn.set(if turn == interval { 0 } else { turn });
        turn == interval
    }

    /// Returns the other workers, each once, starting with a random one.
    pub(crate) fn victims(&self, workers: usize) -> impl Iterator<Item = usize> + use<Q> {
        victims(self.index, self.random_below(workers), workers)
    }

    /// Returns a number below `bound`, by Marsaglia's xorshift. It need not be good; it must be cheap.
    fn random_below(&self, bound: usize) -> usize {
        let mut x = self.random.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.random.set(x);
        ((u128::from(x) * bound as u128) >> 64) as usize
    }
}

/// Returns the numbers of all workers but `me`, each once, starting with `first`. Steals, raids, the last look before
/// sleep and pipelines all visit the other workers in this order.
#[inline]
pub(crate) fn victims(me: usize, first: usize, workers: usize) -> impl Iterator<Item = usize> {
    (first..workers).chain(0..first).filter(move |&worker| worker != me)
}
