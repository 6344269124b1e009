//! The raw samples, for whoever wants to compute something else from them.

use std::fmt::{self, Write};

use crate::machine::Machine;
use crate::measure::{Entry, Row};

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
    writeln!(out, "  \"unit\": \"nanoseconds per operation, a round each\",")?;
    writeln!(out, "  \"samples\": [")?;
    let entries = rows.iter().flat_map(|row| row.entries.iter().map(move |entry| (row, entry)));
    let lines: Vec<_> = entries.map(|(row, entry)| line(row, entry)).collect();
    writeln!(out, "{}", lines.join(",\n"))?;
    writeln!(out, "  ]\n}}")
}

fn line(row: &Row, entry: &Entry) -> String {
    let nanoseconds = list(entry.nanoseconds().map(|value| format!("{value:.3}")));
    let steals = list(entry.steals().map(|value| format!("{value:.0}")));
    let steals = if steals.is_empty() {
        String::new()
    } else {
        format!(", \"steals_per_second\": [{steals}]")
    };
    format!(
        "    {{\"workload\": {}, \"item\": {}, \"case\": {}, \"queue\": {}, \"nanoseconds\": \
         [{nanoseconds}]{steals}, \"disturbed\": {}}}",
        text(row.workload),
        text(row.item.id()),
        text(row.case),
        text(entry.queue),
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

    #[test]
    fn strings_are_escaped() {
        assert_eq!(text("a \"b\" \\ c\n"), r#""a \"b\" \\ c\u000a""#);
        assert_eq!(text("µs"), "\"µs\"");
    }
}
