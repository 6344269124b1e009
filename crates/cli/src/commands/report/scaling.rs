//! The speed-up of many workers over one, compared with the ideal.

use heist_bench::record::Record;

use super::html::{Table, missing, section, text};
use super::palette::Palette;
use super::svg::{Chart, PLANE, across, anchor, decimal, label, plane, with_tooltip};
use crate::cases::{Case, cases, ideal, speed_up};
use crate::units;

/// The height of the plot, without the axis labels.
const HEIGHT: u32 = 200;
/// Room for the markers at either side.
const MARGIN: f64 = 0.04;

/// A family of cases that differ only in the number of workers.
struct Scaling<'c> {
    family: &'c str,
    /// The peers, and the speed-up for each number of workers in ascending order. All start with one worker.
    lines: Vec<(&'c str, Vec<(usize, f64)>)>,
    /// The largest number of workers.
    workers: usize,
}

/// Returns the section.
pub(super) fn scaling(record: &Record, palette: &Palette<'_>) -> String {
    let cases = cases(record);
    let cores = record.machine.cores;
    let cards: String = scalings(&cases)
        .iter()
        .enumerate()
        .map(|(number, scaling)| card(scaling, number, cores, palette))
        .collect();
    let body = if cards.is_empty() {
        nothing_to_show(record)
    } else {
        format!("<div class=\"cards\">\n{cards}</div>\n")
    };
    let lead = "Each peer compared with itself on one worker. The speed-up is the median over the rounds. The dashed line is the ideal: twice as fast with two \
                workers. It stops rising at the number of cores, because more workers have to share them.";
    section("scaling", "Scaling against ideal", lead, &body)
}

/// Returns the text that replaces the charts. On one core there is no command to suggest.
fn nothing_to_show(record: &Record) -> String {
    let what = "No case of this file was measured both with one worker and with more";
    if record.machine.cores == 1 {
        return format!(
            "<p class=\"missing\">{what}: there was only one core, which several workers would have had to share.</p>\n"
        );
    }
    let what = format!(
        "{what}. To measure the duel with one worker and with more, up to the number of cores:"
    );
    missing(&what, &format!("{} bench duel --json FILE", record.program()))
}

fn scalings<'c>(cases: &'c [Case<'c>]) -> Vec<Scaling<'c>> {
    let mut families: Vec<&str> = Vec::new();
    for case in cases.iter().filter(|case| case.workers == Some(1)) {
        if !families.contains(&&*case.family) {
            families.push(&case.family);
        }
    }
    families.into_iter().filter_map(|family| of_family(cases, family)).collect()
}

fn of_family<'c>(cases: &'c [Case<'c>], family: &'c str) -> Option<Scaling<'c>> {
    let mut members: Vec<(usize, &Case<'_>)> = cases
        .iter()
        .filter(|case| case.family == family)
        .filter_map(|case| Some((case.workers.filter(|&workers| workers > 0)?, case)))
        .collect();
    members.sort_by_key(|&(workers, _)| workers);
    let alone = members.iter().find(|&&(workers, _)| workers == 1)?.1;
    let line = |by| {
        let point =
            |&(workers, case): &(usize, _)| Some((workers, speed_up(alone, case, by)?.median));
        let points: Vec<_> = members.iter().filter_map(point).collect();
        (points.len() > 1).then_some((by, points))
    };
    let lines: Vec<_> = alone.main().entries.iter().filter_map(|entry| line(entry.by)).collect();
    let workers = lines.iter().filter_map(|(_, points)| Some(points.last()?.0)).max()?;
    (workers > 1).then_some(Scaling { family, lines, workers })
}

fn card(scaling: &Scaling<'_>, number: usize, cores: usize, palette: &Palette<'_>) -> String {
    let last = |points: &[(usize, f64)]| points.last().copied().unwrap_or_default();
    let mut ends: Vec<_> = scaling.lines.iter().map(|(by, points)| (*by, last(points))).collect();
    ends.sort_by(|a, b| b.1.1.total_cmp(&a.1.1));
    let descriptions: Vec<String> = ends
        .iter()
        .map(|(by, (workers, times))| format!("{by} is {times:.2} times as fast with {workers}"))
        .collect();
    let keys: String = ends
        .iter()
        .map(|(by, (_, times))| {
            format!("<li>{}{} <b>{times:.2}×</b></li>", palette.key(by), text(by))
        })
        .collect();
    let chart = Chart {
        kind: "scaling",
        id: format!("scaling-{number}"),
        title: format!("{}: speed-up over one worker", scaling.family),
        description: format!("{}.", units::list(&descriptions)),
        height: HEIGHT + 24,
        marks: marks(scaling, cores, palette),
    };
    format!(
        "<figure class=\"card\"><figcaption><strong>{}</strong><span class=\"quiet\">times as fast as one worker, by the number of workers</span></figcaption>\n\
         {}<ul class=\"keys\">{keys}</ul>\n{}</figure>\n",
        text(scaling.family),
        chart.wide(),
        table(scaling, cores).collapsed(),
    )
}

/// Maps numbers of workers and speed-ups to positions.
struct Positions {
    workers: f64,
    top: f64,
}

impl Positions {
    fn x(&self, workers: f64) -> f64 {
        MARGIN + (1.0 - 2.0 * MARGIN) * (workers - 1.0) / (self.workers - 1.0)
    }

    fn y(&self, times: f64) -> f64 {
        f64::from(HEIGHT) * (1.0 - times / self.top)
    }

    fn point(&self, workers: f64, times: f64) -> String {
        format!("{} {}", decimal(f64::from(PLANE) * self.x(workers)), decimal(self.y(times)))
    }
}

fn marks(scaling: &Scaling<'_>, cores: usize, palette: &Palette<'_>) -> String {
    let ideal_end = ideal(scaling.workers, cores) as f64;
    let measured = scaling.lines.iter().flat_map(|(_, points)| points).map(|&(_, times)| times);
    let top = measured.fold(ideal_end, f64::max) * 1.12;
    let positions = Positions { workers: scaling.workers as f64, top };
    let mut out = grid(&positions);
    let mut best =
        format!("M{}L{}", positions.point(1.0, 1.0), positions.point(ideal_end, ideal_end));
    if ideal_end < positions.workers {
        best.push_str(&format!("L{}", positions.point(positions.workers, ideal_end)));
    }
    let mut lines = format!("<path class=\"ideal\" d=\"{best}\"/>");
    let mut markers = String::new();
    // heist is the first line; it is drawn last, over the others.
    for (by, points) in scaling.lines.iter().rev() {
        let class = palette.class(by);
        let line: Vec<String> =
            points.iter().map(|&(workers, times)| positions.point(workers as f64, times)).collect();
        lines.push_str(&format!("<path class=\"line {class}\" d=\"M{}\"/>", line.join("L")));
        for &(workers, times) in points {
            let words = format!(
                "{by}, {}: {times:.2} times as fast as one",
                units::of(workers as u64, "worker")
            );
            let marker = format!(
                "<svg class=\"sign\" x=\"{}\" y=\"{}\"><path class=\"fill {class}\" d=\"{}\"/></svg>",
                across(positions.x(workers as f64)),
                decimal(positions.y(times)),
                palette.marker(by),
            );
            markers.push_str(&with_tooltip(&words, &marker));
        }
    }
    out.push_str(&plane(0, HEIGHT, &lines));
    out.push_str(&markers);
    for workers in numbers(scaling) {
        let x = positions.x(workers as f64);
        out.push_str(&label("axis", &across(x), HEIGHT + 17, anchor(x), &workers.to_string()));
    }
    out
}

/// Returns the horizontal grid lines with their labels.
fn grid(positions: &Positions) -> String {
    let step = (positions.top / 4.0).ceil().max(1.0) as usize;
    (0..=positions.top as usize)
        .step_by(step)
        .map(|times| {
            let y = positions.y(times as f64);
            let words =
                label("axis", "0", (y - 4.0).max(9.0) as u32, "start", &format!("{times}×"));
            let y = decimal(y);
            format!("<line class=\"grid\" x2=\"100%\" y1=\"{y}\" y2=\"{y}\"/>{words}\n")
        })
        .collect()
}

/// Returns the numbers of workers on the axis. If there are too many, some are left out, but never the
/// largest.
fn numbers(scaling: &Scaling<'_>) -> Vec<usize> {
    let mut all: Vec<usize> =
        scaling.lines.iter().flat_map(|(_, points)| points).map(|&(workers, _)| workers).collect();
    all.sort_unstable();
    all.dedup();
    let apart = scaling.workers.div_ceil(10);
    let mut shown: Vec<usize> = Vec::new();
    for workers in all {
        if shown.last().is_some_and(|last| workers - last < apart) {
            if workers < scaling.workers {
                continue;
            }
            shown.pop();
        }
        shown.push(workers);
    }
    shown
}

fn table(scaling: &Scaling<'_>, cores: usize) -> Table {
    let mut table = Table::new(
        format!("speed-up in {}", scaling.family),
        &["peer", "workers", "speed-up", "share of ideal"],
    );
    for (by, points) in &scaling.lines {
        for &(workers, times) in points {
            let part = units::percent(times, ideal(workers, cores) as f64);
            table.rows.push(vec![by.to_string(), workers.to_string(), format!("{times:.2}"), part]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use heist_bench::record::Series;

    use super::*;

    fn series(workers: usize, by: &str, time: f64) -> Series {
        Series {
            workload: "duel".into(),
            case: format!("skewed/{workers}"),
            workers: Some(workers),
            by: by.into(),
            values: [("nanoseconds".into(), vec![time])].into(),
            ..Series::default()
        }
    }

    #[test]
    fn speed_up_is_relative_to_the_peers_own_single_worker() {
        let samples = vec![
            series(4, "heist", 25.0),
            series(1, "heist", 100.0),
            series(2, "heist", 50.0),
            series(1, "rayon", 90.0),
            series(2, "rayon", 90.0),
            series(2, "late", 1.0),
        ];
        let record = Record { samples, ..Record::default() };
        let cases = cases(&record);
        let scalings = scalings(&cases);
        assert_eq!(scalings.len(), 1);
        assert_eq!(scalings[0].workers, 4);
        assert_eq!(
            scalings[0].lines,
            [("heist", vec![(1, 1.0), (2, 2.0), (4, 4.0)]), ("rayon", vec![(1, 1.0), (2, 1.0)])]
        );
    }

    #[test]
    fn sequential_peers_are_not_drawn() {
        let mut samples = Vec::new();
        for workers in [1, 2] {
            samples.push(series(workers, "heist", 4.0 / workers as f64));
            samples.push(Series { sequential: true, ..series(workers, "plain", 4.0) });
        }
        let record = Record { samples, ..Record::default() };
        let found = scaling(&record, &Palette::new([]));
        assert!(found.contains("heist is 2.00 times as fast with 2."), "{found}");
        assert!(!found.contains("plain"), "{found}");
    }

    #[test]
    fn the_ideal_ends_at_the_number_of_cores() {
        let samples = vec![series(1, "heist", 4.0), series(4, "heist", 2.0)];
        let mut record = Record { samples, ..Record::default() };
        for (cores, part) in [(2, "100 %"), (8, "50 %"), (0, "50 %")] {
            record.machine.cores = cores;
            let found = scaling(&record, &Palette::new([]));
            let row = format!("<td>4</td><td>2.00</td><td>{part}</td>");
            assert!(found.contains(&row), "{cores}: {found}");
        }
    }

    #[test]
    fn one_number_of_workers_is_no_scaling() {
        for workers in [1, 2] {
            let samples = vec![series(workers, "heist", 1.0)];
            let mut record = Record { samples, by_cargo: true, ..Record::default() };
            assert!(scalings(&cases(&record)).is_empty());
            let advice = "<code>cargo run --release -- bench duel --json FILE</code>";
            assert!(scaling(&record, &Palette::new([])).contains(advice));
            record.machine.cores = 1;
            let found = scaling(&record, &Palette::new([]));
            assert!(
                found.contains("there was only one core") && !found.contains("<code>"),
                "{found}"
            );
        }
    }

    #[test]
    fn numbers_of_workers_have_room_on_the_axis() {
        let shown = |workers: &[usize]| {
            let lines = vec![("heist", workers.iter().map(|&workers| (workers, 1.0)).collect())];
            numbers(&Scaling { family: "a", lines, workers: *workers.last().unwrap() })
        };
        assert_eq!(shown(&[1, 2, 4, 8]), [1, 2, 4, 8]);
        assert_eq!(shown(&[1, 4, 8, 60, 64]), [1, 8, 64]);
        assert_eq!(shown(&[1, 4, 16, 24]), [1, 4, 16, 24]);
        assert_eq!(shown(&(1..=64).collect::<Vec<_>>()), [1, 8, 15, 22, 29, 36, 43, 50, 57, 64]);
    }

    #[test]
    fn times_of_zero_are_left_out() {
        let record = Record {
            samples: vec![series(1, "heist", 0.0), series(2, "heist", 0.0)],
            ..Record::default()
        };
        assert!(scalings(&cases(&record)).is_empty());
    }

    #[test]
    fn the_ends_of_the_axes_are_inside() {
        let positions = Positions { workers: 4.0, top: 5.0 };
        assert_eq!([1.0, 4.0].map(|workers| across(positions.x(workers))), ["4%", "96%"]);
        assert_eq!((positions.y(0.0), positions.y(5.0)), (f64::from(HEIGHT), 0.0));
    }
}
