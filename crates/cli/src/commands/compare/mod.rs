//! `heist compare`: shows what differs between two records.

mod table;

use std::path::Path;

use heist_bench::record::Record;

use crate::args::{self, Common};
use crate::exit::{Exit, Outcome};
use crate::file::read_record;
use crate::out::{self, harmless};
use crate::units;

pub(crate) fn run(asked: &args::Compare, common: &Common) -> Outcome {
    let before = read_record(&asked.before)?;
    let after = read_record(&asked.after)?;
    if !common.quiet {
        caveats(&before, &after).iter().for_each(|caveat| out::note(&format!("heist: {caveat}")));
    }
    let named = [named("A", &asked.before, &before), named("B", &asked.after, &after)].concat();
    out::print(&format!("{named}\n{}", table::markdown(&before, &after)))?;
    Ok(Exit::Done)
}

/// Describes one of the two files.
fn named(name: &str, path: &Path, record: &Record) -> String {
    let commit = match record.commit.as_str() {
        "" => "an unknown commit".to_owned(),
        commit => format!("commit {}", harmless(commit)),
    };
    let rounds = units::of(record.rounds as u64, "round");
    let path = harmless(&path.display().to_string());
    format!("- {name} is {path}: {commit}, {rounds}\n")
}

/// Returns reasons why a difference may not be caused by the change under test.
fn caveats(before: &Record, after: &Record) -> Vec<String> {
    let (a, b) = (&before.machine, &after.machine);
    let mut caveats = Vec::new();
    for (which, record) in [("first", before), ("second", after)] {
        let own = record.caveats().into_iter();
        caveats.extend(own.map(|caveat| format!("the {which} file {caveat}")));
    }
    let shown = |text: &str| if text.is_empty() { "unknown".into() } else { harmless(text) };
    let mut differs = |what: &str, a: &str, b: &str| {
        if a != b {
            let (a, b) = (shown(a), shown(b));
            caveats.push(format!("{what}: {a} in the first file, {b} in the second"));
        }
    };
    differs("different processor", &a.cpu, &b.cpu);
    differs("different number of cores", &a.cores.to_string(), &b.cores.to_string());
    differs("different kernel", &a.kernel, &b.kernel);
    differs("different compiler", &a.rustc, &b.rustc);
    differs("different unit of the values", &before.unit, &after.unit);
    caveats
}

#[cfg(test)]
mod tests {
    use super::*;
    use heist_bench::record::Machine;

    #[test]
    fn files_are_named_with_their_commits() {
        let record = Record { commit: "abc-dirty".into(), rounds: 1, ..Record::default() };
        let path = Path::new("b.json");
        assert_eq!(named("A", path, &record), "- A is b.json: commit abc-dirty, 1 round\n");
        let found = named("B", path, &Record::default());
        assert_eq!(found, "- B is b.json: an unknown commit, 0 rounds\n");
    }

    #[test]
    fn a_different_unit_is_a_caveat() {
        let of = |unit: &str| Record { unit: unit.into(), ..Record::default() };
        assert!(caveats(&of("ns"), &of("ns")).is_empty());
        let expected = "different unit of the values: ns in the first file, unknown in the second";
        assert_eq!(caveats(&of("ns"), &of("")), [expected]);
    }

    #[test]
    fn caveats_of_a_file_are_repeated() {
        let debug = Record { optimized: Some(false), ..Record::default() };
        let short = Record { complete: Some(false), ..Record::default() };
        let expected = [
            "the first file is of a debug build, whose times say nothing",
            "the second file is of a run that was cut short",
        ];
        assert_eq!(caveats(&debug, &short), expected);
    }

    #[test]
    fn a_different_machine_is_a_caveat() {
        let on = |cpu: &str, cores| Record {
            machine: Machine { cpu: cpu.into(), cores, ..Machine::default() },
            ..Record::default()
        };
        assert!(caveats(&on("A", 2), &on("A", 2)).is_empty());
        let found = caveats(&on("A", 2), &on("B", 4));
        let expected = [
            "different processor: A in the first file, B in the second",
            "different number of cores: 2 in the first file, 4 in the second",
        ];
        assert_eq!(found, expected);
    }
}
