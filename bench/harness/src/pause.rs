//! Work of about 100 ns that touches no memory, for example a thief's work on an item.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const WORK: Duration = Duration::from_nanos(100);

/// Turns of a trial: long enough that reading the clock does not matter, short enough to fit between two interrupts.
const TRIAL: u32 = 100_000;

/// The number of trials. The fastest one is the one that nothing disturbed.
const TRIALS: usize = 20;

/// A number of turns of an empty loop that takes 100 ns.
#[derive(Clone, Copy)]
pub struct Pause {
    turns: u32,
}

impl Pause {
    /// Returns the pause for this machine, which is measured once in a program.
    pub fn calibrated() -> Self {
        static PAUSE: OnceLock<Pause> = OnceLock::new();
        *PAUSE.get_or_init(Self::calibrate)
    }

    fn calibrate() -> Self {
        let trial = Self { turns: TRIAL };
        let fastest = (0..TRIALS).map(|_| {
            let start = Instant::now();
            trial.work();
            start.elapsed()
        });
        let fastest = fastest.min().expect("there are trials").as_secs_f64();
        let turns = f64::from(TRIAL) * WORK.as_secs_f64() / fastest;
        Self { turns: turns.round().max(1.0) as u32 }
    }

    /// Works for about 100 ns.
    ///
    /// It does not use the processor's pause instruction: a hypervisor may take that for a thread that spins in
    /// vain, and deschedule it.
    #[inline(always)]
    pub fn work(self) {
        for turn in 0..self.turns {
            black_box(turn);
        }
    }
}
