//! Text, bars and lines, and the names of the peers.

use std::borrow::Cow;

use textwrap::{Options, WordSplitter};

use crate::units;

/// The peers in the order of the tables: the name in the samples, and the name that is shown.
pub(super) const NAMES: [(&str, &str); 4] = [
    (WORK_STEALING, "work stealing"),
    ("heist-locked", "locked deques"),
    (GLOBAL_QUEUE, "global queue"),
    (RAYON, "rayon"),
];

/// heist with its default strategy.
pub(super) const WORK_STEALING: &str = "heist";
/// heist with one queue for all workers.
pub(super) const GLOBAL_QUEUE: &str = "heist-global";
/// The best-known peer.
pub(super) const RAYON: &str = "rayon";

/// Returns the name that is shown.
pub(super) fn shown(by: &str) -> &str {
    NAMES.iter().find(|(name, _)| *name == by).map_or(by, |(_, shown)| shown)
}

/// Returns the name that is shown, for use within a sentence.
pub(super) fn with_article(by: &str) -> String {
    let article = if by.starts_with("heist-") { "the " } else { "" };
    format!("{article}{}", shown(by))
}

/// Formats a rate: `950`, `1.20 k`, `34.5 M`.
pub(super) fn rate(value: f64) -> String {
    match value {
        ..999.5 => format!("{value:.0}"),
        ..999.5e3 => units::digits(value / 1e3) + " k",
        ..999.5e6 => units::digits(value / 1e6) + " M",
        _ => units::digits(value / 1e9) + " G",
    }
}

/// Returns the title of a case. The workload and the number of workers come first, because the end may be cut
/// off.
pub(super) fn headline(workload: &str, workers: Option<usize>, title: &str) -> String {
    let Some(workers) = workers.map(|count| units::of(count as u64, "worker")) else {
        return format!("{workload}: {title}");
    };
    let title = title.strip_suffix(&format!(", {workers}")).unwrap_or(title);
    format!("{workload}, {workers}: {title}")
}

/// Returns a bar of a fraction of a width, in steps of an eighth of a column. It is never empty.
pub(super) fn bar(fraction: f64, width: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (fraction.clamp(0.0, 1.0) * width as f64 * 8.0).round().max(1.0) as usize;
    "█".repeat(eighths / 8) + PARTS[eighths % 8]
}

/// Cuts a text to a width, and marks the cut with an ellipsis.
pub(super) fn fit(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// Returns a label and a text in lines of at most `width` columns; further lines are indented below the text.
/// `seen` is the visible width of the label, which may contain colours.
pub(super) fn labelled(label: &str, seen: usize, text: &str, width: usize) -> String {
    let lines = lines(text, width.saturating_sub(seen + 1));
    let indent = format!("\n{:seen$} ", "");
    format!("{label} {}\n", lines.join(&indent))
}

/// Breaks a text into lines of at most `width` columns. A longer word has a line of its own.
pub(super) fn lines(text: &str, width: usize) -> Vec<Cow<'_, str>> {
    let options = Options::new(width).break_words(false);
    textwrap::wrap(text, options.word_splitter(WordSplitter::NoHyphenation))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_short() {
        assert_eq!(rate(0.0), "0");
        assert_eq!(rate(950.0), "950");
        assert_eq!(rate(999.7), "1.00 k");
        assert_eq!(rate(34_500_000.0), "34.5 M");
        assert_eq!(rate(2e9), "2.00 G");
    }

    #[test]
    fn bars_have_eighths_and_are_never_empty() {
        assert_eq!(bar(1.0, 3), "███");
        assert_eq!(bar(0.5, 3), "█▌");
        assert_eq!(bar(0.0, 3), "▏");
        assert_eq!(bar(2.0, 2), "██");
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(fit("locked", 6), "locked");
        assert_eq!(fit("locked", 4), "loc…");
        assert_eq!(fit("µµµ", 3), "µµµ");
    }

    #[test]
    fn workload_and_workers_come_first() {
        let title = "many tasks, 2 workers";
        assert_eq!(headline("skewed", Some(2), title), "skewed, 2 workers: many tasks");
        assert_eq!(headline("latency", None, "questions"), "latency: questions");
    }

    #[test]
    fn strategies_have_their_own_names_and_other_peers_keep_theirs() {
        let strategies = NAMES[..3].iter().map(|(_, shown)| shown.to_string());
        assert_eq!(strategies.collect::<Vec<_>>(), heist::Strategy::ALL.map(|of| of.to_string()));
        assert_eq!((shown("heist"), shown("tokio")), ("work stealing", "tokio"));
    }
}
