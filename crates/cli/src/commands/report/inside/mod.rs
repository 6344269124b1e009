//! The activity of the workers in a traced run. The script shows one trace at a time; without it, all are
//! shown.

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

/// The maximum number of traces. More would make the page too large to be useful.
const TRACES: usize = 12;

/// Returns the section.
pub(super) fn inside(record: &Record) -> String {
    let lead = "An additional run of a case that was traced instead of measured. The trace has the start and end of every task, every \
                steal and every sleep.";
    section("inside", "Inside one run", lead, &body(record))
}

fn body(record: &Record) -> String {
    let all: Vec<&Traced> =
        record.traces.iter().filter(|traced| !traced.lanes.is_empty()).collect();
    if all.is_empty() {
        let what = "This file has no trace of a run, so there is no timeline, no steal graph, no distribution of tasks and no task times. \
                    To record some:";
        return missing(what, &format!("{} bench duel --json FILE", record.program()));
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
        "<p class=\"choose\" hidden><label for=\"choice\">Run</label> <select id=\"choice\">{choices}</select></p>\n{traces}{left_out}"
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

/// Returns the name of a thread, or its number if it has none.
fn lane_name(lane: &Lane, place: usize) -> String {
    if lane.name.is_empty() { format!("thread {place}") } else { lane.name.clone() }
}

/// Returns the part of the run that the tasks are from. `None` if it is the whole run.
fn part(traced: &Traced) -> Option<String> {
    let known = traced.lanes.iter().all(|lane| lane.totals.is_some());
    (lost(traced) > 0).then(|| match known {
        true => format!(
            "in the last {} of the run; earlier events were dropped",
            units::time(traced.nanoseconds as f64)
        ),
        // Records without totals: a thread that kept more events seems to have done more.
        false => "whose events were kept, which is another period for each thread".into(),
    })
}

/// Returns the number of events that were dropped.
fn lost(traced: &Traced) -> u64 {
    traced.lanes.iter().fold(0, |sum, lane| sum.saturating_add(lane.lost))
}

/// Returns a chart with its heading.
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
    fn numbers_come_from_the_totals() {
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

    #[test]
    fn dropped_events_are_mentioned_with_the_task_counts() {
        let traced = |lost, totals: Option<Totals>| {
            let lane = Lane { tasks: 7, lost, totals, ..Lane::default() };
            let task_times = vec![(10, 6)];
            Traced { nanoseconds: 2_000, lanes: vec![lane], task_times, ..Traced::default() }
        };
        let shown = |traced| of_trace(&traced, 0, Detail::for_lanes(1));
        let known = shown(traced(3, Some(Totals::default())));
        for part in [
            "from left to right, the last 2.00 µs",
            "7 tasks in the last 2.00 µs of the run; earlier events were dropped; the dashed",
            "6 tasks in the last 2.00 µs of the run; earlier events were dropped: p50",
        ] {
            assert!(known.contains(part), "{part} is not in {known}");
        }
        let old = shown(traced(3, None));
        assert!(old.contains("7 tasks whose events were kept, which is another period"), "{old}");
        let all = shown(traced(0, Some(Totals::default())));
        assert!(
            all.contains("7 tasks in all; the dashed") && all.contains("6 tasks: p50"),
            "{all}"
        );
        assert!(all.contains("from left to right, 2.00 µs"), "{all}");
    }
}
