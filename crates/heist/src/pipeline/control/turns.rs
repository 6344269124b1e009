//! How workers wait for their turn at the source while another thread pulls (steps T1 to T4 of `../README.md`).
//!
//! If all of them watched one word and tried to lock the state when it changes, each pull would cost a transfer of that line
//! for every worker that waits. So each watches a word of its own, and a thread that has finished a pull hands the source
//! to one of them.

use super::state::Grant;
use crate::order;
use crate::pipeline::bits::ones;
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Ordering, Padded, pause};

/// A worker that waits looks at the state of the source itself at once, and then once in this many looks at its own word: a
/// few for each worker, but not too many. A guess.
const LOOKS_PER_WORKER: usize = 4;
const MAX_LOOK_INTERVAL: usize = 128;

// The values of `Turn::state`.

/// The worker does not wait.
const ABSENT: usize = 0;
/// The worker waits.
const WAITING: usize = 1;
/// The worker has been granted a pull. Only the worker changes that.
const GRANTED: usize = 2;

/// Which workers wait for their turn.
pub(super) struct Turns {
    /// A bit for each worker that waits. It is a hint for the thread that looks for one: all accesses are relaxed.
    waiting: Padded<Box<[AtomicU64]>>,
    turns: Box<[Padded<Turn>]>,
    /// How often the source was handed on. It is written under the lock of the state, and read as a hint.
    handed: Padded<AtomicUsize>,
}

/// Where a worker waits. All of it is in one cache line, which changes hands twice for each turn.
struct Turn {
    state: AtomicUsize,
    grant: GrantSlot,
}

/// What the worker has been granted. A thread that holds the lock of the state writes it, before it sets `Turn::state` to
/// [`GRANTED`]. The worker reads it when it has seen that.
///
/// Ordering: relaxed. `Turn::state` publishes it.
#[derive(Default)]
struct GrantSlot {
    batches: AtomicUsize,
    weight: AtomicU64,
    next_batch: AtomicU64,
    nothing_in_flight: AtomicBool,
}

impl GrantSlot {
    /// Stores a grant of which nothing has been taken.
    fn set(&self, grant: &Grant) {
        self.batches.store(grant.batches, Ordering::Relaxed);
        self.weight.store(grant.weight, Ordering::Relaxed);
        self.next_batch.store(grant.next_batch, Ordering::Relaxed);
        self.nothing_in_flight.store(grant.nothing_in_flight, Ordering::Relaxed);
    }

    fn get(&self) -> Grant {
        Grant {
            batches: self.batches.load(Ordering::Relaxed),
            weight: self.weight.load(Ordering::Relaxed),
            taken: 0,
            nothing_in_flight: self.nothing_in_flight.load(Ordering::Relaxed),
            next_batch: self.next_batch.load(Ordering::Relaxed),
        }
    }
}

impl Turns {
    pub(super) fn new(workers: usize) -> Self {
        let turn =
            |_| Padded(Turn { state: AtomicUsize::new(ABSENT), grant: GrantSlot::default() });
        Self {
            waiting: Padded((0..workers.div_ceil(64)).map(|_| AtomicU64::new(0)).collect()),
            turns: (0..workers).map(turn).collect(),
            handed: Padded(AtomicUsize::new(0)),
        }
    }

    /// Returns whether a worker waits. It is a hint.
    #[inline]
    pub(super) fn any(&self) -> bool {
        self.waiting.0.iter().any(|word| word.load(Ordering::Relaxed) != 0)
    }

    /// Returns whether a worker waits, and has not been granted a pull: it will look for batches, or its grant comes with the
    /// start of other workers (S3). It is a hint, except after a fence (B3).
    pub(super) fn any_waits(&self) -> bool {
        let waits = |worker: usize| self.turns[worker].0.state.load(Ordering::Relaxed) == WAITING;
        let words = self.waiting.0.iter().map(|word| word.load(Ordering::Relaxed));
        words.enumerate().any(|(at, word)| ones(word).any(|place| waits(64 * at + place)))
    }

    /// Waits until it is the turn of this worker, or until it is to `stop`, or until the source has not been handed on during
    /// this many looks (T1, T2). Returns what the worker has been granted.
    pub(super) fn wait(&self, worker: usize, looks: u32, stop: impl Fn() -> bool) -> Option<Grant> {
        let interval = (LOOKS_PER_WORKER * self.turns.len()).min(MAX_LOOK_INTERVAL) as u32;
        let (word, bit) = (&self.waiting.0[worker / 64], 1 << (worker % 64));
        let turn = &self.turns[worker].0;
        // T1.
        word.fetch_or(bit, Ordering::Relaxed);
        turn.state.store(WAITING, order::turn_wait());
        let came = |look| {
            pause();
            turn.state.load(Ordering::Relaxed) == GRANTED || look % interval == 0 && stop()
        };
        let handed = || self.handed.0.load(Ordering::Relaxed);
        let (mut before, mut is_set_again) = (handed(), false);
        while !(0..looks).any(came) {
            // As long as the source is handed on, the turn of this worker will come.
            let now = handed();
            if now == before {
                break;
            }
            before = now;
            // A thread that has found this worker gone, just before it came, may have cleared its bit.
            word.fetch_or(bit, Ordering::Relaxed);
            is_set_again = true;
        }
        // T2.
        if turn.state.swap(ABSENT, order::turn_take()) != GRANTED {
            word.fetch_and(!bit, Ordering::Relaxed);
            return None;
        }
        if is_set_again {
            // Perhaps after the grant. It would say that this worker waits.
            word.fetch_and(!bit, Ordering::Relaxed);
        }
        Some(turn.grant.get())
    }

    /// Gives the grant to a worker that waits: the next one after `me` (T3, T4). Returns whether one has taken it. The caller
    /// holds the lock of the state.
    ///
    /// Workers with neighbouring numbers are often near each other, so that the source need not go far.
    pub(super) fn pass(&self, me: usize, grant: &Grant) -> bool {
        let words = &self.waiting.0;
        let (first, after) = (me / 64, u64::MAX.checked_shl(me as u32 % 64 + 1).unwrap_or(0));
        let others = (first + 1..words.len()).chain(0..=first).map(|word| (word, u64::MAX));
        for (at, mask) in [(first, after)].into_iter().chain(others) {
            for place in ones(words[at].load(Ordering::Relaxed) & mask) {
                words[at].fetch_and(!(1 << place), Ordering::Relaxed);
                let turn = &self.turns[64 * at + place].0;
                // T3.
                turn.grant.set(grant);
                // T4. If it fails, the worker has given up. Ordering: relaxed on failure, which tells nothing.
                let told = turn.state.compare_exchange(
                    WAITING,
                    GRANTED,
                    order::turn_grant(),
                    Ordering::Relaxed,
                );
                if told.is_ok() {
                    // What was cleared above may have been left from an earlier wait of that worker.
                    if words[at].load(Ordering::Relaxed) & 1 << place != 0 {
                        words[at].fetch_and(!(1 << place), Ordering::Relaxed);
                    }
                    let handed = self.handed.0.load(Ordering::Relaxed);
                    self.handed.0.store(handed.wrapping_add(1), Ordering::Relaxed);
                    return true;
                }
            }
        }
        false
    }
}
