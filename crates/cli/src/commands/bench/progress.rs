//! The progress of a measurement: a bar on a terminal, one line per round elsewhere. Also stops a run that is
//! interrupted.

use std::ops::ControlFlow;

use heist_bench::{Step, Watcher};
use indicatif::{ProgressBar, ProgressStyle};

use super::limit::{Clock, Limit};
use crate::{interrupt, out};

/// Shows the progress of a run, and ends it when its time is up.
pub(super) struct Progress {
    limit: Limit,
    /// Measures the time of a run whose time is limited.
    clock: Option<Clock>,
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
    pub(super) fn new(limit: Limit, cases: usize, quiet: bool) -> Self {
        let (steps, clock) = match limit {
            Limit::Rounds(rounds) => ((rounds * cases) as u64, None),
            Limit::Time(time) => (time.as_millis() as u64, Some(Clock::start(time))),
        };
        let display = if quiet {
            Display::Silent
        } else if out::is_drawable() {
            Display::Bar(bar(steps))
        } else {
            Display::Lines
        };
        Self { limit, clock, display, round: 0 }
    }

    /// Removes the bar. If the run failed, the last round is not reported as done.
    pub(super) fn end(self, success: bool) {
        match self.display {
            Display::Bar(bar) => bar.finish_and_clear(),
            Display::Lines if success && !interrupt::seen() => {
                // A run whose time is up has reported its last round when it asked for the next one.
                if let Limit::Rounds(rounds) = self.limit {
                    self.report_done(rounds);
                }
            }
            Display::Lines | Display::Silent => {}
        }
    }

    fn report_done(&self, round: usize) {
        out::note(&format!("round {} done", self.numbered(round)));
    }

    /// Returns the number of a round, and the number of all rounds if that is known.
    fn numbered(&self, round: usize) -> String {
        match self.limit {
            Limit::Rounds(rounds) => format!("{round}/{rounds}"),
            Limit::Time(_) => round.to_string(),
        }
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
                let measured = (step.round * step.cases + step.place) as u64;
                let elapsed = self.clock.as_ref().map(|clock| clock.elapsed().as_millis() as u64);
                bar.set_position(elapsed.unwrap_or(measured));
                let round = self.numbered(step.round + 1);
                bar.set_message(format!("round {round}: {} {}", step.case, step.by));
            }
            Display::Lines if step.round > self.round => self.report_done(step.round),
            Display::Lines | Display::Silent => {}
        }
        self.round = step.round;
        if self.clock.as_mut().is_some_and(|clock| !clock.allows(step)) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn after(&mut self, _: &Step<'_>, _: &[f64]) {}
}
