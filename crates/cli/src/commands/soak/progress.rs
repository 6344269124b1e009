//! Shows the progress: a bar on a terminal, a line every ten seconds elsewhere, nothing with `--quiet`.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::counts::Counts;
use crate::args::Common;
use crate::out;

/// The time between two lines.
const INTERVAL: Duration = Duration::from_secs(10);

/// A progress display. The bar is removed when this is dropped.
pub(super) enum Progress {
    Bar(ProgressBar),
    Lines { next: Duration, limit: Duration },
    Quiet,
}

impl Progress {
    pub(super) fn new(common: &Common, seed: u64, limit: Duration) -> Self {
        if common.quiet {
            return Self::Quiet;
        }
        out::note(&format!("soak: {} s, seed {seed}", limit.as_secs_f64().ceil()));
        if !out::is_drawable() {
            return Self::Lines { next: INTERVAL, limit };
        }
        let style = ProgressStyle::with_template("{bar:30} {pos} of {len} s  {msg}")
            .expect("a template without errors");
        Self::Bar(ProgressBar::new(limit.as_secs_f64().ceil() as u64).with_style(style))
    }

    /// Updates the display. Called after every shape.
    pub(super) fn show(&mut self, counts: &Counts, elapsed: Duration) {
        match self {
            Self::Bar(bar) => {
                // The bar redraws only as often as an eye can follow.
                bar.set_position(elapsed.as_secs());
                bar.set_message(counts.line());
            }
            Self::Lines { next, limit } if elapsed >= *next => {
                *next = elapsed + INTERVAL;
                out::note(&format!(
                    "soak: {} of {} s, {}",
                    elapsed.as_secs(),
                    limit.as_secs_f64().ceil(),
                    counts.line()
                ));
            }
            Self::Lines { .. } | Self::Quiet => {}
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
