//! A thief's work on an item: about 100 ns on a core, touching nothing.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const WORK: Duration = Duration::from_nanos(100);

/// Long enough that the clock does not matter, short enough to fit between two interruptions.
const TRIAL: u32 = 100_000;

/// The fastest trial is the one that nothing disturbed.
const TRIALS: usize = 20;

/// How many turns of an empty loop take as long as the work.
#[derive(Clone, Copy)]
pub(crate) struct Pause {
    turns: u32,
}

impl Pause {
    /// Measured once in a program.
    pub(crate) fn calibrated() -> Self {
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

    /// Not with the processor's pause instruction: a virtual machine may take it for a thread that
    /// waits in vain, and stop it.
    #[inline(always)]
    pub(crate) fn work(self) {
        for turn in 0..self.turns {
            black_box(turn);
        }
    }
}
