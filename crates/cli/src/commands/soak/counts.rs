//! What has been done so far, and what is said of it.

use std::time::Duration;

use super::Kind;
use crate::exit::Exit;
use crate::style::Paint;
use crate::units;

/// Of each kind, the shapes, and what they had.
#[derive(Debug, Default)]
pub(super) struct Counts([(u64, u64); Kind::ALL.len()]);

impl Kind {
    /// What it is called, and what its shapes have.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Queues => ("queues", "items"),
            Self::Pools => ("pools", "tasks"),
            Self::Forks => ("forks", "leaves"),
            Self::Loops => ("loops and sorts", "items"),
            Self::Pipelines => ("pipelines", "items"),
        }
    }
}

impl Counts {
    pub(super) fn add(&mut self, kind: Kind, done: u64) {
        let count = &mut self.0[kind as usize];
        count.0 += 1;
        count.1 += done;
    }

    pub(super) fn shapes(&self) -> u64 {
        self.0.iter().map(|count| count.0).sum()
    }

    /// While it runs.
    pub(super) fn line(&self) -> String {
        let done: u64 = self.0.iter().map(|count| count.1).sum();
        format!("{}, {} items and tasks", units::of(self.shapes(), "shape"), units::count(done))
    }

    /// At the end, if nothing was wrong.
    pub(super) fn summary(
        &self,
        exit: Exit,
        quiet: bool,
        time: Duration,
        seed: u64,
        paint: Paint,
    ) -> String {
        let mut text = String::new();
        if !quiet {
            for (kind, (shapes, done)) in Kind::ALL.into_iter().zip(self.0) {
                let (name, what) = kind.names();
                text += &format!(
                    "{:<16} {:>10} shapes {:>16} {what}\n",
                    paint.bold(name),
                    units::count(shapes),
                    units::count(done)
                );
            }
        }
        let verdict =
            if exit == Exit::Interrupted { paint.dim("interrupted:") } else { paint.good("ok:") };
        let shapes = units::of(self.shapes(), "shape");
        text + &format!(
            "{verdict} {shapes} in {:.0} s, nothing was lost, nothing was doubled; seed {seed}\n",
            time.as_secs_f64()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style;

    #[test]
    fn a_summary_has_a_line_for_each_kind_unless_it_is_quiet() {
        let mut counts = Counts::default();
        counts.add(Kind::Pools, 1500);
        counts.add(Kind::Pools, 500);
        let text = counts.summary(Exit::Done, false, Duration::from_secs(3), 7, style::plain());
        assert!(
            text.contains("pools                     2 shapes            2,000 tasks"),
            "{text}"
        );
        let quiet =
            counts.summary(Exit::Interrupted, true, Duration::from_secs(3), 7, style::plain());
        assert_eq!(
            quiet,
            "interrupted: 2 shapes in 3 s, nothing was lost, nothing was doubled; seed 7\n"
        );
    }
}
