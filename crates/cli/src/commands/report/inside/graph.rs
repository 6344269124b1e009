//! The steal graph: threads on a ring, and arrows in the direction in which tasks moved. With many threads, a
//! matrix.

use std::f64::consts::TAU;

use heist_bench::record::{Lane, Traced};

use super::steals::{Stolen, pairs};
use super::{card, lane_name};
use crate::commands::report::html::Table;
use crate::commands::report::svg::{Chart, decimal, with_tooltip};
use crate::units;

/// The width and height of the chart.
const SIZE: f64 = 320.0;
/// The radius of the ring.
const RING_RADIUS: f64 = 122.0;
/// The radius of a thread on the ring.
const NODE_RADIUS: f64 = 22.0;
/// If there are more threads, a matrix is drawn.
const MAX_ON_RING: usize = 12;
/// The maximum number of pairs in the table.
const MAX_PAIRS: usize = 200;

/// Returns the chart of a trace.
pub(super) fn graph(traced: &Traced, number: usize) -> String {
    const HEADING: &str = "Steals between threads";
    let pairs = pairs(traced);
    let Some(busiest) = pairs.first() else {
        let why = "<p class=\"missing\">No thread stole in this run: every thread had work of its own, or took it from a shared queue.</p>\n";
        return card(HEADING, "", why);
    };
    let name = |place: usize| lane_name(&traced.lanes[place], place);
    let steals = pairs.iter().map(|pair| pair.steals).fold(0, u64::saturating_add);
    let chart = Chart {
        kind: "steals",
        id: format!("steals-{number}"),
        title: format!("{}, from victims to thieves", units::of(steals, "steal")),
        description: format!(
            "{} of {} threads stole. Most went from {} to {}: {}.",
            traced.lanes.iter().filter(|lane| lane.totals().stole() > 0).count(),
            traced.lanes.len(),
            name(busiest.victim),
            name(busiest.thief),
            units::of(busiest.steals, "steal"),
        ),
        height: SIZE as u32,
        marks: if traced.lanes.len() <= MAX_ON_RING {
            ring(traced, &pairs)
        } else {
            matrix(traced, &pairs)
        },
    };
    let words = if traced.lanes.len() <= MAX_ON_RING {
        "arrows point from the victim to the thief; thicker means more steals"
    } else {
        "one row per thief, one column per victim; darker means more steals"
    };
    card(
        HEADING,
        words,
        &format!("{}{}", chart.fixed(SIZE as u32), table(traced, &pairs).collapsed()),
    )
}

fn description_of(traced: &Traced, pair: &Stolen) -> String {
    let name = |place: usize| lane_name(&traced.lanes[place], place);
    let tasks = units::of(pair.tasks, "task");
    format!("{} stole {} from {}: {tasks}", name(pair.thief), times(pair.steals), name(pair.victim))
}

fn times(steals: u64) -> String {
    if steals == 1 { "once".into() } else { format!("{} times", units::count(steals)) }
}

/// Returns the position of a thread on the ring, clockwise from the top.
fn place(thread: usize, threads: usize) -> (f64, f64) {
    let angle = TAU * thread as f64 / threads as f64;
    (SIZE / 2.0 + RING_RADIUS * angle.sin(), SIZE / 2.0 - RING_RADIUS * angle.cos())
}

fn ring(traced: &Traced, pairs: &[Stolen]) -> String {
    let threads = traced.lanes.len();
    let most = pairs[0].steals as f64;
    let mut out = String::new();
    // The pairs with the most steals are drawn last, over the others.
    for pair in pairs.iter().rev() {
        let part = (pair.steals as f64 / most).sqrt();
        let arrow =
            arrow(place(pair.victim, threads), place(pair.thief, threads), 1.5 + 5.0 * part);
        let marks =
            format!("<g class=\"arrow\" opacity=\"{}\">{arrow}</g>", decimal(0.45 + 0.55 * part));
        out.push_str(&with_tooltip(&description_of(traced, pair), &marks));
    }
    for (thread, lane) in traced.lanes.iter().enumerate() {
        let (x, y) = place(thread, threads);
        let steals = units::of(lane.totals().stole(), "steal");
        let words = format!("{}: {steals}", lane_name(lane, thread));
        let (x, y, below) = (decimal(x), decimal(y), decimal(y + 5.0));
        let marks = format!(
            "<circle class=\"node\" cx=\"{x}\" cy=\"{y}\" r=\"{NODE_RADIUS}\"/><text class=\"in\" x=\"{x}\" y=\"{below}\" text-anchor=\"middle\">{}</text>",
            short_label(lane, thread),
        );
        out.push_str(&with_tooltip(&words, &marks));
    }
    out
}

/// Returns the label of a thread on the ring: the number at the end of its name, or its index.
fn short_label(lane: &Lane, place: usize) -> String {
    let letters = lane.name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let number = &lane.name[letters..];
    if number.is_empty() || number.len() > 3 { place.to_string() } else { number.to_owned() }
}

/// Returns a curved arrow between two threads, to the right of the straight line, so that the opposite arrow
/// has room.
fn arrow(from: (f64, f64), to: (f64, f64), width: f64) -> String {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy).max(1.0);
    let bend = 0.16 * length;
    let middle =
        ((from.0 + to.0) / 2.0 - bend * dy / length, (from.1 + to.1) / 2.0 + bend * dx / length);
    let start = toward(from, middle, NODE_RADIUS + 2.0);
    let head = 6.0 + 1.6 * width;
    let tip = toward(to, middle, NODE_RADIUS + 2.0);
    let neck = toward(to, middle, NODE_RADIUS + 2.0 + head);
    let (nx, ny) = ((neck.0 - tip.0) / head, (neck.1 - tip.1) / head);
    let wing = 0.45 * head;
    let point = |(x, y): (f64, f64)| format!("{} {}", decimal(x), decimal(y));
    format!(
        "<path class=\"way\" stroke-width=\"{}\" d=\"M{}Q{} {}\"/><path class=\"head\" d=\"M{}L{}L{}z\"/>",
        decimal(width),
        point(start),
        point(middle),
        point(neck),
        point(tip),
        point((neck.0 - wing * ny, neck.1 + wing * nx)),
        point((neck.0 + wing * ny, neck.1 - wing * nx)),
    )
}

/// Returns the point at distance `far` from one point in the direction of another.
fn toward(from: (f64, f64), to: (f64, f64), far: f64) -> (f64, f64) {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let part = far / dx.hypot(dy).max(1.0);
    (from.0 + part * dx, from.1 + part * dy)
}

fn matrix(traced: &Traced, pairs: &[Stolen]) -> String {
    let cell = SIZE / traced.lanes.len() as f64;
    let most = pairs[0].steals as f64;
    let mut out = format!("<rect class=\"track\" width=\"{SIZE}\" height=\"{SIZE}\"/>\n");
    for pair in pairs {
        let marks = format!(
            "<rect class=\"cell\" x=\"{}\" y=\"{}\" width=\"{2}\" height=\"{2}\" opacity=\"{3}\"/>",
            decimal(cell * pair.victim as f64),
            decimal(cell * pair.thief as f64),
            decimal(cell * 0.94),
            decimal(0.2 + 0.8 * (pair.steals as f64 / most).sqrt()),
        );
        out.push_str(&with_tooltip(&description_of(traced, pair), &marks));
    }
    out
}

fn table(traced: &Traced, pairs: &[Stolen]) -> Table {
    let mut table = Table::new("steals between threads", &["thief", "victim", "steals", "tasks"]);
    for pair in pairs.iter().take(MAX_PAIRS) {
        table.rows.push(vec![
            lane_name(&traced.lanes[pair.thief], pair.thief),
            lane_name(&traced.lanes[pair.victim], pair.victim),
            units::count(pair.steals),
            units::count(pair.tasks),
        ]);
    }
    if pairs.len() > MAX_PAIRS {
        table.caption.push_str(&format!(
            ", the first {MAX_PAIRS} of {} pairs",
            units::count(pairs.len() as u64)
        ));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_is_inside_of_the_chart() {
        for threads in 1..=MAX_ON_RING {
            for thread in 0..threads {
                let (x, y) = place(thread, threads);
                for edge in [
                    x - NODE_RADIUS,
                    y - NODE_RADIUS,
                    SIZE - x - NODE_RADIUS,
                    SIZE - y - NODE_RADIUS,
                ] {
                    assert!(edge > 0.0, "{thread} of {threads} is at {x}, {y}");
                }
            }
        }
    }

    #[test]
    fn threads_are_known_by_the_number_in_their_name() {
        let short_label =
            |name: &str| short_label(&Lane { name: name.into(), ..Lane::default() }, 7);
        assert_eq!(
            ["heist-1", "12", "", "main", "ThreadId-1234"].map(short_label),
            ["1", "12", "7", "7", "7"]
        );
    }

    #[test]
    fn an_arrow_ends_at_the_edge_of_a_thread() {
        let (from, to) = (place(0, 4), place(2, 4));
        let tip = toward(to, from, NODE_RADIUS + 2.0);
        assert!(((tip.0 - to.0).hypot(tip.1 - to.1) - NODE_RADIUS - 2.0).abs() < 1e-9);
        // Two threads may be at the same position.
        assert!(!arrow(to, to, 1.0).contains("NaN"));
    }
}
