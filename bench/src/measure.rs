//! In which order the cases run, and what is kept of them.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use crate::item::Kind;
use crate::{cores, handoff};

/// One measurement of one queue in one case.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    /// Per operation, as the case counts them.
    pub(crate) nanoseconds: f64,
    /// Where a thief was at work.
    pub(crate) steals_per_second: Option<f64>,
    /// It was not what it should have been, and repeating it did not help: a thread that should
    /// have run beside the other did not.
    pub(crate) disturbed: bool,
}

impl Sample {
    /// Of a case without a thief, or where nothing but the thief was measured.
    pub(crate) fn new(time: Duration, operations: u64) -> Self {
        Self {
            nanoseconds: time.as_nanos() as f64 / operations as f64,
            steals_per_second: None,
            disturbed: false,
        }
    }
}

/// Measures once. A pointer to a function that was compiled for one queue and one item type.
pub(crate) type Run = fn() -> Sample;

/// One queue in one case.
pub(crate) struct Entry {
    pub(crate) queue: &'static str,
    pub(crate) run: Run,
    /// The highest ratio to the reference that we want to see; `None` for a peer or a baseline.
    pub(crate) target: Option<f64>,
    /// One a round.
    pub(crate) samples: Vec<Sample>,
}

impl Entry {
    pub(crate) fn nanoseconds(&self) -> impl Iterator<Item = f64> + '_ {
        self.samples.iter().map(|sample| sample.nanoseconds)
    }

    /// Empty where the case has no thief.
    pub(crate) fn steals(&self) -> impl Iterator<Item = f64> + '_ {
        self.samples.iter().filter_map(|sample| sample.steals_per_second)
    }

    pub(crate) fn disturbed(&self) -> usize {
        self.samples.iter().filter(|sample| sample.disturbed).count()
    }
}

/// One case with one item type, and every queue that takes part.
pub(crate) struct Row {
    pub(crate) workload: &'static str,
    pub(crate) item: Kind,
    pub(crate) case: &'static str,
    /// The case in words.
    pub(crate) title: &'static str,
    /// What `Entry::target` is for the strictest queue.
    pub(crate) target: f64,
    pub(crate) entries: Vec<Entry>,
}

impl Row {
    /// The name by which it is asked for.
    pub(crate) fn id(&self) -> String {
        format!("{}/{}/{}", self.workload, self.item.id(), self.case)
    }
}

/// Measures every row `rounds` times. Returns what a hand-off between the cores took in each round.
///
/// The queues of a case come one right after the other, a few milliseconds apart, so that whatever
/// else the machine is doing falls on all of them; and another one begins every round, so that
/// what a queue leaves behind (caches, the allocator, the clock's speed) is not always left to the
/// same one.
pub(crate) fn run(rows: &mut [Row], rounds: usize) -> Vec<f64> {
    cores::pin(cores::OWNER);
    let mut hand_offs = Vec::with_capacity(rounds);
    let mut progress = Progress::new(rounds, rows.len());
    for round in 0..rounds {
        hand_offs.push(handoff::measure());
        for (number, row) in rows.iter_mut().enumerate() {
            progress.at(round, number, &row.id());
            for turn in in_turn(round, row.entries.len()) {
                let entry = &mut row.entries[turn];
                entry.samples.push((entry.run)());
            }
        }
        progress.after(round);
    }
    cores::roam();
    hand_offs
}

/// All of `count`, beginning with another one every round.
fn in_turn(round: usize, count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |turn| (round + turn) % count)
}

/// On a terminal a line that changes, elsewhere a line a round.
struct Progress {
    rounds: usize,
    rows: usize,
    terminal: bool,
}

impl Progress {
    fn new(rounds: usize, rows: usize) -> Self {
        Self { rounds, rows, terminal: std::io::stderr().is_terminal() }
    }

    fn at(&mut self, round: usize, row: usize, id: &str) {
        if self.terminal {
            let (rounds, rows) = (self.rounds, self.rows);
            self.show(&format!("round {}/{rounds}, case {}/{rows}: {id}", round + 1, row + 1));
        }
    }

    fn after(&mut self, round: usize) {
        if !self.terminal {
            eprintln!("round {}/{} done", round + 1, self.rounds);
        } else if round + 1 == self.rounds {
            self.show("");
        }
    }

    fn show(&mut self, line: &str) {
        // Back to the start of the line and clear it. If stderr is gone, nobody is looking.
        let _ = write!(std::io::stderr(), "\r\x1b[K{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_queue_begins_once() {
        let order = |round| in_turn(round, 3).collect::<Vec<_>>();
        assert_eq!(order(0), [0, 1, 2]);
        assert_eq!(order(1), [1, 2, 0]);
        assert_eq!(order(5), [2, 0, 1]);
    }

    /// The loops check what comes out; here with the sizes that tests use.
    #[test]
    fn every_case_runs_with_every_queue() {
        let mut rows = crate::all_rows();
        run(&mut rows, 1);
        for row in &rows {
            for entry in &row.entries {
                let nanoseconds = entry.samples[0].nanoseconds;
                assert!(nanoseconds > 0.0, "{} {}", row.id(), entry.queue);
            }
        }
    }
}
