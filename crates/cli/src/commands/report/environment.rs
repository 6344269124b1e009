//! Where, with what, and how to do it again.

use heist_bench::record::{Record, usable};
use heist_bench::stats::interval;

use super::html::{section, text};
use crate::units;

/// The sections at the end of the page.
pub(super) fn environment(record: &Record) -> String {
    let lead = "Figures are worth what is known of the machine that they are from.";
    let facts: String = facts(record)
        .into_iter()
        .map(|(name, value)| {
            format!("<div><dt>{}</dt><dd>{}</dd></div>\n", text(&name), text(&value))
        })
        .collect();
    let body = format!("<dl class=\"facts\">\n{facts}</dl>\n");
    section("environment", "Environment", lead, &body) + &reproduce(record)
}

fn facts(record: &Record) -> Vec<(String, String)> {
    let known =
        |value: &str| if value.is_empty() { "unknown".to_owned() } else { value.to_owned() };
    let machine = &record.machine;
    let cores = if machine.cores == 0 { String::new() } else { machine.cores.to_string() };
    let said = |fact: Option<bool>, yes: &str, no: &str| {
        fact.map_or("unknown", |fact| if fact { yes } else { no }).to_owned()
    };
    let build = said(record.optimized, "with optimization", "debug, without optimization");
    let run = said(record.complete, "complete", "cut short");
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
    // One core has nobody to hand it to: that would be the scheduler's time.
    if machine.cores != 1 && usable(&record.hand_off_nanoseconds) {
        let middle = interval(record.hand_off_nanoseconds.iter().copied());
        facts.push(("A cache line from core to core".to_owned(), units::time(middle.median)));
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
            format!("What was typed, at {commit} with changes that are not committed:")
        }
        None if record.commit.is_empty() => {
            "What was typed, at a commit that is not known:".to_owned()
        }
        None => format!("What was typed, at commit {}:", record.commit),
    };
    let command = text(&command(record));
    let body = format!(
        "<div class=\"command\"><pre tabindex=\"0\" aria-label=\"The command\"><code id=\"command\">{command}</code></pre>\
         <button type=\"button\" id=\"copy\" hidden>Copy</button></div>\n"
    );
    section("again", "Do it again", &lead, &body)
}

/// What to type into a shell.
fn command(record: &Record) -> String {
    let arguments = &record.arguments;
    let mut command = program(record);
    // The program before this one was told every case after a word.
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

/// A plain build has no peer but rayon.
fn program(record: &Record) -> String {
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
    fn whoever_came_by_cargo_goes_by_cargo() {
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
    fn what_is_unknown_is_said_to_be() {
        let facts = facts(&Record::default());
        for name in ["Cores in use", "Build", "Run"] {
            assert!(facts.contains(&(name.into(), "unknown".into())), "{facts:?}");
        }
    }

    #[test]
    fn one_core_hands_nothing_over() {
        let mut record = Record { hand_off_nanoseconds: vec![50.0], ..Record::default() };
        let told = |record: &Record| facts(record).iter().any(|(_, value)| value == "50.0 ns");
        assert!(told(&record));
        record.machine.cores = 1;
        assert!(!told(&record));
    }

    #[test]
    fn a_debug_build_and_a_run_that_was_cut_short_are_facts() {
        let (optimized, complete) = (Some(false), Some(false));
        let facts = facts(&Record { optimized, complete, ..Record::default() });
        assert!(facts.contains(&("Build".into(), "debug, without optimization".into())));
        assert!(facts.contains(&("Run".into(), "cut short".into())));
    }
}
