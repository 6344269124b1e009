//! Why not to trust the numbers, as far as that can be seen.

use heist_bench::stats::{Ends, ends_of};

use super::results::{Case, Results};
use super::text;
use super::watch::Stop;
use crate::units;

/// An interval wider than that part of the median is noise that a reader should know of.
const NOISY: f64 = 0.2;

/// What samples do not tell.
#[derive(Debug, Clone, Copy)]
pub(super) struct Circumstances {
    pub(super) stop: Stop,
    /// How many cases there are.
    pub(super) cases: usize,
    /// Processors that the process may use.
    pub(super) cores: usize,
    /// Built without optimisation.
    pub(super) debug: bool,
}

/// A sentence each, what matters most first.
pub(super) fn doubts(results: &Results<'_>, circumstances: Circumstances) -> Vec<String> {
    let debug = circumstances.debug.then(|| {
        "this is a debug build, whose times say nothing: use `cargo run --release`.".to_owned()
    });
    let alone = (circumstances.cores == 1).then(|| {
        "one core for everybody. What scheduling costs can be seen here; what it gains cannot."
            .to_owned()
    });
    let all =
        [debug, alone, ended_early(results, circumstances), disturbed(results), noise(results)];
    all.into_iter().flatten().collect()
}

fn ended_early(results: &Results<'_>, circumstances: Circumstances) -> Option<String> {
    let Circumstances { stop, cases, .. } = circumstances;
    let found = results.cases.len();
    let rounds = units::of(results.rounds as u64, "round");
    let when = if found < cases {
        format!("in the first round, with {found} of {cases} cases measured")
    } else {
        format!("after {rounds}")
    };
    let few = ends_of(results.rounds) == Ends::Extremes;
    let unsure =
        if few { ": too few rounds for a 95 % interval, so nothing here is sure" } else { "" };
    match stop {
        Stop::Interrupted => Some(format!("interrupted {when}{unsure}.")),
        Stop::Enough if few => Some(format!("the time was up {when}{unsure}.")),
        Stop::Enough => None,
    }
}

fn disturbed(results: &Results<'_>) -> Option<String> {
    let counts = results.cases.iter().map(Case::disturbed);
    let (disturbed, all) = counts.fold((0, 0), |sum, case| (sum.0 + case.0, sum.1 + case.1));
    (disturbed > 0).then(|| format!("{disturbed} of {all} measurements were disturbed."))
}

/// The case in which times were furthest apart, if that is far.
fn noise(results: &Results<'_>) -> Option<String> {
    let spreads = results.cases.iter().filter_map(|case| Some((case.spread()?, case)));
    let ((spread, by), case) = spreads.max_by(|a, b| a.0.0.total_cmp(&b.0.0))?;
    (spread > NOISY).then(|| {
        format!(
            "times vary. Widest interval: {} of {}, {:.0} % of its median. Is something else running?",
            case.in_words(),
            text::shown(by),
            spread * 100.0
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{record, series, triumph};
    use super::*;

    const FINE: Circumstances =
        Circumstances { stop: Stop::Enough, cases: 1, cores: 2, debug: false };

    #[test]
    fn there_may_be_none() {
        assert_eq!(doubts(&Results::of(&triumph()), FINE), [""; 0]);
    }

    #[test]
    fn circumstances_are_told() {
        let bad = Circumstances { stop: Stop::Interrupted, cases: 7, cores: 1, debug: true };
        let found = doubts(&Results::of(&triumph()), bad);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("debug build"));
        assert!(found[1].contains("one core"));
        assert_eq!(found[2], "interrupted after 7 rounds.");
    }

    #[test]
    fn few_rounds_are_told() {
        let of = |rounds| record(vec![series("skewed/2", "heist", &vec![1.0; rounds])]);
        let told = |rounds, circumstances| doubts(&Results::of(&of(rounds)), circumstances);
        let unsure = "too few rounds for a 95 % interval, so nothing here is sure.";
        assert_eq!(told(1, FINE), [format!("the time was up after 1 round: {unsure}")]);
        assert_eq!(told(5, FINE), [format!("the time was up after 5 rounds: {unsure}")]);
        assert_eq!(told(6, FINE), [""; 0]);
        let interrupted = Circumstances { stop: Stop::Interrupted, ..FINE };
        assert_eq!(told(5, interrupted), [format!("interrupted after 5 rounds: {unsure}")]);
        let found = told(1, Circumstances { cases: 7, ..FINE });
        assert!(found[0].contains("in the first round, with 1 of 7 cases measured"), "{found:?}");
    }

    #[test]
    fn disturbances_are_counted() {
        let mut record = triumph();
        record.samples[3].disturbed = 2;
        let found = doubts(&Results::of(&record), FINE);
        assert!(found[0].starts_with("2 of "), "{found:?}");
    }

    #[test]
    fn the_noisiest_case_is_named() {
        let wild = [10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 15.0];
        let samples =
            vec![series("uniform/2", "heist", &[10.0; 7]), series("skewed/2", "rayon", &wild)];
        let record = record(samples);
        let found = doubts(&Results::of(&record), FINE);
        assert!(found[0].contains("skewed with 2 workers of rayon, 50 %"), "{found:?}");
    }
}
