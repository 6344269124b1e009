//! A series of runs with more and more workers.

use serde::Serialize;

use crate::run::{Error, Measurement, Run};

/// A measurement, and its efficiency.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The efficiency T(1) / (P * T(P)), where T(1) is scaled to the same amount of work.
    pub efficiency: f64,
    /// What was measured.
    pub measurement: Measurement,
}

/// Measures a run with one worker and with each of these numbers of workers. Calls `progress` after each.
///
/// # Errors
///
/// Returns the error of the first run that fails.
pub fn sweep(
    run: &Run,
    workers: &[usize],
    mut progress: impl FnMut(&Point),
) -> Result<Vec<Point>, Error> {
    let base = Run { workers: 1, ..run.clone() }.measure()?;
    let point = |&workers: &usize| {
        let measurement = match workers {
            1 => base.clone(),
            _ => Run { workers, ..run.clone() }.measure()?,
        };
        let point = Point { efficiency: efficiency(&base, &measurement), measurement };
        progress(&point);
        Ok(point)
    };
    workers.iter().map(point).collect()
}

/// Returns the efficiency T(1) / (P * T(P)) of a measurement, where T(1) is that of a run with one worker, scaled to the same
/// amount of work.
pub fn efficiency(base: &Measurement, measured: &Measurement) -> f64 {
    let alone = base.elapsed as f64 / base.units as f64;
    let together = measured.elapsed as f64 / measured.units as f64;
    alone / (together * measured.workers as f64)
}
