//! The result in a few sentences, and the ratios behind it.

use heist_bench::is_ours;
use heist_bench::record::Record;
use heist_bench::stats::{Ends, Interval};

use super::html::text;
use crate::cases::{Case, Entry, cases};
use crate::losses::{Comparison, comparisons};
use crate::units;
use crate::verdict::{self, Verdict};

/// The maximum number of tiles.
const TILES: usize = 8;
/// If there are more cases, the sentence counts them instead of naming them.
const NAMED: usize = 4;
/// The maximum number of losses that are named.
const LOSSES: usize = 3;

/// heist's time in a case, divided by another peer's.
struct Ratio<'c> {
    case: &'c Case<'c>,
    ours: &'c str,
    theirs: &'c str,
    ratio: Interval,
}

/// Returns the top of the page.
pub(super) fn headline(record: &Record) -> String {
    let cases = cases(record);
    let mut ratios = to_reference(&cases, record.machine.cores);
    let sentence = [result(&ratios), losses(&cases), few_rounds(&ratios).into()].join(" ");
    ratios.sort_by(|a, b| a.ratio.median.total_cmp(&b.ratio.median));
    if ratios.len() > TILES {
        // Keep the best and the worst.
        ratios.drain(TILES / 2..ratios.len() - TILES / 2);
    }
    let tiles: String = ratios.iter().map(tile).collect();
    let tiles =
        if tiles.is_empty() { tiles } else { format!("<ul class=\"tiles\">{tiles}</ul>\n") };
    format!("{}<p class=\"headline\">{}</p>\n{tiles}", caveats(record), text(sentence.trim()))
}

/// Returns the caveats of the record. Most records have none.
fn caveats(record: &Record) -> String {
    let sentence = |caveat: &str| format!("This file {caveat}.");
    let sentences: Vec<String> = record.caveats().into_iter().map(sentence).collect();
    if sentences.is_empty() {
        return String::new();
    }
    format!("<p class=\"beware\">{}</p>\n", text(&sentences.join(" ")))
}

/// Returns one ratio per family that has a reference: of the case with as many workers as there are cores, or
/// with the nearest number that was measured.
fn to_reference<'c>(cases: &'c [Case<'c>], cores: usize) -> Vec<Ratio<'c>> {
    let mut chosen: Vec<&Case<'_>> = Vec::new();
    for case in cases {
        match chosen.iter_mut().find(|other| other.family == case.family) {
            Some(other) if nearness(case, cores) > nearness(other, cores) => *other = case,
            Some(_) => (),
            None => chosen.push(case),
        }
    }
    chosen
        .into_iter()
        .filter_map(|case| {
            let main = case.main();
            let reference = main.reference().filter(|_| main.is_time())?;
            ratio(case, main.ours()?, reference)
        })
        .collect()
}

/// Ranks cases: more workers are better, but not more than there are cores.
fn nearness(case: &Case<'_>, cores: usize) -> i128 {
    let workers = case.workers.unwrap_or_default();
    if workers <= cores { workers as i128 } else { -(workers as i128) }
}

fn ratio<'c>(case: &'c Case<'c>, ours: &'c Entry<'_>, theirs: &'c Entry<'_>) -> Option<Ratio<'c>> {
    Some(Ratio { case, ours: ours.by, theirs: theirs.by, ratio: ours.over(theirs)? })
}

/// Returns the sentence that compares heist with the reference.
fn result(ratios: &[Ratio<'_>]) -> String {
    let [first, ..] = ratios else {
        return "No case of this file has another peer to compare with.".into();
    };
    let same_sides =
        ratios.iter().all(|ratio| (ratio.ours, ratio.theirs) == (first.ours, first.theirs));
    if same_sides && ratios.len() <= NAMED {
        return named(ratios, first.ours, first.theirs);
    }
    let (ours, theirs) = if same_sides {
        (first.ours, first.theirs)
    } else {
        ("heist", "rayon (or the fastest other peer where rayon was not measured)")
    };
    counted(ratios, ours, theirs)
}

/// Counts the verdicts.
fn counted(ratios: &[Ratio<'_>], ours: &str, theirs: &str) -> String {
    let is = |wanted| move |ratio: &&Ratio<'_>| verdict::of_ratio(&ratio.ratio) == wanted;
    let how_many = |wanted| ratios.iter().filter(is(wanted)).count();
    let cases = units::of(ratios.len() as u64, "case");
    let open = match how_many(Verdict::TooFew) {
        0 => String::new(),
        all if all == ratios.len() => {
            return format!(
                "There are too few rounds to tell whether {ours} is faster than {theirs} in any of {cases}."
            );
        }
        some => format!("; {some} had too few rounds to tell"),
    };
    format!(
        "Of {cases}, {ours} is faster than {theirs} in {} and slower in {}; no difference was seen in {}{open}.",
        how_many(Verdict::Less),
        how_many(Verdict::More),
        how_many(Verdict::Same),
    )
}

/// Names every case with its ratio.
fn named(ratios: &[Ratio<'_>], ours: &str, theirs: &str) -> String {
    let mut workers: Vec<usize> = ratios.iter().filter_map(|ratio| ratio.case.workers).collect();
    workers.dedup();
    let (before, one_number) = match workers[..] {
        [workers] => (format!("With {}, ", units::of(workers as u64, "worker")), true),
        _ => (String::new(), false),
    };
    let parts: Vec<String> = ratios
        .iter()
        .enumerate()
        .map(|(place, ratio)| {
            let case = if one_number { ratio.case.family.clone() } else { ratio.case.phrase() };
            let median = ratio.ratio.median;
            // Named only once.
            let whose = if place == 0 {
                format!(" {} {theirs}’s time", of(median))
            } else {
                String::new()
            };
            format!("{median:.2}{whose} on {case}")
        })
        .collect();
    format!("{before}{ours} takes {}.", units::list(&parts))
}

/// Returns the word between a ratio and its reference: `0.90 of`, `1.90 times`.
fn of(ratio: f64) -> &'static str {
    if ratio < 1.0 { "of" } else { "times" }
}

/// Returns the sentence about the cases in which heist is slower than any other peer, the worst first. If
/// there are too few rounds, it names the worst so far.
fn losses(cases: &[Case<'_>]) -> String {
    let all = comparisons(cases);
    let lost: Vec<_> = all.iter().filter(|comparison| comparison.is_lost()).collect();
    // Name only the worst comparison of each case.
    let first = |place: usize| lost[..place].iter().all(|loss| loss.what != lost[place].what);
    let named = (0..lost.len()).filter(|&place| first(place)).take(LOSSES);
    let named: Vec<String> = named.map(|place| loss_in_words(lost[place])).collect();
    let most = if lost.len() > named.len() { ", most of all in" } else { ":" };
    match &all[..] {
        [] => String::new(),
        [worst, ..] if lost.is_empty() && all.iter().any(Comparison::is_undecided) => {
            let worst = loss_in_words(worst);
            format!("Losses need more rounds to be certain; the worst so far: {worst}.")
        }
        _ if lost.is_empty() => "It is nowhere slower beyond the noise.".into(),
        _ => format!(
            "It is slower in {} of {}{most} {}.",
            lost.len(),
            units::of(all.len() as u64, "comparison"),
            units::list(&named)
        ),
    }
}

/// `duel/skewed with 2 workers (1.90 times rayon’s time)`.
fn loss_in_words(loss: &Comparison<'_>) -> String {
    let own = if is_ours(loss.than) { "our own " } else { "" };
    let median = loss.ratio.median;
    format!("{} ({median:.2} {} {own}{}’s time)", loss.what, of(median), loss.than)
}

/// Returns a warning if there are too few rounds.
fn few_rounds(ratios: &[Ratio<'_>]) -> &'static str {
    if ratios.iter().any(|ratio| ratio.ratio.ends == Ends::Extremes) {
        "With fewer than six rounds there is no 95 % interval, and none of this is certain."
    } else {
        ""
    }
}

fn tile(ratio: &Ratio<'_>) -> String {
    let Interval { median, low, high, ends } = ratio.ratio;
    let (class, said) = match verdict::of_ratio(&ratio.ratio) {
        Verdict::Less => ("faster", "faster"),
        Verdict::More => ("slower", "slower"),
        Verdict::Same => ("same", "no difference seen"),
        Verdict::TooFew => ("same", "too few rounds to tell"),
    };
    format!(
        "<li class=\"tile {class}\"><span class=\"case\">{}</span><span class=\"big\">{median:.2}</span>\
         <span class=\"of\">{} {}’s time: {said}</span><span class=\"range\">{} {low:.2} to {high:.2}</span></li>\n",
        text(&ratio.case.name()),
        of(median),
        text(ratio.theirs),
        // The full words do not fit into a tile.
        if ends == Ends::Confident { "95 %:" } else { "all rounds:" },
    )
}

#[cfg(test)]
mod tests {
    use heist_bench::record::{Machine, Series};

    use super::*;

    /// Returns a series with enough rounds for a 95 % interval.
    fn series(case: &str, workers: usize, by: &str, time: f64) -> Series {
        Series {
            workload: "duel".into(),
            case: format!("{case}/{workers}"),
            workers: Some(workers),
            by: by.into(),
            values: [("nanoseconds".into(), vec![time; 6])].into(),
            ..Series::default()
        }
    }

    fn said(samples: Vec<Series>) -> String {
        let machine = Machine { cores: 4, ..Machine::default() };
        let shown = headline(&Record { samples, machine, ..Record::default() });
        let sentence = shown.strip_prefix("<p class=\"headline\">").unwrap();
        sentence.split_once("</p>").unwrap().0.to_owned()
    }

    #[test]
    fn the_case_with_as_many_workers_as_cores_represents_its_family() {
        let mut samples = Vec::new();
        for (workers, ours) in [(1, 150.0), (4, 50.0), (8, 20.0)] {
            samples.push(series("skewed", workers, "heist", ours));
            samples.push(series("skewed", workers, "rayon", 100.0));
        }
        let expected = "With 4 workers, heist takes 0.50 of rayon’s time on duel/skewed. \
                        It is slower in 1 of 3 comparisons: duel/skewed with 1 worker (1.50 times rayon’s time).";
        assert_eq!(said(samples), expected);
    }

    #[test]
    fn a_loss_to_our_own_strategy_is_marked() {
        let samples = vec![
            series("a", 2, "heist", 10.0),
            series("a", 2, "heist-global", 8.0),
            series("a", 2, "rayon", 20.0),
        ];
        let expected = "It is slower in 1 of 2 comparisons: duel/a with 2 workers (1.25 times our own heist-global’s time).";
        assert!(said(samples).ends_with(expected));
    }

    #[test]
    fn a_case_lost_to_several_peers_is_named_once() {
        let samples = vec![
            series("a", 2, "heist", 30.0),
            series("a", 2, "rayon", 20.0),
            series("a", 2, "tokio", 10.0),
        ];
        let expected = "It is slower in 2 of 2 comparisons, most of all in duel/a with 2 workers (3.00 times tokio’s time).";
        assert!(said(samples).ends_with(expected));
    }

    #[test]
    fn many_cases_are_counted() {
        let cases = ["a", "b", "c", "d", "e"];
        let samples = cases.iter().flat_map(|case| {
            [
                series(case, 2, "heist", 1.0),
                series(case, 2, "rayon", if *case == "e" { 1.0 } else { 2.0 }),
            ]
        });
        let expected = "Of 5 cases, heist is faster than rayon in 4 and slower in 0; no difference was seen in 1. \
                        It is nowhere slower beyond the noise.";
        assert_eq!(said(samples.collect()), expected);
    }

    #[test]
    fn few_rounds_are_uncertain() {
        for rounds in 1..6 {
            let mut samples = vec![series("a", 2, "heist", 3.0), series("a", 2, "rayon", 2.0)];
            few(&mut samples, rounds);
            let expected = "With 2 workers, heist takes 1.50 times rayon’s time on duel/a. Losses need more rounds to be certain; \
                            the worst so far: duel/a with 2 workers (1.50 times rayon’s time). \
                            With fewer than six rounds there is no 95 % interval, and none of this is certain.";
            assert_eq!(said(samples), expected);
        }
    }

    fn few(samples: &mut [Series], rounds: usize) {
        let values = samples.iter_mut().flat_map(|series| series.values.values_mut());
        values.for_each(|values| values.truncate(rounds));
    }

    #[test]
    fn cases_with_few_rounds_are_counted_as_such() {
        let pair = |case: &&str| [series(case, 2, "heist", 1.0), series(case, 2, "rayon", 2.0)];
        let mut samples: Vec<Series> = ["a", "b", "c", "d", "e"].iter().flat_map(pair).collect();
        few(&mut samples[..2], 5);
        let some =
            "in 4 and slower in 0; no difference was seen in 0; 1 had too few rounds to tell. ";
        assert!(said(samples.clone()).contains(some), "{}", said(samples));
        few(&mut samples, 5);
        let all = "There are too few rounds to tell whether heist is faster than rayon in any of 5 cases. Losses";
        assert!(said(samples.clone()).starts_with(all), "{}", said(samples));
    }

    #[test]
    fn a_tile_of_few_rounds_has_no_verdict() {
        let mut samples = vec![series("a", 2, "heist", 1.0), series("a", 2, "rayon", 2.0)];
        few(&mut samples, 5);
        let shown = headline(&Record { samples, ..Record::default() });
        assert!(shown.contains("tile same") && shown.contains("too few rounds to tell"), "{shown}");
    }

    #[test]
    fn caveats_come_first() {
        let (optimized, complete) = (Some(false), Some(false));
        let shown = headline(&Record { optimized, complete, ..Record::default() });
        let expected = "<p class=\"beware\">This file is of a debug build, whose times say nothing. \
                        This file is of a run that was cut short.</p>\n<p class=\"headline\">";
        assert!(shown.starts_with(expected), "{shown}");
    }

    #[test]
    fn a_single_peer_is_not_compared() {
        let alone = said(vec![series("a", 2, "heist", 1.0)]);
        assert_eq!(alone, "No case of this file has another peer to compare with.");
    }
}
