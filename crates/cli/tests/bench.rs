//! The contract of `heist bench`: where output goes, and which requests are rejected.

mod common;

use std::fs;

use common::{directory, expect, heist, text};
use heist_bench::record::Record;

/// A case that is fast even without optimization.
const QUICK: &str = "ignition/2";

fn measure(more: &[&str]) -> (Option<i32>, String, String) {
    let output = heist(&[&["bench", QUICK, "--rounds", "1"], more].concat()).output().unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn samples_can_go_to_stdout() {
    let directory = directory();
    for name in ["-", "/dev/stdout"] {
        let arguments = ["bench", QUICK, "--rounds", "1", "--json", name];
        let output = heist(&arguments).current_dir(directory.path()).output().unwrap();
        let record: Record = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((record.rounds, record.arguments), (1, arguments.map(str::to_owned).into()));
        assert!(text(&output.stderr).contains("| heist |"), "{output:?}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// The time is up after the first case. A run that has measured all of its cases by then is complete.
#[test]
fn the_first_case_is_measured_however_short_the_time_is() {
    for (cases, measured, note) in [
        (&[QUICK][..], 1, ""),
        (&["range/outside/1e3", QUICK][..], 1, "in the first round: 1 of 2 cases were measured"),
    ] {
        let arguments = [&["bench", "--seconds", "1e-9", "--json", "-"], cases].concat();
        let output = heist(&arguments).output().unwrap();
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{err}");
        let record: Record = serde_json::from_slice(&output.stdout).unwrap();
        let mut names: Vec<_> = record.samples.iter().map(|series| &series.case).collect();
        names.dedup();
        assert_eq!((record.rounds, names.len()), (1, measured), "{err}");
        assert_eq!(record.complete, Some(note.is_empty()), "{err}");
        assert!(err.contains(note) && !err.contains("interrupted"), "{err}");
    }
}

/// The limits that heist's authors have set themselves are of no use to others.
#[test]
fn targets_are_shown_on_request() {
    let arguments = ["bench", "range/outside/1e3", "--rounds", "1"];
    let (out, _) = expect(&arguments, 0);
    let (with_targets, _) = expect(&[&arguments[..], &["--targets"]].concat(), 0);
    assert!(out.contains("as a ratio to rayon") && !out.to_lowercase().contains("target"), "{out}");
    assert!(with_targets.contains("| case | target | heist |"), "{with_targets}");
    assert!(with_targets.contains("Targets: "), "{with_targets}");
}

#[test]
fn an_empty_trace_variable_is_ignored() {
    let output = heist(&["bench", "--list"]).env("HEIST_TRACE", "").output().unwrap();
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn a_file_has_the_samples_and_no_local_paths() {
    let directory = directory();
    let path = directory.path().join("a.json");
    let (code, out, err) = measure(&["--json", path.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("| heist |") && err.contains("round 1/1 done"), "{out}{err}");
    let json = fs::read_to_string(&path).unwrap();
    assert!(!json.contains(directory.path().to_str().unwrap()), "{json}");
    let record: Record = serde_json::from_str(&json).unwrap();
    assert_eq!((record.samples.is_empty(), record.traces.len()), (false, 1));
}

#[cfg(target_os = "linux")]
#[test]
fn tables_are_shown_even_if_the_samples_cannot_be_written() {
    let (code, out, err) = measure(&["--json", "/dev/full"]);
    assert_eq!(code, Some(3), "{err}");
    assert!(out.contains("| heist |") && err.contains("cannot write /dev/full"), "{out}{err}");
    assert_eq!(measure(&["--json", "/dev/null"]).0, Some(0));
}

#[test]
fn nothing_is_measured_if_the_samples_cannot_be_written() {
    let (code, out, err) = measure(&["--json", "no/such/folder/a.json"]);
    assert_eq!((code, out.as_str()), (Some(3), ""));
    assert!(err.contains("there is no folder no/such/folder") && !err.contains("round"), "{err}");
}

#[test]
fn a_list_needs_no_rounds() {
    let (out, err) = expect(&["bench", "uts", "--list", "--rounds", "0"], 0);
    assert!(out.lines().all(|line| line.starts_with("uts/")) && err.is_empty(), "{out}{err}");
}

#[test]
fn numbers_are_at_least_one() {
    for (arguments, why) in [
        (["--rounds", "-3"], "'-3' for '--rounds <N>': not a whole number of at least 1"),
        (["--workers", "-1"], "'-1' for '--workers <LIST>': not a whole number of at least 1"),
        (["--workers", "2,-1"], "'-1' for '--workers <LIST>': not a whole number of at least 1"),
        (["--rounds", "0"], "cannot measure 0 rounds"),
    ] {
        let (_, err) = expect(&[&["bench"], &arguments[..]].concat(), 2);
        assert!(err.contains(why), "{err}");
    }
}

#[test]
fn unknown_names_are_rejected() {
    for arguments in [&["bench", ""][..], &["trace", ""], &["bench", "--peers", "nobody"]] {
        let (_, err) = expect(arguments, 2);
        assert!(err.starts_with("heist: cannot find the "), "{err}");
    }
}

#[test]
fn a_trace_variable_is_answered_with_the_trace_command() {
    let directory = directory();
    for (more, expected) in [(&[][..], "`heist trace` makes a trace"), (&["--quiet"], "")] {
        let output = heist(&[&["bench", "--list"], more].concat())
            .env("HEIST_TRACE", directory.path().join("trace.json"))
            .output()
            .unwrap();
        let err = text(&output.stderr);
        assert!(
            err.trim_end().ends_with(expected) && err.is_empty() == expected.is_empty(),
            "{err}"
        );
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}
