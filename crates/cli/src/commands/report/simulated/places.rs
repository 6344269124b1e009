//! The most expensive lines of the source.

use super::super::html::{Table, section};
use super::{figure, named};
use crate::commands::sim::record::Place;
use crate::commands::sim::summary::Curve;
use crate::units;

/// Returns the section.
pub(super) fn places(curves: &[Curve<'_>]) -> String {
    let lead = "Simulated. Where threads spent the most time on shared memory, in the largest run of the first seed. Stall is the time of all \
                threads together, queued the part of it for which they waited for other requests. A transfer fetches a cache line from \
                another core.";
    let body: String = curves.iter().map(card).collect();
    section("places", "Most expensive source lines, simulated", lead, &body)
}

fn card(curve: &Curve<'_>) -> String {
    let (name, point) = (named(curve), curve.largest().points[0]);
    let mut table = Table::new(
        format!("simulated cost of source lines in {name}"),
        &["source line", "stall", "queued", "operations", "transfers"],
    );
    let row = |place: &Place| {
        vec![
            place.place.clone(),
            units::time(place.stall as f64),
            units::time(place.queued as f64),
            units::count(place.operations),
            units::count(place.transfers),
        ]
    };
    table.rows = point.places.iter().map(row).collect();
    let what = format!("{}, seed {}", units::of(point.cores as u64, "core"), point.seed);
    figure("card whole", &name, &what, &table.open())
}
