//! The efficiency by the number of cores: a curve for each strategy, with a band from the worst seed to the best.

use super::super::html::{Table, section, text};
use super::super::palette::Palette;
use super::super::svg::{Chart, PLANE, across, anchor, decimal, label, plane, with_tooltip};
use super::{calibration, figure};
use crate::commands::sim::summary::Curve;
use crate::units;

/// The height of the plot, without the axis labels.
const HEIGHT: u32 = 200;
/// Room for the markers at either side.
const MARGIN: f64 = 0.04;

/// Returns the section.
pub(super) fn efficiency(curves: &[Curve<'_>]) -> String {
    let workloads = curves.chunk_by(|a, b| a.workload == b.workload).enumerate();
    let cards: String = workloads.map(|(number, curves)| card(curves, number)).collect();
    let lead = "Simulated. Efficiency is T(1) / (P × T(P)) with work in proportion to the number of cores P: 1 is ideal. The line is the \
                median of the seeds, the band goes from the worst seed to the best. The axis of cores is logarithmic.";
    let body = format!("<div class=\"cards\">\n{cards}</div>\n");
    section("efficiency", "Simulated efficiency", lead, &body)
}

/// Returns the name by which the palette knows a strategy, so that it has the same colour as on the page of a measurement.
fn peer<'c>(curve: &Curve<'c>) -> &'c str {
    match curve.strategy {
        "work-stealing" => "heist",
        "locked-deques" => "heist-locked",
        "global-queue" => "heist-global",
        other => other,
    }
}

fn card(curves: &[Curve<'_>], number: usize) -> String {
    let palette = Palette::new(curves.iter().map(peer));
    let last = |curve: &Curve<'_>| (curve.largest().cores, curve.largest().efficiency().median);
    let described = |curve: &Curve<'_>| {
        let (cores, median) = last(curve);
        format!("{} has {median:.3} on {}", curve.strategy, units::of(cores as u64, "core"))
    };
    let key = |curve: &Curve<'_>| {
        let (name, median) = (text(curve.strategy), last(curve).1);
        format!("<li>{}{name} <b>{median:.3}</b></li>", palette.key(peer(curve)))
    };
    let descriptions: Vec<String> = curves.iter().map(described).collect();
    let chart = Chart {
        kind: "efficiency",
        id: format!("efficiency-{number}"),
        title: format!("{}: simulated efficiency by the number of cores", curves[0].workload),
        description: format!("Simulated: {}.", units::list(&descriptions)),
        height: HEIGHT + 24,
        marks: marks(curves, &palette),
    };
    let keys: String = curves.iter().map(key).collect();
    let inside = format!(
        "{}<ul class=\"keys\">{keys}</ul>\n{}{}",
        chart.wide(),
        calibration::beside(curves),
        table(curves).collapsed()
    );
    figure("card", curves[0].workload, "efficiency, by the number of cores", &inside)
}

/// Maps numbers of cores and efficiencies to positions.
struct Positions {
    first: f64,
    last: f64,
    top: f64,
}

impl Positions {
    fn new(curves: &[Curve<'_>]) -> Self {
        let rows = || curves.iter().flat_map(|curve| &curve.rows);
        let logarithm = |cores: usize| (cores.max(1) as f64).log2();
        let highest = rows().map(|row| row.efficiency().high).fold(1.0, f64::max);
        Self {
            first: logarithm(rows().map(|row| row.cores).min().unwrap_or(1)),
            last: logarithm(rows().map(|row| row.cores).max().unwrap_or(1)),
            top: highest * 1.1,
        }
    }

    fn x(&self, cores: usize) -> f64 {
        if self.last <= self.first {
            return 0.5;
        }
        let part = ((cores.max(1) as f64).log2() - self.first) / (self.last - self.first);
        MARGIN + (1.0 - 2.0 * MARGIN) * part
    }

    fn y(&self, efficiency: f64) -> f64 {
        f64::from(HEIGHT) * (1.0 - efficiency / self.top)
    }

    fn point(&self, cores: usize, efficiency: f64) -> String {
        let x = f64::from(PLANE) * self.x(cores);
        format!("{} {}", decimal(x), decimal(self.y(efficiency)))
    }
}

fn marks(curves: &[Curve<'_>], palette: &Palette<'_>) -> String {
    let positions = Positions::new(curves);
    let mut lines = String::new();
    let mut markers = String::new();
    // The first strategy is drawn last, over the others.
    for curve in curves.iter().rev() {
        lines.push_str(&path(curve, &positions, palette));
        for row in &curve.rows {
            let spread = row.efficiency();
            let words = format!(
                "{}, {}: simulated efficiency {}",
                curve.strategy,
                units::of(row.cores as u64, "core"),
                spread.shown()
            );
            let marker = format!(
                "<svg class=\"sign\" x=\"{}\" y=\"{}\"><path class=\"fill {}\" d=\"{}\"/></svg>",
                across(positions.x(row.cores)),
                decimal(positions.y(spread.median)),
                palette.class(peer(curve)),
                palette.marker(peer(curve)),
            );
            markers.push_str(&with_tooltip(&words, &marker));
        }
    }
    grid(&positions) + &plane(0, HEIGHT, &lines) + &markers + &axis(curves, &positions)
}

/// Returns the line of a curve, and its band.
fn path(curve: &Curve<'_>, positions: &Positions, palette: &Palette<'_>) -> String {
    let class = palette.class(peer(curve));
    let spreads: Vec<_> = curve.rows.iter().map(|row| (row.cores, row.efficiency())).collect();
    let points = |value: &dyn Fn(usize) -> f64| -> Vec<String> {
        (0..spreads.len()).map(|at| positions.point(spreads[at].0, value(at))).collect()
    };
    let middle = points(&|at| spreads[at].1.median).join("L");
    let mut band = points(&|at| spreads[at].1.high);
    band.extend(points(&|at| spreads[at].1.low).into_iter().rev());
    format!(
        "<path class=\"band {class}\" d=\"M{}Z\"/><path class=\"line {class}\" d=\"M{middle}\"/>",
        band.join("L")
    )
}

/// Returns the horizontal grid lines with their labels.
fn grid(positions: &Positions) -> String {
    [0.0, 0.25, 0.5, 0.75, 1.0]
        .into_iter()
        .map(|efficiency| {
            let y = positions.y(efficiency);
            let words =
                label("axis", "0", (y - 4.0).max(9.0) as u32, "start", &decimal(efficiency));
            let y = decimal(y);
            format!("<line class=\"grid\" x2=\"100%\" y1=\"{y}\" y2=\"{y}\"/>{words}\n")
        })
        .collect()
}

/// Returns the labels of the numbers of cores. Those that would be too close to the one before are left out.
fn axis(curves: &[Curve<'_>], positions: &Positions) -> String {
    let mut cores: Vec<usize> =
        curves.iter().flat_map(|curve| &curve.rows).map(|row| row.cores).collect();
    cores.sort_unstable();
    cores.dedup();
    let mut out = String::new();
    let mut end = f64::NEG_INFINITY;
    for cores in cores {
        let x = positions.x(cores);
        if x - end >= 0.08 {
            out.push_str(&label("axis", &across(x), HEIGHT + 17, anchor(x), &cores.to_string()));
            end = x;
        }
    }
    out
}

fn table(curves: &[Curve<'_>]) -> Table {
    let caption = format!("simulated efficiency of {}", curves[0].workload);
    let mut table = Table::new(caption, &["strategy", "cores", "median", "worst", "best"]);
    for curve in curves {
        for row in &curve.rows {
            let spread = row.efficiency();
            let shown = |value: f64| format!("{value:.3}");
            table.rows.push(vec![
                curve.strategy.to_owned(),
                row.cores.to_string(),
                shown(spread.median),
                shown(spread.low),
                shown(spread.high),
            ]);
        }
    }
    table
}
