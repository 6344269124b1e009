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
fn a_queue_cannot_be_traced() {
    let (_, err) = expect(&["trace", "deque/u64/empty"], 2);
    assert!(err.contains("a queue has no workers"), "{err}");
}

#[test]
fn an_unwritable_path_is_reported_before_the_run() {
    let (out, err) = expect(&["trace", "uts", "-o", "no/such/folder/a.json"], 3);
    assert!(out.is_empty() && err.contains("there is no folder"), "{err}");
}
