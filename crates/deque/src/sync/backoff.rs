//! How a thread backs off from a contended cache line, on the real machine and on the virtual one.

use super::{spin_loop, yield_processor};

/// Exponential backoff for threads that contend for a cache line or wait for each other.
pub(crate) struct Backoff {
    /// The next wait is 2^round pauses long.
    round: u32,
}

/// The first wait is 2^3 pauses long.
///
/// Measured: two pushers and two thieves on two processors that are far apart move a third more items than
/// with a first wait of a single pause.
const FIRST_ROUND: u32 = 3;
/// Each further wait is twice as long, up to 2^6 pauses (about a microsecond). This limit is a guess:
/// longer than any transfer between two threads takes, and shorter than a time slice.
const LAST_ROUND: u32 = 6;

/// The number of pauses after a lost race.
///
/// Measured: two thieves on two processors take 25 ns an item without pauses, and 13 ns with 8. Two pushers
/// and two thieves do better with 32 than with 8. More pauses gain still more, but cost the loser of a
/// single race more.
const LOST_RACE_PAUSES: u32 = 32;

impl Backoff {
    pub(crate) const fn new() -> Self {
        Self { round: FIRST_ROUND }
    }

    /// Pauses after a lost race that is not repeated here, to leave the cache line to the winner for a
    /// moment.
    pub(crate) fn after_lost_race() {
        for _ in 0..LOST_RACE_PAUSES {
            spin_loop();
        }
    }

    /// Pauses before a lost race is repeated, longer each time, to leave the cache line to the winner.
    pub(crate) fn spin(&mut self) {
        for _ in 0..1_u32 << self.round {
            spin_loop();
        }
        self.round = LAST_ROUND.min(self.round + 1);
    }

    /// Performs one step of waiting for another thread that needs only a few more instructions. If that takes
    /// long, the other thread is probably not running, and this one yields the processor.
    pub(crate) fn wait(&mut self) {
        if self.round < LAST_ROUND {
            self.spin();
        } else {
            yield_processor();
        }
    }
}
