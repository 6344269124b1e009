//! The contract of `heist trace`: it writes a file that other tools can open, or none.

mod common;

use std::fs;

use common::{directory, expect, heist, text};

#[test]
fn a_trace_is_a_file() {
    let directory = directory();
    let output = heist(&["trace", "ignition/2"]).current_dir(directory.path()).output().unwrap();
    let out = text(&output.stdout);
    assert!(out.starts_with("trace.json\nignition/2 by heist: "), "{output:?}");
    assert!(out.contains(" events of 2 threads, "), "{out}");
    let bytes = fs::read(directory.path().join("trace.json")).unwrap();
    serde_json::from_slice::<serde_json::Value>(&bytes).unwrap();
}

#[test]
fn a_trace_can_go_to_stdout() {
    let directory = directory();
    let output =
        heist(&["trace", "ignition/2", "-o", "-"]).current_dir(directory.path()).output().unwrap();
    serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap();
    assert!(text(&output.stderr).contains("events of 2 threads"), "{output:?}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn the_global_pool_can_be_traced() {
    let directory = directory();
    let arguments = ["trace", "range/outside/1e6"];
    let output = heist(&arguments).current_dir(directory.path()).output().unwrap();
    let expected = "trace.json\nrange/outside/1e6 by heist: ";
    assert!(text(&output.stdout).starts_with(expected), "{output:?}");
}

#[test]
fn a_trace_can_be_summarized() {
    let directory = directory();
    let run = |arguments: &[&str], code| {
        let output = heist(arguments).current_dir(directory.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        (text(&output.stdout), text(&output.stderr))
    };
    let (_, err) = run(&["trace", "--summary"], 3);
    assert!(err.contains("cannot read a trace from trace.json: "), "{err}");
    let (both, _) = run(&["trace", "ignition/2", "--summary"], 0);
    let (out, err) = run(&["trace", "--summary"], 0);
    assert!(both.starts_with("trace.json\nignition/2 by heist: "), "{both}");
    assert!(both.ends_with(&format!("\n\n{out}")) && err.is_empty(), "{both}{err}");
    assert_eq!(out, run(&["trace", "--summary", "trace.json"], 0).0);
    assert!(out.starts_with("heist 1: work stealing, 2 workers\n"), "{out}");
    for row in ["worker ", "     0 ", "     1 ", "   all "] {
        assert_eq!(out.lines().filter(|line| line.starts_with(row)).count(), 1, "{out}");
    }
    let (line, _) = run(&["trace", "--summary", "--quiet"], 0);
    assert!(line.lines().count() == 1 && out.contains(&line), "{line}{out}");
    assert!(line.contains("% of the time"), "{line}");
}

/// Each of the two kinds of files is refused by the commands for the other one, with the right command.
#[test]
fn traces_and_samples_are_told_apart() {
    let directory = directory();
    let path = directory.path().join("t.json");
    let path = path.to_str().unwrap();
    expect(&["trace", "ignition/2", "-o", path], 0);
    let summary = format!("Summarize it with: heist trace --summary {path}");
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/made-up.json");
    for arguments in [&["report", path][..], &["compare", path, samples]] {
        let (_, err) = expect(arguments, 3);
        assert!(err.contains("it is a trace, which has no samples"), "{err}");
        assert!(err.contains(&summary), "{err}");
    }
    let (_, err) = expect(&["trace", "--summary", samples], 3);
    assert!(err.contains(&format!("Show it with: heist report {samples}")), "{err}");
}

#[test]
fn a_file_is_no_case() {
    let (_, err) = expect(&["trace", "t.json"], 2);
    assert!(err.contains("To summarize it: heist trace --summary t.json"), "{err}");
    let (_, err) = expect(&["trace", "--summary", "t.json", "-o", "u.json"], 2);
    assert!(err.contains("there is nothing to write"), "{err}");
    let (_, err) = expect(&["trace"], 2);
    assert!(err.contains("WORKLOAD"), "{err}");
}

#[test]
fn a_queue_cannot_be_traced() {
    let (_, err) = expect(&["trace", "deque/u64/empty"], 2);
    assert!(err.contains("a queue has no workers"), "{err}");
}

#[test]
fn an_unwritable_path_is_reported_before_the_run() {
    let (out, err) = expect(&["trace", "uts", "-o", "no/such/folder/a.json"], 3);
    assert!(out.is_empty() && err.contains("there is no folder"), "{err}");
}
