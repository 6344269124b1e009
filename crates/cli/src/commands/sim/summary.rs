//! The points of a record, grouped into curves: one for each workload and strategy, with a row for each number of cores.

use super::record::{SimPoint, SimRecord};

/// All points of a workload and a strategy.
pub(crate) struct Curve<'r> {
    pub(crate) workload: &'r str,
    pub(crate) strategy: &'r str,
    /// In ascending order of the number of cores. There is at least one.
    pub(crate) rows: Vec<Row<'r>>,
}

/// The points with the same number of cores, one for each seed.
pub(crate) struct Row<'r> {
    pub(crate) cores: usize,
    /// There is at least one.
    pub(crate) points: Vec<&'r SimPoint>,
}

/// The median, the smallest and the largest value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// Returns the curves, those of the same workload next to each other.
pub(crate) fn curves(record: &SimRecord) -> Vec<Curve<'_>> {
    let mut curves: Vec<Curve<'_>> = Vec::new();
    for workload in distinct(record.points.iter().map(|point| &*point.workload)) {
        let points = || record.points.iter().filter(|point| point.workload == workload);
        for strategy in distinct(points().map(|point| &*point.strategy)) {
            let points = points().filter(|point| point.strategy == strategy);
            curves.push(Curve { workload, strategy, rows: rows(points) });
        }
    }
    curves
}

fn distinct<'r>(names: impl Iterator<Item = &'r str>) -> Vec<&'r str> {
    let mut seen = Vec::new();
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}

fn rows<'r>(points: impl Iterator<Item = &'r SimPoint>) -> Vec<Row<'r>> {
    let mut points: Vec<&SimPoint> = points.collect();
    points.sort_by_key(|point| (point.cores, point.seed));
    let row = |points: &[&'r SimPoint]| Row { cores: points[0].cores, points: points.to_vec() };
    points.chunk_by(|a, b| a.cores == b.cores).map(row).collect()
}

impl Curve<'_> {
    /// Returns the row with the most cores.
    pub(crate) fn largest(&self) -> &Row<'_> {
        self.rows.last().expect("a curve has a row")
    }

    /// Returns the row with this number of cores.
    pub(crate) fn at(&self, cores: usize) -> Option<&Row<'_>> {
        self.rows.iter().find(|row| row.cores == cores)
    }
}

impl Row<'_> {
    /// Returns the spread of a value over the seeds.
    pub(crate) fn spread(&self, value: impl Fn(&SimPoint) -> f64) -> Spread {
        let mut values: Vec<f64> = self.points.iter().map(|point| value(point)).collect();
        values.sort_by(f64::total_cmp);
        let (low, high) = (values[0], values[values.len() - 1]);
        let median = (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0;
        Spread { median, low, high }
    }

    /// Returns the spread of the efficiency.
    pub(crate) fn efficiency(&self) -> Spread {
        self.spread(|point| point.efficiency)
    }

    /// Returns the median of a time in nanoseconds.
    pub(crate) fn time(&self, time: impl Fn(&SimPoint) -> u64) -> f64 {
        self.spread(|point| time(point) as f64).median
    }

    /// Returns what part of the time of the cores each activity took, over all seeds together.
    pub(crate) fn shares(&self) -> Vec<(&'static str, f64)> {
        let total: u64 = self.points.iter().map(|point| point.split.total()).sum();
        let parts = self.points[0].split.parts();
        let share = |(part, (name, _)): (usize, &(&'static str, u64))| {
            let time: u64 = self.points.iter().map(|point| point.split.parts()[part].1).sum();
            (*name, time as f64 / total.max(1) as f64)
        };
        parts.iter().enumerate().map(share).collect()
    }
}

impl Spread {
    /// Returns the median and the extremes, or one value if there is only one.
    pub(crate) fn shown(&self) -> String {
        if self.low == self.high {
            return format!("{:.3}", self.median);
        }
        format!("{:.3} ({:.3}–{:.3})", self.median, self.low, self.high)
    }
}
