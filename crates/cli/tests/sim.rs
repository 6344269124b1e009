//! The contract of `heist sim`: the same seed gives the same file, every figure says that it is simulated, and requests that
//! cannot be simulated are rejected with advice.

mod common;

use std::fs;

use common::{directory, expect, heist, text};

/// Options of a simulation that is fast even without optimization.
const QUICK: [&str; 7] = ["sim", "--cores", "1,2", "--span", "200", "--seeds", "2"];

fn quick(more: &[&str]) -> (String, String) {
    expect(&[&QUICK, more].concat(), 0)
}

/// Writes a file of points and returns its contents.
fn points(name: &str, more: &[&str]) -> Vec<u8> {
    let directory = directory();
    let path = directory.path().join(name);
    quick(&[&["--json", path.to_str().unwrap()], more].concat());
    fs::read(path).unwrap()
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let first = points("a.json", &[]);
    assert_eq!(text(&first), text(&points("b.json", &[])));
    assert_ne!(text(&first), text(&points("a.json", &["--seed", "2"])));
}

/// What ran before in the same process has no effect on a run.
#[test]
fn a_run_does_not_depend_on_those_before_it() {
    let point = |bytes: &[u8], workload: &str| {
        let record: serde_json::Value = serde_json::from_slice(bytes).unwrap();
        let points = record["points"].as_array().unwrap().clone();
        points.into_iter().rfind(|point| point["workload"] == workload).unwrap()
    };
    let alone = points("a.json", &["--workload", "scope"]);
    let after = points("b.json", &["--workload", "spawn,join,scope"]);
    assert_eq!(point(&alone, "scope"), point(&after, "scope"));
}

#[test]
fn a_file_has_all_points_and_the_constants() {
    let bytes = points("a.json", &["--strategy", "all", "--machine", "desktop-16"]);
    let record: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(record["kind"], "heist-simulation");
    assert_eq!(record["machine"]["costs"]["fence"], 2.0);
    // Three strategies, two numbers of cores, two seeds.
    assert_eq!(record["points"].as_array().unwrap().len(), 12);
    let command = record["command"].as_str().unwrap();
    assert!(command.starts_with("heist sim --cores 1,2 --workload join "), "{command}");
}

#[test]
fn tables_say_that_they_are_simulated() {
    let (out, err) = quick(&["--strategy", "work-stealing,global-queue"]);
    let headings: Vec<&str> = out.lines().filter(|line| line.starts_with("###")).collect();
    assert_eq!(headings.len(), 3, "{out}");
    assert!(headings.iter().all(|heading| heading.contains("simulated")), "{out}");
    assert!(out.contains("| source line"), "{out}");
    assert_eq!(err, "");
}

#[test]
fn points_can_go_to_stdout() {
    let output = heist(&[&QUICK[..], &["--json", "-"]].concat()).output().unwrap();
    let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(record["points"].as_array().unwrap().len(), 4);
    assert!(text(&output.stderr).contains("simulated"), "{output:?}");
}

#[test]
fn malformed_values_are_rejected_with_advice() {
    for (arguments, advice) in [
        (&["--cores", "0"][..], "whole numbers from 1 to 256"),
        (&["--cores", "1..257"], "whole numbers from 1 to 256"),
        (&["--cores", "-1"], "whole numbers from 1 to 256"),
        (&["--cores", "64..2"], "write the smaller number first: 2..64"),
        (&["--workload", "fib"], "use one of spawn, join"),
        (&["--strategy", "fifo"], "use one of work-stealing, locked-deques, global-queue, or all"),
        (&["--seeds", "0"], "whole number from 1 to 1000"),
        (&["--seed", "-1"], "whole number from 0"),
        (&["--span", "1"], "whole number from 10 to 100000"),
    ] {
        let (out, err) = expect(&[&["sim"], arguments].concat(), 2);
        assert!(err.starts_with("error:") && err.contains(advice), "{err}");
        assert_eq!(out, "");
    }
}

#[test]
fn machines_must_exist_and_be_large_enough() {
    for (arguments, advice) in [
        (&["--machine", "here", "--cores", "64"][..], "Use --cores 1..2, or a larger machine"),
        (&["--machine", "laptop"], "Use generic, here, server-2x64"),
        (&["--workload", "outside-far", "--cores", "256"], "Use a smaller number for --cores"),
        (&["--seed", "18446744073709551615"], "Use a smaller --seed"),
    ] {
        let (_, err) = expect(&[&["sim"], arguments].concat(), 2);
        assert!(err.starts_with("heist: cannot ") && err.contains(advice), "{err}");
    }
}

#[test]
fn a_machine_without_the_number_of_cores_has_its_own() {
    let (out, _) = expect(&["sim", "--machine", "here", "--span", "200", "--seeds", "1"], 0);
    assert!(out.contains("simulated on dev-2, seed 1"), "{out}");
    assert!(out.contains("\n|     2 |") && !out.contains("\n|     4 |"), "{out}");
}

#[test]
fn a_machine_can_be_a_file() {
    let directory = directory();
    let path = directory.path().join("mine.toml");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../sim/machines/desktop-16.toml");
    let shipped = fs::read_to_string(source).unwrap();
    fs::write(&path, shipped.replace("\"desktop-16\"", "\"mine\"")).unwrap();
    let path = path.to_str().unwrap();
    assert!(quick(&["--machine", path]).0.contains("simulated on mine, seeds 1 to 2"));
    fs::write(path, "name = 7").unwrap();
    let (_, err) = expect(&["sim", "--machine", path], 3);
    assert!(err.contains("Correct the file"), "{err}");
}

#[test]
fn nothing_is_simulated_if_the_points_cannot_be_written() {
    let (out, err) = expect(&["sim", "--json", "no/such/folder/a.json"], 3);
    assert!(err.contains("there is no folder no/such/folder") && out.is_empty(), "{err}");
}

#[test]
fn the_help_says_what_may_be_claimed() {
    let (help, _) = expect(&["sim", "--help"], 0);
    assert!(help.contains("docs/SIMULATION.md") && help.contains("not the speed"), "{help}");
}

#[test]
fn a_page_says_that_it_is_simulated() {
    let directory = directory();
    let [points, page] = ["sim.json", "sim.html"].map(|name| directory.path().join(name));
    let [points, page] = [&points, &page].map(|path| path.to_str().unwrap());
    quick(&["--strategy", "all", "--json", points]);
    expect(&["report", points, "-o", page], 0);
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("<title>heist simulation report</title>"));
    assert!(page.contains("data-chart=\"efficiency\"") && page.contains("heist sim --cores 1,2"));
    let captions = page.split("<figcaption>").skip(1);
    assert!(captions.clone().count() > 0);
    for caption in captions {
        assert!(caption.split("</figcaption>").next().unwrap().contains("simulated"), "{caption}");
    }
}

#[test]
fn samples_and_points_cannot_be_compared() {
    let directory = directory();
    let path = directory.path().join("sim.json");
    let path = path.to_str().unwrap();
    quick(&["--json", path]);
    let (_, err) = expect(&["compare", path, path], 3);
    assert!(err.contains("it is of a simulation"), "{err}");
}
