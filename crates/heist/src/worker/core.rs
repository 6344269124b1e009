//! What a thread must hold to be a worker: a block of counters, random numbers, and the right to run.
//!
//! There are as many cores as workers. A thread that waits in the middle of a task may hand its core to
//! another thread (`handoff`) and continue without one until it gets one back.

use std::cell::Cell;

use crate::stats::{OwnBlock, Tally};
use crate::worker::rank::Ranks;

/// Tasks are counted several at once if the next turn would come after this many times as many. So what is counted at once
/// takes a small part of the time from one turn to the next.
const SHORT: u32 = 4;

/// The core of one worker. Only the thread that holds it touches it. Aligned, because the cores of all workers are
/// allocated one after the other, and each is written to for every task.
#[repr(align(128))]
pub(crate) struct Core {
    /// The worker's number.
    pub(crate) index: usize,
    block: OwnBlock,
    /// Counts towards the next turn: see [`is_turn`](Self::is_turn). Each pool uses it for one purpose only, depending
    /// on its wait policy: tasks until it looks into other queues than the nearest (`turn`), or searches in vain until
    /// the demand is raised again.
    turn: Cell<u32>,
    /// The turns in which this worker looks into other queues first.
    pub(crate) turns: Turns,
    /// What it has started while tasks waited that are not of normal priority.
    pub(crate) ranks: Ranks,
    /// State of the generator that chooses victims. Never zero.
    random: Cell<u64>,
}

/// When and where a worker takes its turn at queues other than the nearest: see `turn`.
pub(crate) struct Turns {
    /// The number of tasks from one turn to the next.
    pub(crate) interval: Cell<u32>,
    /// The number of turns so far, which says where to look first.
    pub(crate) count: Cell<usize>,
    /// When the last turn was, in nanoseconds since the pool was started.
    pub(crate) last: Cell<u64>,
    /// What the last turn for the inbox of another worker has seen there.
    pub(crate) seen_near: Cell<Option<u64>>,
}

impl Core {
    pub(crate) fn new(index: usize, block: OwnBlock) -> Self {
        // Odd, and different for every core.
        let seed = (index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let turns = Turns {
            interval: Cell::new(2),
            count: Cell::new(0),
            last: Cell::new(0),
            seen_near: Cell::new(None),
        };
        Self {
            index,
            block,
            turn: Cell::new(0),
            turns,
            ranks: Ranks::default(),
            random: Cell::new(seed),
        }
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

    /// Counts so many tasks at once towards the next turn (`turn`), and returns `true`; or returns `false` if tasks take so
    /// long that turns come soon.
    pub(crate) fn skip_turns(&self, tasks: u32) -> bool {
        let are_short = self.turns.interval.get() >= SHORT * tasks;
        if are_short {
            // No more than to the next turn: a worker that takes none for now would count for ever.
            let turn = self.turn.get() + tasks - 1;
            self.turn.set(turn.min(self.turns.interval.get()));
        }
        are_short
    }

    /// Returns `true` once in `interval` calls.
    #[inline(always)]
    pub(crate) fn is_turn(&self, interval: u32) -> bool {
        let turn = self.turn.get() + 1;
        let is_turn = turn >= interval;
        self.turn.set(if is_turn { 0 } else { turn });
        is_turn
    }

    /// Returns the other places of `count`, each once, starting with a random one.
    pub(crate) fn victims(&self, me: usize, count: usize) -> impl Iterator<Item = usize> + use<> {
        victims(me, self.random_below(count), count)
    }

    /// Returns a number below `bound`, by Marsaglia's xorshift. It need not be good; it must be cheap.
    pub(crate) fn random_below(&self, bound: usize) -> usize {
        let mut x = self.random.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.random.set(x);
        ((u128::from(x) * bound as u128) >> 64) as usize
    }
}

/// Returns all numbers below `workers` but `me`, each once, starting with `first`. Steals, raids and the last look
/// before sleep visit the places of the other threads in this order, and pipelines the other workers.
#[inline]
pub(crate) fn victims(me: usize, first: usize, workers: usize) -> impl Iterator<Item = usize> {
    (first..workers).chain(0..first).filter(move |&worker| worker != me)
}
