//! In which order the cases run, and on which cores.

use std::io::{IsTerminal, Write};

use crate::row::{Row, Threads};
use crate::{cores, handoff};

/// Measures every row `rounds` times. Returns what a hand-off between the cores took in each round.
///
/// The entries of a case come one right after the other, so that whatever else the machine is
/// doing falls on all of them; and another one begins every round, so that what an entry leaves
/// behind (caches, the allocator, the clock's speed) is not always left to the same one.
pub(crate) fn run(rows: &mut [Row], rounds: usize) -> Vec<f64> {
    let mut hand_offs = Vec::with_capacity(rounds);
    let mut progress = Progress::new(rounds, rows.len());
    for round in 0..rounds {
        cores::pin(cores::OWNER);
        hand_offs.push(handoff::measure());
        for (number, row) in rows.iter_mut().enumerate() {
            progress.at(round, number, &row.id());
            match row.threads {
                Threads::Pinned => cores::pin(cores::OWNER),
                Threads::Free => cores::roam(),
            }
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
    fn every_entry_begins_once() {
        let order = |round| in_turn(round, 3).collect::<Vec<_>>();
        assert_eq!(order(0), [0, 1, 2]);
        assert_eq!(order(1), [1, 2, 0]);
        assert_eq!(order(5), [2, 0, 1]);
    }

    /// The loops check what comes out; here with the sizes that tests use.
    #[test]
    fn every_case_runs_with_every_entry() {
        let mut rows = crate::all_rows();
        run(&mut rows, 1);
        for row in &rows {
            for entry in &row.entries {
                let values = &entry.samples[0].values;
                assert_eq!(values.len(), row.metrics.len(), "{} {}", row.id(), entry.name);
                let is_number = |value: &f64| value.is_finite() && *value >= 0.0;
                assert!(values.iter().all(is_number), "{} {}: {values:?}", row.id(), entry.name);
            }
        }
    }
}
