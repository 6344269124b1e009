//! The tables of `heist sim`: for each workload and strategy a row for each number of cores, and the most expensive lines of
//! the source.

use super::record::{Place, SimRecord};
use super::summary::{Curve, Row, curves};
use crate::{out, units};

/// The number of places in the source that are shown of each largest run.
const PLACES: usize = 6;

/// Returns the tables.
pub(super) fn markdown(record: &SimRecord) -> String {
    let curves = curves(record);
    let mut text = String::new();
    for workload in curves.chunk_by(|a, b| a.workload == b.workload) {
        if workload.len() > 1 {
            text.push_str(&comparison(workload, record));
        }
        for curve in workload {
            text.push_str(&details(curve, record));
            text.push_str(&places(curve));
        }
    }
    text + &legend(record)
}

/// Returns the efficiencies of all strategies side by side.
fn comparison(curves: &[Curve<'_>], record: &SimRecord) -> String {
    let head: Vec<&str> =
        ["cores"].into_iter().chain(curves.iter().map(|curve| curve.strategy)).collect();
    let mut cores: Vec<usize> =
        curves.iter().flat_map(|curve| &curve.rows).map(|row| row.cores).collect();
    cores.sort_unstable();
    cores.dedup();
    let row = |cores: usize| {
        let of = |curve: &Curve<'_>| {
            curve.at(cores).map_or_else(String::new, |row| row.efficiency().shown())
        };
        [cores.to_string()].into_iter().chain(curves.iter().map(of)).collect()
    };
    let rows: Vec<Vec<String>> = cores.into_iter().map(row).collect();
    format!(
        "### {}: simulated efficiency{}\n\n{}\n",
        out::harmless(curves[0].workload),
        on(record),
        table(&head, &rows, 0)
    )
}

fn details(curve: &Curve<'_>, record: &SimRecord) -> String {
    let mut head = vec!["cores", "efficiency", "elapsed"];
    head.extend(curve.rows[0].shares().iter().map(|(name, _)| *name));
    head.extend(["ramp", "tail", "near steals", "far steals"]);
    let rows: Vec<Vec<String>> = curve.rows.iter().map(cells).collect();
    format!(
        "### {}, {}: simulated{}\n\n{}\n",
        out::harmless(curve.workload),
        out::harmless(curve.strategy),
        on(record),
        table(&head, &rows, 0)
    )
}

fn cells(row: &Row<'_>) -> Vec<String> {
    let mut cells = vec![
        row.cores.to_string(),
        row.efficiency().shown(),
        units::time(row.time(|point| point.elapsed)),
    ];
    cells.extend(row.shares().iter().map(|(_, share)| format!("{:.1} %", 100.0 * share)));
    cells.push(units::time(row.time(|point| point.ramp)));
    cells.push(units::time(row.time(|point| point.tail)));
    let steals =
        [row.spread(|point| point.near_steals as f64), row.spread(|point| point.far_steals as f64)];
    cells.extend(steals.map(|steals| units::count(steals.median as u64)));
    cells
}

/// Returns the most expensive lines of the source in the first of the largest runs.
fn places(curve: &Curve<'_>) -> String {
    let point = curve.largest().points[0];
    let row = |place: &Place| {
        vec![
            out::harmless(&place.place),
            units::time(place.stall as f64),
            units::count(place.operations),
            units::count(place.transfers),
        ]
    };
    let rows: Vec<Vec<String>> = point.places.iter().take(PLACES).map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "Most expensive source lines, simulated, {}, seed {}:\n\n{}\n",
        units::of(point.cores as u64, "core"),
        point.seed,
        table(&["source line", "stall", "operations", "transfers"], &rows, 1)
    )
}

fn on(record: &SimRecord) -> String {
    let machine = out::harmless(&record.machine.name);
    match record.seeds {
        1 => format!(" on {machine}, seed {}", record.first_seed),
        seeds => format!(
            " on {machine}, seeds {} to {}",
            record.first_seed,
            record.first_seed.saturating_add(seeds - 1)
        ),
    }
}

fn legend(record: &SimRecord) -> String {
    let seeds = match record.seeds {
        1 => "",
        _ => ", the median of the seeds with the smallest and the largest in brackets",
    };
    format!(
        "Everything above is simulated, in virtual time. Efficiency is T(1) / (P * T(P)), with work in proportion to the \
         cores{seeds}. The shares are of the time of all cores that have a thread. Ramp is the time until the last worker \
         begins to work, tail the time from the first worker's last work to the end. Steals \
         are near ones from a worker on the same NUMA node, and far ones from another node. Stall is the time that all threads \
         spent at a line, transfers are the accesses that fetched a cache line from another core. The model says where \
         threads wait for each other, not how fast a real machine is: see docs/SIMULATION.md.\n"
    )
}

/// Returns a table in Markdown whose columns are aligned. The first `left` columns are aligned to the left.
fn table(head: &[&str], rows: &[Vec<String>], left: usize) -> String {
    let length = |text: &str| text.chars().count();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| length(&row[column]));
        cells.chain([length(head[column])]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let cell = |(column, cell): (usize, &str)| {
            let width = widths[column];
            if column < left { format!(" {cell:<width$} |") } else { format!(" {cell:>width$} |") }
        };
        format!("|{}\n", cells.enumerate().map(cell).collect::<String>())
    };
    let rule = |(column, &width): (usize, &usize)| {
        let end = if column < left { '-' } else { ':' };
        format!("{}{end}|", "-".repeat(width + 1))
    };
    let rule: String = widths.iter().enumerate().map(rule).collect();
    let rows: String = rows.iter().map(|row| line(&mut row.iter().map(|cell| &**cell))).collect();
    format!("{}|{rule}\n{rows}", line(&mut head.iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [vec!["a.rs:1".into(), "5".into()], vec!["b".into(), "1,000".into()]];
        let expected =
            "| place  |     n |\n|--------|------:|\n| a.rs:1 |     5 |\n| b      | 1,000 |\n";
        assert_eq!(table(&["place", "n"], &rows, 1), expected);
    }
}
