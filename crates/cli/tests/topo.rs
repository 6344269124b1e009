//! The contract of `heist topo`: it always has an answer, and says what heist makes of it.

mod common;

use common::{expect, heist, text};

#[test]
fn it_prints() {
    let (out, err) = expect(&["topo"], 0);
    for part in ["the machine", "granted", "what heist makes of it", "not used yet"] {
        assert!(out.contains(part), "{part} is not in\n{out}");
    }
    assert_eq!(err, "");
}

#[test]
fn quiet_is_a_line() {
    let (out, _) = expect(&["topo", "--quiet"], 0);
    assert!(out.lines().count() == 1 && out.contains("worker"), "{out}");
}

#[test]
fn the_environment_decides() {
    let output = heist(&["topo"]).env("HEIST_WORKERS", "3").output().unwrap();
    assert!(text(&output.stdout).contains("3, as HEIST_WORKERS says"), "{output:?}");
}

#[test]
fn an_environment_that_makes_no_sense_is_told() {
    let output = heist(&["topo"]).env("HEIST_WORKERS", "many").output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("not a number of workers"), "{output:?}");
}

#[test]
fn json_is_json() {
    let output = heist(&["topo", "--json"]).env("HEIST_WORKERS", "3").output().unwrap();
    let topology: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(topology["workers"], 3);
    assert_eq!(topology["wished"], "3");
    assert!(topology["nodes"].is_array() && topology["granted"].as_u64().is_some());
}
