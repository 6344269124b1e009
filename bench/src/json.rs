//! The raw samples, for whoever wants to compute something else from them.

use std::fmt::{self, Write};

use crate::machine::Machine;
use crate::row::{Entry, Row};

/// Everything that a run has found, as one JSON object.
pub(crate) fn document(machine: &Machine, hand_offs: &[f64], rows: &[Row]) -> String {
    let mut out = String::new();
    write(&mut out, machine, hand_offs, rows).expect("a String takes all");
    out
}

fn write(out: &mut String, machine: &Machine, hand_offs: &[f64], rows: &[Row]) -> fmt::Result {
    let peers = machine.peers.iter();
    let peers = peers.map(|(name, version)| format!("{}: {}", text(name), text(version)));
    let arguments = machine.arguments.iter().map(|argument| text(argument));
    writeln!(out, "{{")?;
    writeln!(out, "  \"arguments\": [{}],", list(arguments))?;
    writeln!(out, "  \"machine\": {{")?;
    writeln!(out, "    \"cpu\": {},", text(&machine.cpu))?;
    writeln!(out, "    \"cores\": {},", machine.cores)?;
    writeln!(out, "    \"kernel\": {},", text(&machine.kernel))?;
    writeln!(out, "    \"rustc\": {}", text(&machine.rustc))?;
    writeln!(out, "  }},")?;
    writeln!(out, "  \"commit\": {},", text(&machine.commit))?;
    writeln!(out, "  \"peers\": {{{}}},", list(peers))?;
    writeln!(out, "  \"rounds\": {},", hand_offs.len())?;
    let hand_offs = list(hand_offs.iter().map(|value| format!("{value:.1}")));
    writeln!(out, "  \"hand_off_nanoseconds\": [{hand_offs}],")?;
    writeln!(out, "  \"unit\": \"a value a round; plain nanoseconds are per operation\",")?;
    writeln!(out, "  \"samples\": [")?;
    let entries = rows.iter().flat_map(|row| row.entries.iter().map(move |entry| (row, entry)));
    let lines: Vec<_> = entries.map(|(row, entry)| line(row, entry)).collect();
    writeln!(out, "{}", lines.join(",\n"))?;
    writeln!(out, "  ]\n}}")
}

fn line(row: &Row, entry: &Entry) -> String {
    let item = row.item.map(|item| format!("\"item\": {}, ", text(item.id()))).unwrap_or_default();
    let kind = if row.item.is_some() { "queue" } else { "pool" };
    let metrics = row.metrics.iter().enumerate().map(|(place, metric)| {
        let values = list(entry.values(place).map(|value| metric.raw(value)));
        format!("{}: [{values}]", text(metric.key))
    });
    format!(
        "    {{\"workload\": {}, {item}\"case\": {}, \"{kind}\": {}, {}, \"disturbed\": {}}}",
        text(row.workload),
        text(&row.case),
        text(entry.name),
        list(metrics),
        entry.disturbed(),
    )
}

fn list(values: impl Iterator<Item = String>) -> String {
    values.collect::<Vec<_>>().join(", ")
}

/// A JSON string.
fn text(value: &str) -> String {
    let mut out = String::from('"');
    for char in value.chars() {
        match char {
            '"' | '\\' => out.extend(['\\', char]),
            control if control.is_control() => {
                write!(out, "\\u{:04x}", control as u32).expect("a String takes all");
            }
            plain => out.push(plain),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::tests::row;

    #[test]
    fn strings_are_escaped() {
        assert_eq!(text("a \"b\" \\ c\n"), r#""a \"b\" \\ c\u000a""#);
        assert_eq!(text("µs"), "\"µs\"");
    }

    #[test]
    fn a_line_has_every_metric_of_a_row() {
        let row = row("inside/1", &[("heist", [1.0, 2.0, 3.0])]);
        let expected = "    {\"workload\": \"spawn\", \"case\": \"inside/1\", \"pool\": \"heist\", \
             \"nanoseconds\": [1.000, 2.000, 3.000], \"disturbed\": 0}";
        assert_eq!(line(&row, &row.entries[0]), expected);
    }
}
