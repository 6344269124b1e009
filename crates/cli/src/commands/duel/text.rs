//! Words, bars and lines, and the names of those who take part.

use std::borrow::Cow;

use textwrap::{Options, WordSplitter};

use crate::units;

/// Who takes part, in the order of the tables: the name in the samples, and the one that is shown.
pub(super) const NAMES: [(&str, &str); 4] = [
    (STEALING, "work stealing"),
    ("heist-locked", "locked deques"),
    (GLOBAL, "global queue"),
    (RAYON, "rayon"),
];

/// Whom all this is about.
pub(super) const STEALING: &str = "heist";
/// What a pool without deques does.
pub(super) const GLOBAL: &str = "heist-global";
/// Whom everybody knows.
pub(super) const RAYON: &str = "rayon";

/// The name that is shown.
pub(super) fn shown(by: &str) -> &str {
    NAMES.iter().find(|(name, _)| *name == by).map_or(by, |(_, shown)| shown)
}

/// The same within a sentence.
pub(super) fn with_article(by: &str) -> String {
    let article = if by.starts_with("heist-") { "the " } else { "" };
    format!("{article}{}", shown(by))
}

/// A rate, short: `950`, `1.20 k`, `34.5 M`.
pub(super) fn rate(value: f64) -> String {
    match value {
        ..999.5 => format!("{value:.0}"),
        ..999.5e3 => units::digits(value / 1e3) + " k",
        ..999.5e6 => units::digits(value / 1e6) + " M",
        _ => units::digits(value / 1e9) + " G",
    }
}

/// A case in words, with what tells it apart in front: titles end with the number of workers, where they may be cut off.
pub(super) fn headline(workload: &str, workers: Option<usize>, title: &str) -> String {
    let Some(workers) = workers.map(|count| units::of(count as u64, "worker")) else {
        return format!("{workload}: {title}");
    };
    let title = title.strip_suffix(&format!(", {workers}")).unwrap_or(title);
    format!("{workload}, {workers}: {title}")
}

/// How much of a width a fraction of it is, in eighths of a column; at least one of them.
pub(super) fn bar(fraction: f64, width: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (fraction.clamp(0.0, 1.0) * width as f64 * 8.0).round().max(1.0) as usize;
    "█".repeat(eighths / 8) + PARTS[eighths % 8]
}

/// A text that is no wider than that; what is cut off is shown as an ellipsis.
pub(super) fn fit(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// A label and a text, in lines of at most that width, all but the label below each other. How wide the label is when it is seen
/// is said, for it may have colours.
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
    fn bars_have_eighths_and_never_vanish() {
        assert_eq!(bar(1.0, 3), "███");
        assert_eq!(bar(0.5, 3), "█▌");
        assert_eq!(bar(0.0, 3), "▏");
        assert_eq!(bar(2.0, 2), "██");
    }

    #[test]
    fn what_is_too_wide_is_cut() {
        assert_eq!(fit("locked", 6), "locked");
        assert_eq!(fit("locked", 4), "loc…");
        assert_eq!(fit("µµµ", 3), "µµµ");
    }

    #[test]
    fn what_tells_cases_apart_comes_first() {
        let title = "many tasks, 2 workers";
        assert_eq!(headline("skewed", Some(2), title), "skewed, 2 workers: many tasks");
        assert_eq!(headline("latency", None, "questions"), "latency: questions");
    }

    #[test]
    fn whoever_has_no_name_here_keeps_its_own() {
        assert_eq!((shown("heist"), shown("tokio")), ("work stealing", "tokio"));
    }
}
