//! `HEIST_TRACE` shows what a program that was written for rayon does, without a change to it. The program is this one, started again.

#![cfg(unix)]

use std::process::Command;
use std::{env, fs};

/// What the program does; not a test of its own.
#[test]
#[ignore = "started by the other"]
fn program() {
    assert_eq!(rayon_core::join(|| 1, || 2), (1, 2));
    let pool = rayon_core::ThreadPoolBuilder::new().num_threads(3).build().expect("a pool");
    pool.install(|| rayon_core::scope(|scope| (0..10).for_each(|_| scope.spawn(|_| ()))));
}

#[test]
fn every_pool_is_in_the_file() {
    let file = env::temp_dir().join(format!("heist-rayon-trace-{}.json", std::process::id()));
    let mut program = Command::new(env::current_exe().expect("this program"));
    program.args(["--exact", "program", "--ignored"]);
    program.env("HEIST_TRACE", &file).env("RAYON_NUM_THREADS", "2");
    let output = program.output().expect("it starts");
    let text = fs::read_to_string(&file);
    let _ = fs::remove_file(&file);
    assert!(output.status.success(), "{output:?}");
    let text = text.expect("a file");
    for expected in [
        "\"heist 1: rayon-core, 2 workers\"",
        "\"heist 2: rayon-core, 3 workers\"",
        "\"name\":\"task\"",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
}
