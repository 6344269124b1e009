//! The environment of the measurement, and the command that repeats it.

use heist_bench::record::{Record, usable};
use heist_bench::stats::interval;

use super::html::{section, text};
use crate::units;

/// Returns the sections at the end of the page.
pub(super) fn environment(record: &Record) -> String {
    let lead = "The machine, the build and the versions with which these figures were measured.";
    section("environment", "Environment", lead, &listed(&facts(record))) + &reproduce(record)
}

/// Returns a list of names and values.
pub(super) fn listed(facts: &[(String, String)]) -> String {
    let fact = |(name, value): &(String, String)| {
        format!("<div><dt>{}</dt><dd>{}</dd></div>\n", text(name), text(value))
    };
    format!("<dl class=\"facts\">\n{}</dl>\n", facts.iter().map(fact).collect::<String>())
}

fn facts(record: &Record) -> Vec<(String, String)> {
    let known =
        |value: &str| if value.is_empty() { "unknown".to_owned() } else { value.to_owned() };
    let machine = &record.machine;
    let cores = if machine.cores == 0 { String::new() } else { machine.cores.to_string() };
    let describe = |fact: Option<bool>, yes: &str, no: &str| {
        fact.map_or("unknown", |fact| if fact { yes } else { no }).to_owned()
    };
    let build = describe(record.optimized, "with optimization", "debug, without optimization");
    let run = describe(record.complete, "complete", "incomplete");
    let mut facts = vec![
        ("Processor".to_owned(), known(&machine.cpu)),
        ("Cores in use".to_owned(), known(&cores)),
        ("Kernel".to_owned(), known(&machine.kernel)),
        ("Compiler".to_owned(), known(&machine.rustc)),
        ("Build".to_owned(), build),
        ("Commit".to_owned(), known(&record.commit)),
        ("Rounds".to_owned(), record.rounds.to_string()),
        ("Run".to_owned(), run),
    ];
    // With one core, the figure would be the time of a context switch.
    if machine.cores != 1 && usable(&record.hand_off_nanoseconds) {
        let middle = interval(record.hand_off_nanoseconds.iter().copied());
        facts.push(("Cache line transfer between cores".to_owned(), units::time(middle.median)));
    }
    if !record.unit.is_empty() {
        facts.push(("Values".to_owned(), record.unit.clone()));
    }
    facts.extend(record.peers.iter().map(|(name, version)| (name.clone(), known(version))));
    facts
}

fn reproduce(record: &Record) -> String {
    let lead = match record.commit.strip_suffix("-dirty") {
        Some(commit) => {
            format!("The command, at commit {commit} with uncommitted changes:")
        }
        None if record.commit.is_empty() => "The command, at an unknown commit:".to_owned(),
        None => format!("The command, at commit {}:", record.commit),
    };
    again(&lead, &command(record))
}

/// Returns the section with the command that repeats a measurement.
pub(super) fn again(lead: &str, command: &str) -> String {
    let command = text(command);
    let body = format!(
        "<div class=\"command\"><pre tabindex=\"0\" aria-label=\"The command\"><code id=\"command\">{command}</code></pre>\
         <button type=\"button\" id=\"copy\" hidden>Copy</button></div>\n"
    );
    section("again", "Reproduce", lead, &body)
}

/// Returns the shell command that repeats the measurement.
fn command(record: &Record) -> String {
    let arguments = &record.arguments;
    let mut command = program(record);
    // An older program took each case with the option `--case`.
    let older = arguments.iter().any(|argument| argument == "--case");
    if older {
        command.push_str(" bench");
    }
    for argument in arguments.iter().filter(|argument| !(older && *argument == "--case")) {
        command.push(' ');
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=+@%".contains(c);
        if !argument.is_empty() && argument.chars().all(plain) {
            command.push_str(argument);
        } else {
            command.push_str(&format!("'{}'", argument.replace('\'', r"'\''")));
        }
    }
    command
}

/// Returns the program: the script that started it, or the command, built with the features that its peers need. A
/// default build has only rayon.
fn program(record: &Record) -> String {
    if let Some(script) = &record.script {
        return script.clone();
    }
    let mut peers = record.peers.keys().filter(|name| *name != "rayon").peekable();
    if peers.peek().is_none() {
        return record.program().to_owned();
    }
    let features = if peers.any(|name| name == "oneTBB") { "peers,tbb" } else { "peers" };
    format!("cargo run --release --features {features} --")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(arguments: &[&str], peers: &[&str]) -> Record {
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let peers = peers.iter().map(|&name| (name.to_owned(), "1".to_owned())).collect();
        Record { arguments, peers, ..Record::default() }
    }

    #[test]
    fn peers_need_a_build_that_has_them() {
        let with = |peers: &[&str]| command(&record(&["bench", "fib"], peers));
        assert_eq!(with(&[]), "heist bench fib");
        assert_eq!(with(&["rayon"]), "heist bench fib");
        let peers = "cargo run --release --features peers -- bench fib";
        assert_eq!(with(&["rayon", "tokio"]), peers);
        let all = "cargo run --release --features peers,tbb -- bench fib";
        assert_eq!(with(&["oneTBB", "tokio"]), all);
    }

    #[test]
    fn runs_by_a_script_are_repeated_by_it() {
        let script = Some("bench/rayon/run.sh".to_owned());
        let record = Record { script, ..record(&["--rounds", "9"], &["rayon"]) };
        assert_eq!(command(&record), "bench/rayon/run.sh --rounds 9");
    }

    #[test]
    fn runs_by_cargo_are_repeated_by_cargo() {
        let record = Record { by_cargo: true, ..record(&["--seconds", "5"], &["rayon"]) };
        assert_eq!(command(&record), "cargo run --release -- --seconds 5");
    }

    #[test]
    fn the_command_can_be_typed_into_a_shell() {
        let typed = |arguments: &[&str]| command(&record(arguments, &["rayon"]));
        assert_eq!(typed(&[]), "heist");
        assert_eq!(typed(&["bench", "--workers", "1,2"]), "heist bench --workers 1,2");
        assert_eq!(typed(&["--case", "fib", "--rounds", "9"]), "heist bench fib --rounds 9");
        assert_eq!(typed(&["a b", "", "it's", "$x"]), r"heist 'a b' '' 'it'\''s' '$x'");
    }

    #[test]
    fn unknown_facts_are_shown_as_unknown() {
        let facts = facts(&Record::default());
        for name in ["Cores in use", "Build", "Run"] {
            assert!(facts.contains(&(name.into(), "unknown".into())), "{facts:?}");
        }
    }

    #[test]
    fn one_core_has_no_transfer_time() {
        let mut record = Record { hand_off_nanoseconds: vec![50.0], ..Record::default() };
        let shown = |record: &Record| facts(record).iter().any(|(_, value)| value == "50.0 ns");
        assert!(shown(&record));
        record.machine.cores = 1;
        assert!(!shown(&record));
    }

    #[test]
    fn debug_builds_and_incomplete_runs_are_shown() {
        let (optimized, complete) = (Some(false), Some(false));
        let facts = facts(&Record { optimized, complete, ..Record::default() });
        assert!(facts.contains(&("Build".into(), "debug, without optimization".into())));
        assert!(facts.contains(&("Run".into(), "incomplete".into())));
    }
}
