//! What has run so far, and the texts that say so.

use std::time::Duration;

use heist_stress::{Subject, random};

use crate::exit::Exit;
use crate::style::Paint;
use crate::units;

/// What has run of each subject.
#[derive(Debug)]
pub(super) struct Counts([Count; random::SUBJECTS.len()]);

/// What has run of one subject.
#[derive(Debug, Clone, Copy)]
struct Count {
    subject: Subject,
    shapes: u64,
    /// The items, tasks or leaves of all shapes.
    done: u64,
}

impl Default for Counts {
    fn default() -> Self {
        Self(random::SUBJECTS.map(|subject| Count { subject, shapes: 0, done: 0 }))
    }
}

impl Counts {
    /// Adds a shape with so many items, tasks or leaves.
    pub(super) fn add(&mut self, subject: Subject, done: u64) {
        let count = self.0.iter_mut().find(|count| count.subject == subject);
        let count = count.expect("every subject of a random case is counted");
        count.shapes += 1;
        count.done += done;
    }

    pub(super) fn shapes(&self) -> u64 {
        self.0.iter().map(|count| count.shapes).sum()
    }

    /// Returns a line for the progress display.
    pub(super) fn line(&self) -> String {
        let done: u64 = self.0.iter().map(|count| count.done).sum();
        format!("{}, {} items and tasks", units::of(self.shapes(), "shape"), units::count(done))
    }

    /// Returns the text for the end of a run in which everything was right.
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
            for Count { subject, shapes, done } in self.0 {
                text += &format!(
                    "{:<16} {:>10} shapes {:>16} {}\n",
                    paint.bold(title(subject)),
                    units::count(shapes),
                    units::count(done),
                    subject.unit(),
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

fn title(subject: Subject) -> &'static str {
    match subject {
        Subject::Loops => "loops and sorts",
        _ => subject.name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style;

    #[test]
    fn a_summary_has_a_line_for_each_subject_unless_it_is_quiet() {
        let mut counts = Counts::default();
        counts.add(Subject::Pools, 1500);
        counts.add(Subject::Pools, 500);
        let text = counts.summary(Exit::Done, false, Duration::from_secs(3), 7, style::plain());
        assert!(
            text.contains("pools                     2 shapes            2,000 tasks"),
            "{text}"
        );
        assert!(text.contains("loops and sorts "), "{text}");
        let quiet =
            counts.summary(Exit::Interrupted, true, Duration::from_secs(3), 7, style::plain());
        assert_eq!(
            quiet,
            "interrupted: 2 shapes in 3 s, nothing was lost, nothing was doubled; seed 7\n"
        );
    }
}
