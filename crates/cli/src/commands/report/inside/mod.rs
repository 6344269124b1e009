//! What the workers did in a run: when, whose tasks, how many, how long. One trace is shown at a time; all, where there is no script.

mod distribution;
mod graph;
mod scale;
mod steals;
mod task_times;
mod timeline;

use heist_bench::record::{Lane, Record, Traced};

use super::html::{missing, section, text};
use crate::units;
use scale::Detail;

/// More traces than this are left out: nobody would look at them, and the page must stay small.
const TRACES: usize = 12;

/// The section.
pub(super) fn inside(record: &Record) -> String {
    let lead = "One more run of a case, which was not measured, with every start and end of a task, every steal and every sleep \
                written down.";
    section("inside", "Inside one run", lead, &body(record))
}

fn body(record: &Record) -> String {
    let all: Vec<&Traced> =
        record.traces.iter().filter(|traced| !traced.lanes.is_empty()).collect();
    if all.is_empty() {
        let what = "This file has no trace of a run, so there is no timeline, no steal graph, no distribution of tasks and no task times. \
                    To record some:";
        return missing(what, "heist bench duel --json FILE");
    }
    let shown = &all[..all.len().min(TRACES)];
    let detail = Detail::for_lanes(shown.iter().map(|traced| traced.lanes.len()).sum());
    let choices: String = shown
        .iter()
        .enumerate()
        .map(|(number, traced)| {
            format!("<option value=\"{number}\">{}</option>", text(&name(traced)))
        })
        .collect();
    let traces: String =
        shown.iter().enumerate().map(|(number, traced)| of_trace(traced, number, detail)).collect();
    let left_out = match all.len() - shown.len() {
        0 => String::new(),
        many => format!(
            "<p>The file has {} more, which are not shown.</p>\n",
            units::of(many as u64, "trace")
        ),
    };
    format!(
        "<p class=\"choose\" hidden><label for=\"choice\">Which run</label> <select id=\"choice\">{choices}</select></p>\n{traces}{left_out}"
    )
}

fn of_trace(traced: &Traced, number: usize, detail: Detail) -> String {
    format!(
        "<div class=\"trace\" data-trace=\"{number}\">\n<h3>{}</h3>\n{}<div class=\"cards\">\n{}{}{}</div>\n</div>\n",
        text(&name(traced)),
        timeline::timeline(traced, number, detail),
        graph::graph(traced, number),
        distribution::distribution(traced, number),
        task_times::task_times(traced, number),
    )
}

fn name(traced: &Traced) -> String {
    format!("{}, {}, {}", traced.case, traced.by, units::of(traced.workers as u64, "worker"))
}

/// A lane's name, or its place if it has none.
fn lane_name(lane: &Lane, place: usize) -> String {
    if lane.name.is_empty() { format!("thread {place}") } else { lane.name.clone() }
}

/// A chart with its heading.
fn card(heading: &str, words: &str, body: &str) -> String {
    format!(
        "<figure class=\"card\"><figcaption><h4>{}</h4><span class=\"quiet\">{}</span></figcaption>\n{body}</figure>\n",
        text(heading),
        text(words)
    )
}

#[cfg(test)]
mod tests {
    use heist_bench::record::Totals;

    use super::*;

    #[test]
    fn numbers_are_those_that_were_counted_whatever_is_drawn() {
        let totals = Totals { busy: 250, asleep: 100, steals: vec![(1, 4_000, 4_100)] };
        let thief = Lane {
            tasks: 7,
            busy: vec![(0, 1_000)],
            steals: vec![(5, 1, 4_100)],
            totals: Some(totals),
            ..Lane::default()
        };
        let lanes = vec![thief, Lane::default()];
        let shown = of_trace(
            &Traced { nanoseconds: 1_000, lanes, ..Traced::default() },
            0,
            Detail::for_lanes(2),
        );
        for part in [
            "25 % busy · 7 tasks · 4,000 steals",
            "<td>25 %</td><td>10 %</td><td>7</td><td>4,000</td>",
            "thread 0 stole 4,000 times from thread 1: 4,100 tasks",
            "thread 0: 4,000 steals",
        ] {
            assert!(shown.contains(part), "{part} is not in {shown}");
        }
    }
}
