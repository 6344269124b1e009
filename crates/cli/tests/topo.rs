//! The contract of `heist topo`: it succeeds on every machine, and shows the defaults that heist uses there.

mod common;

use common::{expect, heist, text};

#[test]
fn it_prints_all_parts() {
    let (out, err) = expect(&["topo"], 0);
    for part in ["machine", "available", "scheduler", "memory is not placed"] {
        assert!(out.contains(part), "{part} is not in\n{out}");
    }
    assert_eq!(err, "");
}

#[test]
fn quiet_prints_one_line() {
    let (out, _) = expect(&["topo", "--quiet"], 0);
    assert!(out.lines().count() == 1 && out.contains("worker"), "{out}");
}

#[test]
fn the_environment_sets_the_number_of_workers() {
    let output = heist(&["topo"]).env("HEIST_WORKERS", "3").output().unwrap();
    assert!(text(&output.stdout).contains("3, from HEIST_WORKERS"), "{output:?}");
}

#[test]
fn a_malformed_environment_is_reported() {
    let output = heist(&["topo"]).env("HEIST_WORKERS", "many").output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("not a number of workers"), "{output:?}");
}

#[test]
fn json_output_parses() {
    let output = heist(&["topo", "--json"]).env("HEIST_WORKERS", "3").output().unwrap();
    let topology: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(topology["workers"], 3);
    assert_eq!(topology["wished"], "3");
    assert!(topology["nodes"].is_array() && topology["granted"].as_u64().is_some());
}
