//! The tables of the result, which adapt to the width of the terminal.

use heist_bench::stats::{Ends, Interval};

use super::results::{Case, Metric, Score};
use super::text;
use crate::style::Paint;
use crate::units;
use crate::verdict::{self, Verdict};

/// The width of the indentation, the name, the median, the interval and two ratios.
const WITHOUT_BARS: usize = 58;

/// A shorter bar would show nothing.
const SHORTEST_BAR: usize = 8;
const LONGEST_BAR: usize = 30;

/// Returns the table of the times of all peers in a case.
pub(super) fn work_table(case: &Case<'_>, width: usize, paint: Paint) -> String {
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

/// Returns the table of the latencies of all peers. `questions` is the number of answers per round.
pub(super) fn latency_table(
    case: &Case<'_>,
    questions: Option<u64>,
    width: usize,
    paint: Paint,
) -> String {
    let headings = format!("{:16}{:>8}{:>9}{:>11}{:>9}", "", "p50", "/ rayon", "p99", "/ rayon");
    let mut table = format!("{}{}\n", title(case, width, paint), paint.dim(headings));
    for (half, most) in case.scores(Metric::P50).iter().zip(case.scores(Metric::P99)) {
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
    // The p99 of so few answers is nearly the maximum.
    if let Some(few) = questions.filter(|&questions| questions <= 100) {
        let note = format!("  p99 of {} per round: nearly the slowest", units::of(few, "answer"));
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
    if score.by == text::WORK_STEALING { paint.bold(name).to_string() } else { name }
}

/// Formats a ratio: green below 1 and red above, but only beyond the noise.
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
    use super::super::fixture::all_wins;
    use super::super::results::Results;
    use super::*;
    use crate::style;
    use heist_bench::stats::interval;

    fn tables(width: usize) -> String {
        let record = all_wins();
        let results = Results::of(&record);
        let paint = style::plain();
        let work: Vec<_> = results.with(2).map(|case| work_table(case, width, paint)).collect();
        work.concat() + &latency_table(results.latency().unwrap(), results.questions, width, paint)
    }

    #[test]
    fn narrow_tables_have_no_bars() {
        let found = tables(60);
        assert!(found.lines().all(|line| line.chars().count() <= 60), "{found}");
        assert!(!found.contains('█'), "{found}");
        assert!(
            found.contains("  work stealing   103 ns  100 – 106          0.51     0.26\n"),
            "{found}"
        );
    }

    #[test]
    fn wide_tables_have_bars() {
        for width in [70, 80, 100] {
            let found = tables(width);
            assert!(found.lines().all(|line| line.chars().count() <= width), "{width}: {found}");
            assert!(found.contains(&"█".repeat((width - 60).min(30))), "{found}");
        }
    }

    #[test]
    fn no_peer_is_compared_with_itself() {
        let found = tables(60);
        let rayon = found.lines().find(|line| line.contains("rayon  ")).unwrap();
        assert_eq!(rayon.split_whitespace().last(), Some("0.50"), "{rayon}");
    }

    #[test]
    fn only_certain_differences_have_colours() {
        let of =
            |value: f64, rounds| ratio(Some(interval(vec![value; rounds])), style::painted(), 4);
        assert_eq!([of(0.5, 5), of(2.0, 5), of(1.0, 6)], ["0.50", "2.00", "1.00"]);
        assert_ne!([of(0.5, 6), of(2.0, 6)], ["0.50", "2.00"]);
    }

    #[test]
    fn latencies_have_percentiles() {
        let found = tables(80);
        assert!(found.contains("p50") && found.contains("9.00 µs"), "{found}");
        assert!(found.contains("p99") && found.contains("20.0 µs"), "{found}");
        assert!(
            found.ends_with("\n  p99 of 50 answers per round: nearly the slowest\n"),
            "{found}"
        );
    }
}
