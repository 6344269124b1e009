//! How far a measurement is: a bar where one can be drawn, a line a round elsewhere, and when to stop.

use std::ops::ControlFlow;

use heist_bench::{Step, Watcher};
use indicatif::{ProgressBar, ProgressStyle};

use crate::{interrupt, out};

/// Watches a run for whoever waits for it.
pub(super) struct Progress {
    rounds: usize,
    how: How,
    /// The last round of which a measurement was begun.
    round: usize,
}

enum How {
    Bar(ProgressBar),
    Lines,
    Silent,
}

impl Progress {
    pub(super) fn new(rounds: usize, cases: usize, quiet: bool) -> Self {
        let how = if quiet {
            How::Silent
        } else if out::is_drawable() {
            How::Bar(bar((rounds * cases) as u64))
        } else {
            How::Lines
        };
        Self { rounds, how, round: 0 }
    }

    /// The bar makes room for what is printed next. Unless it has succeeded, the last round is not done.
    pub(super) fn end(self, success: bool) {
        match self.how {
            How::Bar(bar) => bar.finish_and_clear(),
            How::Lines if success && !interrupt::seen() => self.say_done(self.rounds),
            How::Lines | How::Silent => {}
        }
    }

    fn say_done(&self, rounds: usize) {
        out::note(&format!("round {rounds}/{} done", self.rounds));
    }
}

fn bar(steps: u64) -> ProgressBar {
    let template = "{bar:24} {elapsed_precise} of about {duration_precise}  {wide_msg}";
    let style = ProgressStyle::with_template(template).expect("it is a template");
    ProgressBar::new(steps).with_style(style)
}

impl Watcher for Progress {
    fn before(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        if interrupt::seen() {
            return ControlFlow::Break(());
        }
        match &self.how {
            How::Bar(bar) => {
                bar.set_position((step.round * step.cases + step.place) as u64);
                let (round, rounds) = (step.round + 1, self.rounds);
                bar.set_message(format!("round {round}/{rounds}: {} {}", step.case, step.by));
            }
            How::Lines if step.round > self.round => self.say_done(step.round),
            How::Lines | How::Silent => {}
        }
        self.round = step.round;
        ControlFlow::Continue(())
    }

    fn after(&mut self, _: &Step<'_>, _: &[f64]) {}
}
