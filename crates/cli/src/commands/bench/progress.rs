//! The progress of a measurement: a bar on a terminal, one line per round elsewhere. Also stops a run that is
//! interrupted.

use std::ops::ControlFlow;

use heist_bench::{Step, Watcher};
use indicatif::{ProgressBar, ProgressStyle};

use crate::{interrupt, out};

/// Shows the progress of a run.
pub(super) struct Progress {
    rounds: usize,
    display: Display,
    /// The round of the last measurement that began.
    round: usize,
}

enum Display {
    Bar(ProgressBar),
    Lines,
    Silent,
}

impl Progress {
    pub(super) fn new(rounds: usize, cases: usize, quiet: bool) -> Self {
        let display = if quiet {
            Display::Silent
        } else if out::is_drawable() {
            Display::Bar(bar((rounds * cases) as u64))
        } else {
            Display::Lines
        };
        Self { rounds, display, round: 0 }
    }

    /// Removes the bar. If the run failed, the last round is not reported as done.
    pub(super) fn end(self, success: bool) {
        match self.display {
            Display::Bar(bar) => bar.finish_and_clear(),
            Display::Lines if success && !interrupt::seen() => self.report_done(self.rounds),
            Display::Lines | Display::Silent => {}
        }
    }

    fn report_done(&self, rounds: usize) {
        out::note(&format!("round {rounds}/{} done", self.rounds));
    }
}

/// Returns a bar that shows the time so far, an estimate of the whole, and a message.
pub(crate) fn bar(steps: u64) -> ProgressBar {
    let template = "{bar:24} {elapsed_precise} of about {duration_precise}  {wide_msg}";
    let style = ProgressStyle::with_template(template).expect("the template is valid");
    ProgressBar::new(steps).with_style(style)
}

impl Watcher for Progress {
    fn before(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        if interrupt::seen() {
            return ControlFlow::Break(());
        }
        match &self.display {
            Display::Bar(bar) => {
                bar.set_position((step.round * step.cases + step.place) as u64);
                let (round, rounds) = (step.round + 1, self.rounds);
                bar.set_message(format!("round {round}/{rounds}: {} {}", step.case, step.by));
            }
            Display::Lines if step.round > self.round => self.report_done(step.round),
            Display::Lines | Display::Silent => {}
        }
        self.round = step.round;
        ControlFlow::Continue(())
    }

    fn after(&mut self, _: &Step<'_>, _: &[f64]) {}
}
