//! The timeline: when each thread ran tasks, slept, and stole.

use heist_bench::record::{Lane, Traced};

use super::scale::{Detail, Scale};
use super::{lane_name, lost};
use crate::commands::report::html::Table;
use crate::commands::report::svg::{Chart, across, anchor, label, named};
use crate::units;

/// The height of a thread's bar.
const BAR: u32 = 18;
/// The distance between the bars of two threads, including their text.
const PITCH: u32 = 48;
/// The distance from the text of a thread to its bar.
const WORDS: u32 = 23;
/// The length of a mark for a steal.
const PIN: u32 = 10;
/// Lines between thief and victim are drawn if no more than this are visible.
const LINES: usize = 60;
/// The number of intervals of the axis.
const TICKS: u32 = 4;

/// Returns the timeline of a trace, with the controls to zoom.
pub(super) fn timeline(traced: &Traced, number: usize, detail: Detail) -> String {
    let scale = Scale::new(traced, detail);
    let lanes = traced.lanes.len() as u32;
    let few = traced.lanes.iter().map(|lane| lane.steals.len()).sum::<usize>() <= LINES;
    let names: Vec<String> =
        traced.lanes.iter().enumerate().map(|(place, lane)| lane_name(lane, place)).collect();
    let words: Vec<String> =
        traced.lanes.iter().map(|lane| words(lane, scale.nanoseconds)).collect();
    let said: Vec<String> =
        names.iter().zip(&words).map(|(name, words)| format!("{name}: {words}.")).collect();
    let chart = Chart {
        kind: "timeline",
        id: format!("timeline-{number}"),
        title: format!(
            "What {} did in {}",
            units::of(traced.workers as u64, "worker"),
            units::time(scale.nanoseconds as f64)
        ),
        description: said.join(" "),
        height: lanes * PITCH + 26,
        marks: marks(traced, &scale, &names, &words),
    };
    format!(
        "<figure class=\"card whole\"><figcaption><h4>Timeline</h4><span class=\"quiet\">from left to right, {}{}</span></figcaption>\n{KEYS}\
         <div class=\"timeline{}\" data-span=\"{}\" data-pitch=\"{PITCH}\" data-lines=\"{LINES}\" aria-describedby=\"hint-{number}\">\n{}</div>\n\
         <p class=\"zoom\" hidden><span id=\"hint-{number}\">Drag, pinch, or use the arrow keys: up and down to zoom, left and right to move, Home to reset.</span>\
         <span class=\"buttons\"><button type=\"button\" data-zoom=\"in\" aria-label=\"Zoom in\">+</button>\
         <button type=\"button\" data-zoom=\"out\" aria-label=\"Zoom out\">−</button><button type=\"button\" data-zoom=\"all\">All</button><output></output></span></p>\n{}{}</figure>\n",
        if lost(traced) > 0 { "the last " } else { "" },
        units::time(scale.nanoseconds as f64),
        if few { " close" } else { "" },
        scale.nanoseconds,
        chart.wide(),
        not_shown(traced),
        table(traced, &scale).collapsed(),
    )
}

/// The legend.
const KEYS: &str = "<ul class=\"keys\" aria-hidden=\"true\">\
    <li><svg class=\"key\" width=\"22\" height=\"14\"><path class=\"busy\" d=\"M0 7h22\" stroke-width=\"14\"/></svg>runs tasks</li>\
    <li><svg class=\"key\" width=\"22\" height=\"14\"><rect class=\"track\" width=\"22\" height=\"14\"/></svg>searches for work</li>\
    <li><svg class=\"key\" width=\"22\" height=\"14\"><rect class=\"track\" width=\"22\" height=\"14\"/><path class=\"asleep\" d=\"M0 7h22\"/></svg>sleeps</li>\
    <li><svg class=\"key\" width=\"22\" height=\"14\"><path class=\"steal\" d=\"M11 0v14\"/></svg>steals; when zoomed in, with a line to the victim</li></ul>\n";

fn marks(traced: &Traced, scale: &Scale, names: &[String], words: &[String]) -> String {
    let height = traced.lanes.len() as u32 * PITCH;
    let mut labels = String::new();
    let mut tracks = String::new();
    let mut inside = String::new();
    for (place, lane) in traced.lanes.iter().enumerate() {
        let top = place as u32 * PITCH;
        let middle = middle(place);
        labels.push_str(&named(top + 14, &names[place]));
        labels.push_str(&label("value", "100%", top + 14, "end", &words[place]));
        tracks.push_str(&format!(
            "<rect class=\"track\" y=\"{}\" width=\"100%\" height=\"{BAR}\" rx=\"2\"/>\n",
            top + WORDS
        ));
        inside.push_str(&format!(
            "<g data-lane=\"{place}\"><path class=\"busy\" stroke-width=\"{BAR}\" d=\"{}\"/><path class=\"asleep\" d=\"{}\"/>",
            scale.path(&lane.busy, middle),
            scale.path(&lane.asleep, middle),
        ));
        let (pins, lines) = steals(lane, place, traced.lanes.len(), scale);
        inside.push_str(&format!(
            "<path class=\"from\" d=\"{lines}\"/><path class=\"steal\" d=\"{pins}\"/></g>\n"
        ));
    }
    // Text is drawn last, over the lines.
    format!(
        "{tracks}<svg class=\"plane\" width=\"100%\" height=\"{height}\" viewBox=\"0 0 {} {height}\" preserveAspectRatio=\"none\">{inside}</svg>\n{labels}{}",
        scale.columns,
        axis(scale, height),
    )
}

/// Returns the vertical centre of a thread's bar.
fn middle(place: usize) -> u32 {
    place as u32 * PITCH + WORDS + BAR / 2
}

/// Returns the marks on the thief's bar, and the lines to the victim's bar. Steals from one victim within one
/// column are drawn once.
fn steals(lane: &Lane, place: usize, lanes: usize, scale: &Scale) -> (String, String) {
    let most = scale.columns as usize / 4;
    let mut seen: Vec<(u32, usize)> =
        lane.steals.iter().map(|&(when, victim, _)| (scale.place(when) as u32, victim)).collect();
    seen.sort_unstable();
    seen.dedup();
    // If there are too many, draw only every second or third.
    let step = seen.len().div_ceil(most).max(1);
    let (mut pins, mut lines) = (String::new(), String::new());
    for &(x, victim) in seen.iter().step_by(step) {
        pins.push_str(&format!("M{x} {}v{PIN}", middle(place) - BAR / 2 - PIN / 2));
        if victim < lanes && victim != place {
            lines.push_str(&format!("M{x} {}V{}", middle(victim), middle(place)));
        }
    }
    (pins, lines)
}

fn axis(scale: &Scale, height: u32) -> String {
    (0..=TICKS)
        .map(|tick| {
            let place = f64::from(tick) / f64::from(TICKS);
            let time = units::time(scale.nanoseconds as f64 * place);
            format!(
                "<line class=\"grid\" x1=\"{0}\" x2=\"{0}\" y1=\"{height}\" y2=\"{1}\"/>{2}\n",
                across(place),
                height + 6,
                label(
                    if tick % 2 == 0 { "axis" } else { "axis between" },
                    &across(place),
                    height + 20,
                    anchor(place),
                    &time
                )
            )
        })
        .collect()
}

fn words(lane: &Lane, nanoseconds: u64) -> String {
    let totals = lane.totals();
    format!(
        "{} busy · {} · {}",
        units::percent(totals.busy as f64, nanoseconds as f64),
        units::of(lane.tasks, "task"),
        units::of(totals.stole(), "steal"),
    )
}

fn not_shown(traced: &Traced) -> String {
    match lost(traced) {
        0 => String::new(),
        lost => format!(
            "<p class=\"quiet\">Not shown: {} that newer events have replaced.</p>\n",
            units::of(lost, "event")
        ),
    }
}

fn table(traced: &Traced, scale: &Scale) -> Table {
    let mut table = Table::new(
        "what each thread did",
        &["thread", "busy", "asleep", "tasks", "steals", "events dropped"],
    );
    for (place, lane) in traced.lanes.iter().enumerate() {
        let totals = lane.totals();
        table.rows.push(vec![
            lane_name(lane, place),
            units::percent(totals.busy as f64, scale.nanoseconds as f64),
            units::percent(totals.asleep as f64, scale.nanoseconds as f64),
            units::count(lane.tasks),
            units::count(totals.stole()),
            units::count(lane.lost),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steal_from_an_unknown_thread_has_no_line() {
        let scale = Scale { columns: 100, nanoseconds: 1_000 };
        let lane = Lane { steals: vec![(10, 9, 1), (10, 9, 1), (20, 1, 3)], ..Lane::default() };
        let (pins, lines) = steals(&lane, 0, 2, &scale);
        assert_eq!((&*pins, &*lines), ("M1 18v10M2 18v10", "M2 80V32"));
    }
}
