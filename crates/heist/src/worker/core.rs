//! What makes a thread a worker: the owner's end of a deque, and a block of counters.
//!
//! There are as many cores as workers. A thread that has to wait in the middle of a task gives its
//! core to another (`handoff`), and goes on without one.

use std::cell::Cell;

use crate::queues::Queues;
use crate::stats::{OwnBlock, Tally};

pub(crate) struct Core<Q: Queues> {
    pub(crate) index: usize,
    pub(crate) own: Q::Own,
    block: OwnBlock,
    /// Counts looks for a task, so that the injector gets its turn; in an engine, those in vain.
    turn: Cell<u32>,
    /// For the choice of victims. Never zero.
    random: Cell<u64>,
}

impl<Q: Queues> Core<Q> {
    pub(crate) fn new(index: usize, own: Q::Own, block: OwnBlock) -> Self {
        // Odd, and different from core to core.
        let seed = (index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        Self { index, own, block, turn: Cell::new(0), random: Cell::new(seed) }
    }

    #[inline(always)]
    pub(crate) fn tally(&self) -> Tally<'_> {
        self.block.tally()
    }

    /// The next call of [`is_turn`](Self::is_turn) says yes.
    pub(crate) fn make_turn(&self, interval: u32) {
        self.turn.set(interval - 1);
    }

    /// Is it the turn? Once in `interval` calls.
    #[inline(always)]
    pub(crate) fn is_turn(&self, interval: u32) -> bool {
        let turn = self.turn.get() + 1;
        self.turn.set(if turn == interval { 0 } else { turn });
        turn == interval
    }

    /// A number below `bound`, by Marsaglia's xorshift: it need not be good, it must be cheap.
    pub(crate) fn pick(&self, bound: usize) -> usize {
        let mut x = self.random.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.random.set(x);
        ((u128::from(x) * bound as u128) >> 64) as usize
    }
}
