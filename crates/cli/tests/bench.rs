//! The contract of `heist bench`: what goes where, and which requests make no sense.

mod common;

use std::fs;

use common::{Directory, expect, heist, text};
use heist_bench::record::Record;

/// A case that takes no time even without optimization.
const QUICK: &str = "ignition/2";

fn measure(more: &[&str]) -> (Option<i32>, String, String) {
    let output = heist(&[&["bench", QUICK, "--rounds", "1"], more].concat()).output().unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn samples_can_go_to_stdout() {
    let directory = Directory::new("bench-stdout");
    for name in ["-", "/dev/stdout"] {
        let arguments = ["bench", QUICK, "--rounds", "1", "--json", name];
        let output = heist(&arguments).current_dir(&directory.0).output().unwrap();
        let record: Record = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((record.rounds, record.arguments), (1, arguments.map(str::to_owned).into()));
        assert!(text(&output.stderr).contains("| heist |"), "{output:?}");
    }
    assert_eq!(fs::read_dir(&directory.0).unwrap().count(), 0);
}

#[test]
fn an_empty_wish_for_a_trace_is_none() {
    let output = heist(&["bench", "--list"]).env("HEIST_TRACE", "").output().unwrap();
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn a_file_has_the_samples_and_no_folder_of_the_machine() {
    let directory = Directory::new("bench-file");
    let path = directory.0.join("a.json");
    let (code, out, err) = measure(&["--json", path.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("| heist |") && err.contains("round 1/1 done"), "{out}{err}");
    let json = fs::read_to_string(&path).unwrap();
    assert!(!json.contains(directory.0.to_str().unwrap()), "{json}");
    let record: Record = serde_json::from_str(&json).unwrap();
    assert_eq!((record.samples.is_empty(), record.traces.len()), (false, 1));
}

#[cfg(target_os = "linux")]
#[test]
fn the_tables_are_shown_also_if_the_samples_cannot_be_kept() {
    let (code, out, err) = measure(&["--json", "/dev/full"]);
    assert_eq!(code, Some(3), "{err}");
    assert!(out.contains("| heist |") && err.contains("cannot write /dev/full"), "{out}{err}");
    assert_eq!(measure(&["--json", "/dev/null"]).0, Some(0));
}

#[test]
fn what_cannot_be_kept_is_not_measured() {
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
fn numbers_are_from_one_up() {
    for (arguments, why) in [
        (["--rounds", "-3"], "'-3' for '--rounds <N>': not a whole number from 1 up"),
        (["--workers", "-1"], "'-1' for '--workers <LIST>': not a whole number from 1 up"),
        (["--workers", "2,-1"], "'-1' for '--workers <LIST>': not a whole number from 1 up"),
        (["--rounds", "0"], "cannot measure 0 rounds"),
    ] {
        let (_, err) = expect(&[&["bench"], &arguments[..]].concat(), 2);
        assert!(err.contains(why), "{err}");
    }
}

#[test]
fn names_that_nobody_has() {
    for arguments in [&["bench", ""][..], &["trace", ""], &["bench", "--peers", "nobody"]] {
        let (_, err) = expect(arguments, 2);
        assert!(err.starts_with("heist: cannot find the "), "{err}");
    }
}

#[test]
fn a_wish_for_a_trace_is_told_where_to_go() {
    let directory = Directory::new("bench-environment");
    for (more, expected) in [(&[][..], "`heist trace` makes a trace"), (&["--quiet"], "")] {
        let output = heist(&[&["bench", "--list"], more].concat())
            .env("HEIST_TRACE", directory.0.join("trace.json"))
            .output()
            .unwrap();
        let err = text(&output.stderr);
        assert!(
            err.trim_end().ends_with(expected) && err.is_empty() == expected.is_empty(),
            "{err}"
        );
    }
    assert_eq!(fs::read_dir(&directory.0).unwrap().count(), 0);
}
