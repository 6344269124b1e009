//! The raw samples, for whoever wants to compute something else from them.

use super::{Process, Row, Side};
use crate::args::Compare;
use crate::json::{list, number, text};

/// All but where the programs lie, which is of no interest to others.
fn arguments(mut all: impl Iterator<Item = String>) -> impl Iterator<Item = String> {
    std::iter::from_fn(move || {
        loop {
            let argument = all.next()?;
            if argument != "--stock" && argument != "--heist" {
                return Some(argument);
            }
            all.next();
        }
    })
}

/// Everything that a run has found, as one JSON object; a line for each process.
pub(super) fn document(args: &Compare, machine: &[(&str, String)], rows: &[Row]) -> String {
    let arguments = list(arguments(std::env::args().skip(1)).map(|argument| text(&argument)));
    let machine: Vec<_> =
        machine.iter().map(|(name, value)| format!("{}: {}", text(name), text(value))).collect();
    let processes: Vec<_> = rows.iter().flat_map(lines).collect();
    format!(
        "{{\n  \"arguments\": {arguments},\n  \"machine\": {{{}}},\n  \"rounds\": {},\n  \
         \"threads\": {},\n  \"unit\": \"samples are per run, in the unit of the line\",\n  \
         \"processes\": [\n{}\n  ]\n}}\n",
        machine.join(", "),
        args.rounds,
        args.threads,
        processes.join(",\n"),
    )
}

fn lines(row: &Row) -> Vec<String> {
    let pairs = row.stock.iter().zip(&row.heist).enumerate();
    let both = pairs.flat_map(|(round, (stock, heist))| {
        [(round, Side::Stock, stock), (round, Side::Heist, heist)]
    });
    both.map(|(round, side, process)| line(row, round, side, process)).collect()
}

fn line(row: &Row, round: usize, side: Side, process: &Process) -> String {
    format!(
        "    {{\"case\":{},\"round\":{round},\"side\":{},\"rayon_core\":{},\"unit\":{},\
         \"cpu_milliseconds\":{},\"switches\":{},\"samples\":{}}}",
        text(row.case.id),
        text(side.name()),
        text(&process.rayon_core),
        text(row.case.unit.key()),
        number(process.cpu_millis),
        process.switches,
        list(process.samples.iter().copied().map(number)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::tests::{args, row};

    #[test]
    fn where_the_programs_lie_is_left_out() {
        let all = ["compare", "--stock", "a/b", "--rounds", "3", "--heist", "c"].map(String::from);
        assert!(arguments(all.into_iter()).eq(["compare", "--rounds", "3"]));
    }

    #[test]
    fn every_process_has_a_line() {
        let rows = [row("join/fib", &[1.0, 2.0], &[3.0, 4.0])];
        let found = document(&args(), &[("cpu", "Fast".into())], &rows);
        assert_eq!(found.matches("\"case\":\"join/fib\"").count(), 4);
        let line = "\"round\":1,\"side\":\"heist\",\"rayon_core\":\"1.13.0 from the registry\",\
                    \"unit\":\"nanoseconds\",\"cpu_milliseconds\":1.000,\"switches\":2,\
                    \"samples\":[4.000]}";
        assert!(found.contains(line), "{found}");
        assert!(found.contains("\"machine\": {\"cpu\": \"Fast\"}"), "{found}");
    }
}
