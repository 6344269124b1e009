//! How far it is: a bar where one can be drawn, a line now and then elsewhere, nothing if that is wished.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::counts::Counts;
use crate::args::Common;
use crate::out;

/// Between lines.
const PAUSE: Duration = Duration::from_secs(10);

/// The bar is gone when this is dropped.
pub(super) enum Progress {
    Bar(ProgressBar),
    Lines { next: Duration, limit: Duration },
    Nothing,
}

impl Progress {
    pub(super) fn new(common: &Common, seed: u64, limit: Duration) -> Self {
        if common.quiet {
            return Self::Nothing;
        }
        out::note(&format!("soak: {} s, seed {seed}", limit.as_secs_f64().ceil()));
        if !out::is_drawable() {
            return Self::Lines { next: PAUSE, limit };
        }
        let style = ProgressStyle::with_template("{bar:30} {pos} of {len} s  {msg}")
            .expect("a template without errors");
        Self::Bar(ProgressBar::new(limit.as_secs_f64().ceil() as u64).with_style(style))
    }

    /// After every shape.
    pub(super) fn show(&mut self, counts: &Counts, elapsed: Duration) {
        match self {
            Self::Bar(bar) => {
                // Also lets it draw, but not more often than one can see.
                bar.set_position(elapsed.as_secs());
                bar.set_message(counts.line());
            }
            Self::Lines { next, limit } if elapsed >= *next => {
                *next = elapsed + PAUSE;
                out::note(&format!(
                    "soak: {} of {} s, {}",
                    elapsed.as_secs(),
                    limit.as_secs_f64().ceil(),
                    counts.line()
                ));
            }
            Self::Lines { .. } | Self::Nothing => {}
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}
