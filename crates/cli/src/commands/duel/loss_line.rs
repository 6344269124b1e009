//! The line `Losses`: where work stealing is slower than any other peer that was measured.

use heist_bench::stats::{Ends, Interval};

use super::results::{Results, without_family};
use super::text::{self, RAYON};
use crate::losses::{Comparison, comparisons};
use crate::units;

/// Returns the line, whatever the samples are.
pub(super) fn loss_line(results: &Results<'_>) -> String {
    let all = comparisons(results.cases.iter().map(|case| &case.0));
    let Some(worst) = all.first() else {
        return "too little was measured to tell.".to_owned();
    };
    let mut lost = all.iter().filter(|comparison| comparison.is_lost());
    let line = match lost.next() {
        Some(loss) => {
            let total = units::of(all.len() as u64, "comparison");
            format!("{}. Slower in {} of {total}.", phrase(loss), 1 + lost.count())
        }
        None if all.iter().any(Comparison::is_undecided) => {
            format!("too few rounds to tell. The slowest so far: {}.", phrase(worst))
        }
        None => format!("none beyond the noise on this machine. The closest: {}.", phrase(worst)),
    };
    let rayon = all.iter().any(|comparison| comparison.than == RAYON);
    if rayon { line } else { format!("{line} rayon was not measured.") }
}

/// Returns a comparison in words: `skewed with 2 workers takes 1.21 times as long as rayon (95 % interval
/// 1.15 to 1.30)`.
fn phrase(comparison: &Comparison<'_>) -> String {
    let Interval { median, low, high, ends } = comparison.ratio;
    let (what, than) = (without_family(&comparison.what), text::with_article(comparison.than));
    let sure = match ends {
        Ends::Confident => "95 % interval",
        Ends::Extremes => "in single rounds",
    };
    format!("{what} takes {median:.2} times as long as {than} ({sure} {low:.2} to {high:.2})")
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{all_wins, answers, record, series};
    use super::*;

    fn line(samples: Vec<heist_bench::record::Series>) -> String {
        loss_line(&Results::of(&record(samples)))
    }

    #[test]
    fn the_worst_loss_is_named_with_its_numbers() {
        let found = line(vec![
            series("skewed/2", "heist", &[12.0; 7]),
            series("skewed/2", "rayon", &[10.0; 7]),
            series("uniform/1", "heist", &[30.0; 7]),
            series("uniform/1", "rayon", &[20.0; 7]),
            series("uniform/1", "heist-locked", &[40.0; 7]),
        ]);
        assert_eq!(
            found,
            "uniform with 1 worker takes 1.50 times as long as rayon (95 % interval 1.50 to 1.50). \
             Slower in 2 of 3 comparisons."
        );
    }

    #[test]
    fn our_other_strategies_count_as_well() {
        let found = line(vec![
            series("skewed/2", "heist", &[12.0; 7]),
            series("skewed/2", "heist-global", &[10.0; 7]),
            series("skewed/2", "rayon", &[30.0; 7]),
        ]);
        assert!(found.contains("1.20 times as long as the global queue"), "{found}");
    }

    #[test]
    fn a_slower_median_within_the_noise_is_no_loss() {
        let found = line(vec![
            series("skewed/2", "heist", &[9.0, 9.0, 11.0, 11.0, 11.0, 11.0, 11.0]),
            series("skewed/2", "rayon", &[10.0; 7]),
            series("uniform/2", "heist", &[5.0; 7]),
            series("uniform/2", "rayon", &[10.0; 7]),
        ]);
        assert!(found.starts_with("none beyond the noise"), "{found}");
        assert!(found.contains("closest: skewed with 2 workers takes 1.10"), "{found}");
    }

    #[test]
    fn wins_have_a_closest_comparison() {
        let found = loss_line(&Results::of(&all_wins()));
        assert!(found.contains("closest: latency, p50 takes 0.90 times"), "{found}");
    }

    #[test]
    fn latencies_count_too() {
        let found = line(vec![
            answers("heist", &[5.0; 7], &[30.0; 7]),
            answers("rayon", &[10.0; 7], &[20.0; 7]),
        ]);
        assert!(found.starts_with("latency, p99 takes 1.50 times as long as rayon"), "{found}");
    }

    #[test]
    fn a_missing_rayon_is_reported() {
        let found = line(vec![
            series("skewed/2", "heist", &[12.0; 7]),
            series("skewed/2", "heist-locked", &[13.0; 7]),
        ]);
        assert!(found.ends_with("rayon was not measured."), "{found}");
    }

    #[test]
    fn few_rounds_have_no_confidence() {
        for rounds in 1..6 {
            let found = line(vec![
                series("skewed/2", "heist", &vec![12.0; rounds]),
                series("skewed/2", "rayon", &vec![10.0; rounds]),
            ]);
            let expected = "too few rounds to tell. The slowest so far: skewed with 2 workers takes 1.20 times as long \
                            as rayon (in single rounds 1.20 to 1.20).";
            assert_eq!(found, expected);
        }
        let found = line(vec![
            series("skewed/2", "heist", &[1.0, 39.0]),
            series("skewed/2", "rayon", &[10.0; 2]),
            series("uniform/2", "heist", &[11.0; 2]),
            series("uniform/2", "rayon", &[10.0; 2]),
        ]);
        assert!(found.contains("so far: skewed with 2 workers takes 2.00"), "{found}");
    }

    #[test]
    fn a_single_peer_has_no_comparison() {
        assert!(line(vec![series("skewed/2", "heist", &[12.0])]).contains("too little"));
    }
}
