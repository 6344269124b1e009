//! The final output: tables, scaling, losses, caveats, files, and what to run next.

use std::path::PathBuf;

use super::caveats::{Circumstances, caveats};
use super::files::Files;
use super::loss_line::loss_line;
use super::results::Results;
use super::{table, text};
use crate::style::Paint;
use crate::units;

/// Returns the results.
pub(super) fn of_results(
    results: &Results<'_>,
    circumstances: Circumstances,
    width: usize,
    paint: Paint,
) -> String {
    let rounds = units::of(results.rounds as u64, "round");
    let head = format!(
        "Medians of {rounds}, every result verified. Ratios are computed within a round; below 1 is faster."
    );
    let mut out = text::lines(&head, width).join("\n") + "\n\n";
    for case in results.with(results.workers()) {
        out += &table::work_table(case, width, paint);
        out.push('\n');
    }
    if let Some(case) = results.latency() {
        out += &table::latency_table(case, results.questions, width, paint);
        out.push('\n');
    }
    let mut say = |label: &str, line: &str| out += &text::labelled(label, LABEL, line, width);
    if let Some(scaling) = scaling(results) {
        say(&paint.bold(label("Scaling")).to_string(), &scaling);
    }
    say(&paint.bold(label("Losses")).to_string(), &loss_line(results));
    for caveat in caveats(results, circumstances) {
        say(&paint.bad(label("Caution")).to_string(), &caveat);
    }
    out
}

/// The width of the label at the beginning of a line.
const LABEL: usize = 8;

fn label(word: &str) -> String {
    format!("{word:LABEL$}")
}

/// Returns the line about the speed-ups.
fn scaling(results: &Results<'_>) -> Option<String> {
    let speed_ups = results.speed_ups();
    let workers = results.workers();
    let each = speed_ups.iter().map(|(workload, ratio)| format!("{workload} {:.2}", ratio.median));
    let list = each.collect::<Vec<_>>().join(", ");
    let line = format!("speed-up of work stealing with {workers} workers over one: {list}.");
    (!speed_ups.is_empty()).then_some(line)
}

/// Returns the list of files, and what to run next. `heist` is the command as the user calls it.
pub(super) fn of_files(files: &Files, heist: &str, width: usize, paint: Paint) -> String {
    let mut out = String::new();
    let mut file = |what: &str, path: &PathBuf, how: &str| {
        let path = format!("{:25}", path.display());
        let fits = LABEL + path.len() + how.len() + 2 <= width;
        let gap = if fits { " ".to_owned() } else { format!("\n{:LABEL$} ", "") };
        out += &format!("{} {path}{gap}{}\n", paint.bold(label(what)), paint.dim(how));
    };
    let open = if cfg!(target_os = "macos") {
        "open"
    } else if cfg!(windows) {
        "start"
    } else {
        "xdg-open"
    };
    if let Some(page) = &files.page {
        file("Page", page, &format!("{open} {}", page.display()));
    }
    if let Some(trace) = &files.trace {
        file("Trace", trace, "open it in https://ui.perfetto.dev");
    }
    if let Some(samples) = &files.samples {
        file("Samples", samples, "every sample, and the machine");
    }
    out += &format!("\n{}\n", paint.bold("Run next"));
    for (command, what) in NEXT {
        let command =
            format!("  {:room$}  ", format!("{heist} {command}"), room = heist.len() + 18);
        let what = text::fit(what, width.saturating_sub(command.len()));
        out += &format!("{command}{}\n", paint.dim(what));
    }
    out
}

/// Commands that a newcomer may want to run next.
const NEXT: [(&str, &str); 3] = [
    ("bench fib", "a fork at every call of fib"),
    ("trace duel/skewed", "what each worker did, and when"),
    ("topo", "the machine as the scheduler sees it"),
];

#[cfg(test)]
mod tests {
    use super::super::fixture::all_wins;
    use super::super::watcher::EndReason;
    use super::*;
    use crate::commands::report;
    use crate::style;

    const FINE: Circumstances =
        Circumstances { stop: EndReason::Finished, cases: 7, cores: 2, debug: false };

    fn all(width: usize) -> String {
        let record = all_wins();
        let written = Files {
            page: Some("target/heist/report.html".into()),
            trace: Some("target/heist/trace.json".into()),
            samples: Some("target/heist/duel.json".into()),
        };
        of_results(&Results::of(&record), FINE, width, style::plain())
            + &of_files(&written, "heist", width, style::plain())
    }

    #[test]
    fn no_line_is_wider_than_it_may_be() {
        for width in [60, 80, 100] {
            let found = all(width);
            assert!(found.lines().all(|line| line.chars().count() <= width), "{found}");
        }
    }

    /// The page shows them as `2.00×`.
    #[test]
    fn speed_ups_are_those_of_the_page() {
        let record = all_wins();
        let page = report::page(&record);
        let line = scaling(&Results::of(&record)).unwrap();
        let list = line.trim_end_matches('.').rsplit(": ").next().unwrap();
        for (workload, times) in list.split(", ").filter_map(|part| part.split_once(' ')) {
            let figure = page.split("<figure").find(|figure| {
                figure.contains("data-chart=\"scaling\"")
                    && figure.contains(&format!("duel/{workload}<"))
            });
            let figure = figure.unwrap_or_else(|| panic!("no scaling of {workload}"));
            assert!(figure.contains(&format!("heist <b>{times}×</b>")), "{times}: {figure}");
        }
    }

    #[test]
    fn it_has_all_parts() {
        let found = all(80);
        for part in [
            "Medians of 7 rounds",
            "Scaling  speed-up of work stealing with 2 workers over one: uniform",
            "Losses   none beyond the noise",
            "Page     target/heist/report.html",
            "https://ui.perfetto.dev",
            "heist trace duel/skewed  what each worker did",
        ] {
            assert!(found.contains(part), "{part}: {found}");
        }
    }
}
