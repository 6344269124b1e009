//! `HEIST_TRACE` writes a trace of a program that was written for rayon, without a change to the program.

use std::fs;

use heist_testkit::{process, temp_dir, test_path};

/// A task whose name is in the trace.
fn planned_part(_: &rayon_core::Scope<'_>) {}

/// The program that the test below starts. This is not a test of its own.
#[test]
#[ignore = "started by the other"]
fn program() {
    assert_eq!(rayon_core::join(|| 1, || 2), (1, 2));
    let pool = rayon_core::ThreadPoolBuilder::new().num_threads(3).build().expect("a pool");
    pool.install(|| rayon_core::scope(|scope| (0..10).for_each(|_| scope.spawn(planned_part))));
}

#[test]
fn every_pool_is_in_the_file() {
    let directory = temp_dir();
    let file = directory.path().join("trace.json");
    let mut program = process::command(test_path!("program"), "program");
    program.arg("--ignored").env("HEIST_TRACE", &file).env("RAYON_NUM_THREADS", "2");
    let output = process::output_of(program);
    let text = fs::read_to_string(&file);
    assert!(output.status.success(), "{output:?}");
    let text = text.expect("a file");
    for expected in [
        "\"heist 1: rayon-core, 2 workers\"",
        "\"heist 2: rayon-core, 3 workers\"",
        "\"cat\":\"task\"",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    // The name of a part tells which function it was made of.
    let is_part =
        |event: &str| event.contains("\"cat\":\"task\"") && event.contains("planned_part");
    assert!(text.lines().any(is_part), "{text}");
}
