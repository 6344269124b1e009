//! Targets, and whether a run meets them.

use crate::metric::Metric;
use crate::row::Row;
use crate::stats::{Interval, interval, ratios};

/// What a value is compared with, always within the same round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Than {
    /// Another entry of the same row.
    Entry(&'static str),
    /// The best of these entries in the same row, chosen by its median over all rounds. The best of each round
    /// would be a peer that does not exist, made of every peer's luckiest rounds.
    Best(&'static [&'static str]),
    /// The same entry in the row of this name, for example to show what a second worker gains.
    Case(String),
    /// Nothing: the limit is one of the value itself, in the unit of the tables.
    Nothing,
}

/// An upper limit that was fixed before the run.
#[derive(Debug, Clone)]
pub struct Target {
    /// The entry that should meet it.
    pub of: &'static str,
    /// The metric that is limited.
    pub metric: &'static Metric,
    /// What the value is compared with.
    pub than: Than,
    /// The limit.
    pub at_most: f64,
}

/// How a run compares with a target.
#[derive(Debug, PartialEq)]
pub struct Finding {
    /// The interval of the rounds' ratios, or of the rounds' values.
    pub found: Interval,
    /// The peer that the entry is compared with, in words.
    pub against: String,
    /// Whether the median is within the limit.
    pub met: bool,
}

impl Target {
    /// Returns how the run compares. Returns `None` if there is nothing to compare with: the peer was not built in,
    /// or the case was not selected.
    pub fn finding(&self, row: &Row, rows: &[Row]) -> Option<Finding> {
        let own = row.values(self.of, self.metric)?;
        let (found, against) = match &self.than {
            Than::Entry(name) => {
                let other = row.values(name, self.metric)?;
                (interval(ratios(own, other)), (*name).into())
            }
            Than::Best(names) => {
                let (name, best) = self.best(row, names)?;
                (interval(ratios(own, best)), format!("{name}, the best peer"))
            }
            Than::Case(id) => {
                let other = rows.iter().find(|row| row.id() == *id)?;
                let other = other.values(self.of, self.metric)?;
                (interval(ratios(own, other)), format!("{} in {id}", self.of))
            }
            Than::Nothing => {
                let values = own.into_iter().map(|value| value / self.metric.unit);
                (interval(values), "–".into())
            }
        };
        Some(Finding { found, against, met: found.median <= self.at_most })
    }

    fn best<'a>(&self, row: &Row, names: &[&'a str]) -> Option<(&'a str, Vec<f64>)> {
        let present = names.iter().filter_map(|&name| Some((name, row.values(name, self.metric)?)));
        let median = |values: &Vec<f64>| interval(values.iter().copied()).median;
        present.min_by(|(_, a), (_, b)| median(a).total_cmp(&median(b)))
    }
}

/// Returns the word for a target that is met or missed.
pub fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "missed" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric;
    use crate::row::tests::row;

    fn target(than: Than, at_most: f64) -> Target {
        Target { of: "heist", metric: &metric::TIME, than, at_most }
    }

    fn rows() -> Vec<Row> {
        let inside =
            [("heist", [1.0, 20.0, 3.0]), ("rayon", [2.0, 40.0, 6.0]), ("tokio", [1.9, 50.0, 7.0])];
        vec![row("inside/1", &inside), row("inside/2", &[("heist", [2.0, 10.0, 6.0])])]
    }

    #[test]
    fn ratios_are_of_the_same_round() {
        let rows = rows();
        let finding = target(Than::Entry("rayon"), 0.5).finding(&rows[0], &rows).unwrap();
        assert_eq!((finding.found.low, finding.found.high), (0.5, 0.5));
        assert!(finding.met);
        let finding = target(Than::Entry("rayon"), 0.49).finding(&rows[0], &rows).unwrap();
        assert!(!finding.met);
    }

    #[test]
    fn the_best_peer_is_the_one_with_the_lowest_median() {
        let rows = rows();
        let target = target(Than::Best(&["rayon", "tokio", "absent"]), 1.0);
        let finding = target.finding(&rows[0], &rows).unwrap();
        assert_eq!(finding.against, "rayon, the best peer");
        assert_eq!(finding.found.median, 0.5);
    }

    #[test]
    fn a_case_is_compared_with_another() {
        let rows = rows();
        let finding =
            target(Than::Case("spawn/inside/1".into()), 1.5).finding(&rows[1], &rows).unwrap();
        assert_eq!(finding.found.median, 2.0);
        assert!(!finding.met);
    }

    #[test]
    fn a_limit_of_the_value_itself_needs_no_peer() {
        let rows = rows();
        let finding = target(Than::Nothing, 3.0).finding(&rows[0], &rows).unwrap();
        assert_eq!(finding.found.median, 3.0);
        assert!(finding.met);
    }

    #[test]
    fn a_missing_entry_or_case_gives_no_finding() {
        let rows = rows();
        for than in
            [Than::Entry("absent"), Than::Best(&["absent"]), Than::Case("spawn/tree/1".into())]
        {
            assert_eq!(target(than, 1.0).finding(&rows[0], &rows), None);
        }
    }
}
