//! Detectable reasons not to trust the numbers.

use heist_bench::stats::{Ends, ends_of};

use super::results::{Case, Results};
use super::text;
use super::watcher::EndReason;
use crate::units;

/// The width of an interval, as a part of the median, from which on the output warns about noise.
const NOISY: f64 = 0.2;

/// Facts about a run that its samples do not contain.
#[derive(Debug, Clone, Copy)]
pub(super) struct Circumstances {
    pub(super) stop: EndReason,
    /// The number of cases of the duel.
    pub(super) cases: usize,
    /// The number of processors that the process may use.
    pub(super) cores: usize,
    /// Whether the program was built without optimisation.
    pub(super) debug: bool,
}

/// Returns one sentence per caveat, the most important first.
pub(super) fn caveats(results: &Results<'_>, circumstances: Circumstances) -> Vec<String> {
    let debug = circumstances.debug.then(|| {
        "this is a debug build, whose times mean nothing: use `cargo run --release`.".to_owned()
    });
    let alone = (circumstances.cores == 1).then(|| {
        "there is only one core. The cost of scheduling shows here, its benefit does not."
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
        if few { ": too few rounds for a 95 % interval, so no difference is certain" } else { "" };
    match stop {
        EndReason::Interrupted => Some(format!("interrupted {when}{unsure}.")),
        EndReason::Finished if few => Some(format!("the time was up {when}{unsure}.")),
        EndReason::Finished => None,
    }
}

fn disturbed(results: &Results<'_>) -> Option<String> {
    let counts = results.cases.iter().map(Case::disturbed);
    let (disturbed, all) = counts.fold((0, 0), |sum, case| (sum.0 + case.0, sum.1 + case.1));
    (disturbed > 0).then(|| format!("{disturbed} of {all} measurements were disturbed."))
}

/// Returns a sentence about the case with the widest interval, if it is wide.
fn noise(results: &Results<'_>) -> Option<String> {
    let spreads = results.cases.iter().filter_map(|case| Some((case.spread()?, case)));
    let ((spread, by), case) = spreads.max_by(|a, b| a.0.0.total_cmp(&b.0.0))?;
    (spread > NOISY).then(|| {
        format!(
            "times vary. The widest interval, {} of {}, is {:.0} % of its median. Is something else running?",
            case.phrase(),
            text::shown(by),
            spread * 100.0
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{all_wins, record, series};
    use super::*;

    const FINE: Circumstances =
        Circumstances { stop: EndReason::Finished, cases: 1, cores: 2, debug: false };

    #[test]
    fn a_good_run_has_no_caveats() {
        assert_eq!(caveats(&Results::of(&all_wins()), FINE), [""; 0]);
    }

    #[test]
    fn circumstances_are_reported() {
        let bad = Circumstances { stop: EndReason::Interrupted, cases: 7, cores: 1, debug: true };
        let found = caveats(&Results::of(&all_wins()), bad);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("debug build"));
        assert!(found[1].contains("only one core"));
        assert_eq!(found[2], "interrupted after 7 rounds.");
    }

    #[test]
    fn few_rounds_are_reported() {
        let of = |rounds| record(vec![series("skewed/2", "heist", &vec![1.0; rounds])]);
        let told = |rounds, circumstances| caveats(&Results::of(&of(rounds)), circumstances);
        let unsure = "too few rounds for a 95 % interval, so no difference is certain.";
        assert_eq!(told(1, FINE), [format!("the time was up after 1 round: {unsure}")]);
        assert_eq!(told(5, FINE), [format!("the time was up after 5 rounds: {unsure}")]);
        assert_eq!(told(6, FINE), [""; 0]);
        let interrupted = Circumstances { stop: EndReason::Interrupted, ..FINE };
        assert_eq!(told(5, interrupted), [format!("interrupted after 5 rounds: {unsure}")]);
        let found = told(1, Circumstances { cases: 7, ..FINE });
        assert!(found[0].contains("in the first round, with 1 of 7 cases measured"), "{found:?}");
    }

    #[test]
    fn disturbances_are_counted() {
        let mut record = all_wins();
        record.samples[3].disturbed = 2;
        let found = caveats(&Results::of(&record), FINE);
        assert!(found[0].starts_with("2 of "), "{found:?}");
    }

    #[test]
    fn the_noisiest_case_is_named() {
        let wild = [10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 15.0];
        let samples =
            vec![series("uniform/2", "heist", &[10.0; 7]), series("skewed/2", "rayon", &wild)];
        let record = record(samples);
        let found = caveats(&Results::of(&record), FINE);
        assert!(found[0].contains("skewed with 2 workers of rayon, is 50 %"), "{found:?}");
    }
}
