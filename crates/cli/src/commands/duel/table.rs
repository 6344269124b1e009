//! The tables of the result: as wide as the terminal, and narrow where that is.

use heist_bench::stats::{Ends, Interval};

use super::results::{Case, Metric, Score};
use super::text;
use crate::style::Paint;
use crate::units;
use crate::verdict::{self, Verdict};

/// Two columns of space, the name, the median, the interval and two ratios.
const WITHOUT_BARS: usize = 58;

/// No narrower bar is worth looking at.
const SHORTEST_BAR: usize = 8;
const LONGEST_BAR: usize = 30;

/// Everyone's time in a case.
pub(super) fn of_work(case: &Case<'_>, width: usize, paint: Paint) -> String {
    let scores = case.scores(Metric::Time);
    let longest = scores.iter().map(|score| score.value.median).fold(0.0, f64::max);
    let room = width.saturating_sub(WITHOUT_BARS + 2);
    let room = if room < SHORTEST_BAR { 0 } else { room.min(LONGEST_BAR) };
    let mut table = title(case, width, paint) + &headings(scores.first(), paint);
    for score in &scores {
        let mut line = line(score, paint);
        if room > 0 {
            let bar = text::bar(score.value.median / longest, room);
            line += &format!("  {}", paint.dim(bar));
        }
        table += line.trim_end();
        table.push('\n');
    }
    table
}

/// How long everyone's answers took, of which so many were waited for in every round.
pub(super) fn of_answers(
    case: &Case<'_>,
    questions: Option<u64>,
    width: usize,
    paint: Paint,
) -> String {
    let headings = format!("{:16}{:>8}{:>9}{:>11}{:>9}", "", "p50", "/ rayon", "p99", "/ rayon");
    let mut table = format!("{}{}\n", title(case, width, paint), paint.dim(headings));
    for (half, most) in case.scores(Metric::Half).iter().zip(case.scores(Metric::Most)) {
        let line = format!(
            "{}{:>8}{}{:>11}{}",
            name(half, paint),
            units::time(half.value.median),
            ratio(half.to_rayon, paint, 9),
            units::time(most.value.median),
            ratio(most.to_rayon, paint, 9)
        );
        table += line.trim_end();
        table.push('\n');
    }
    // So few have no other.
    if let Some(few) = questions.filter(|&questions| questions <= 100) {
        let note = format!("  p99 of {} a round: nearly the slowest", units::of(few, "question"));
        table += &format!("{}\n", paint.dim(note));
    }
    table
}

fn title(case: &Case<'_>, width: usize, paint: Paint) -> String {
    let title = text::headline(case.workload(), case.0.workers, case.0.title);
    format!("{}\n", paint.bold(text::fit(&title, width)))
}

fn headings(score: Option<&Score>, paint: Paint) -> String {
    let interval = match score.map(|score| score.value.ends) {
        Some(Ends::Confident) => "95 % interval",
        _ => "lowest, highest",
    };
    let line = format!("{:16}{:>8}  {interval:15}{:>8}{:>9}", "", "each", "/ rayon", "/ global");
    format!("{}\n", paint.dim(line))
}

fn line(score: &Score, paint: Paint) -> String {
    let Interval { median, low, high, .. } = score.value;
    let name = name(score, paint);
    let interval = format!("{} – {}", units::time_as(low, median), units::time_as(high, median));
    let rayon = ratio(score.to_rayon, paint, 8);
    let global = ratio(score.to_global, paint, 9);
    format!("{name}{:>8}  {interval:15}{rayon}{global}", units::time(median))
}

fn name(score: &Score, paint: Paint) -> String {
    let name = format!("  {:14}", text::shown(score.by));
    if score.by == text::STEALING { paint.bold(name).to_string() } else { name }
}

/// Green below 1 and red above, but only beyond the noise.
fn ratio(ratio: Option<Interval>, paint: Paint, width: usize) -> String {
    let Some(ratio) = ratio else { return format!("{:>width$}", "") };
    let shown = format!("{:>width$.2}", ratio.median);
    match verdict::of_ratio(&ratio) {
        Verdict::Less => paint.good(shown).to_string(),
        Verdict::More => paint.bad(shown).to_string(),
        Verdict::Same | Verdict::TooFew => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::triumph;
    use super::super::results::Results;
    use super::*;
    use crate::style;
    use heist_bench::stats::interval;

    fn tables(width: usize) -> String {
        let record = triumph();
        let results = Results::of(&record);
        let paint = style::plain();
        let work: Vec<_> = results.with(2).map(|case| of_work(case, width, paint)).collect();
        work.concat() + &of_answers(results.latency().unwrap(), results.questions, width, paint)
    }

    #[test]
    fn a_narrow_one_has_no_bars() {
        let found = tables(60);
        assert!(found.lines().all(|line| line.chars().count() <= 60), "{found}");
        assert!(!found.contains('█'), "{found}");
        assert!(
            found.contains("  work stealing   103 ns  100 – 106          0.51     0.26\n"),
            "{found}"
        );
    }

    #[test]
    fn a_wide_one_has_bars_up_to_the_longest() {
        for width in [70, 80, 100] {
            let found = tables(width);
            assert!(found.lines().all(|line| line.chars().count() <= width), "{width}: {found}");
            assert!(found.contains(&"█".repeat((width - 60).min(30))), "{found}");
        }
    }

    #[test]
    fn nobody_is_compared_with_itself() {
        let found = tables(60);
        let rayon = found.lines().find(|line| line.contains("rayon  ")).unwrap();
        assert_eq!(rayon.split_whitespace().last(), Some("0.50"), "{rayon}");
    }

    #[test]
    fn colours_are_for_what_is_sure() {
        let of =
            |value: f64, rounds| ratio(Some(interval(vec![value; rounds])), style::painted(), 4);
        assert_eq!([of(0.5, 5), of(2.0, 5), of(1.0, 6)], ["0.50", "2.00", "1.00"]);
        assert_ne!([of(0.5, 6), of(2.0, 6)], ["0.50", "2.00"]);
    }

    #[test]
    fn answers_have_their_percentiles() {
        let found = tables(80);
        assert!(found.contains("p50") && found.contains("9.00 µs"), "{found}");
        assert!(found.contains("p99") && found.contains("20.0 µs"), "{found}");
        assert!(
            found.ends_with("\n  p99 of 50 questions a round: nearly the slowest\n"),
            "{found}"
        );
    }
}
