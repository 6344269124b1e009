//! `HEIST_TRACE`: any program that uses heist leaves a file. Each program here is this one, started again.

#![cfg(all(unix, not(any(loom, shuttle))))]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use heist::Pool;
use serde_json::Value;

/// Tells a program what it is to be.
const PART: &str = "HEIST_TEST_PART";

/// A folder that is gone in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("heist-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What the programs do; not a test of its own.
#[test]
#[ignore = "started by the others"]
fn program() {
    match env::var(PART).as_deref() {
        Ok("global") => {
            assert_eq!(heist::join(|| heist::spawn(|| 1).join().unwrap(), || 2), (1, 2))
        }
        Ok("pools") => {
            for workers in 1..=3 {
                let pool = Pool::builder().workers(workers).build().expect("a pool");
                pool.spawn_batch((0..10).map(|_| || ())).join().unwrap();
            }
            let silent = Pool::builder().workers(1).trace(0).build().expect("a pool");
            silent.install(|| ());
        }
        Ok("many") => {
            for _ in 0..100 {
                Pool::builder().workers(1).build().expect("a pool").install(|| ());
            }
        }
        Ok("none") => {}
        other => panic!("{other:?} is no program"),
    }
    // Some tasks are still running, as in a program that does not wait for what it has spawned.
    std::process::exit(0);
}

fn run(part: &str, trace: &Path) -> Output {
    let mut program = Command::new(env::current_exe().expect("this program"));
    program.args(["--exact", "program", "--ignored", "--nocapture"]);
    program.env(PART, part).env("HEIST_TRACE", trace).env("HEIST_WORKERS", "2");
    let output = program.output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    output
}

/// The names of the processes in a file.
fn pools(file: &Path) -> Vec<String> {
    let text = fs::read(file).expect("a file");
    let file: Value = serde_json::from_slice(&text).expect("it is JSON");
    let events = file["traceEvents"].as_array().expect("events");
    let names = events.iter().filter(|event| event["name"] == "process_name");
    names.map(|event| event["args"]["name"].as_str().expect("a name").into()).collect()
}

#[test]
fn the_global_pool_is_in_it() {
    let folder = Folder::new("global");
    let file = folder.0.join("trace.json");
    run("global", &file);
    assert_eq!(pools(&file), ["heist 1: work stealing, 2 workers"]);
}

#[test]
fn all_pools_are_in_it_but_those_that_were_told_otherwise() {
    let folder = Folder::new("pools");
    let file = folder.0.join("trace.json");
    run("pools", &file);
    let expected = [1, 2, 3].map(|n| format!("heist {n}: work stealing, {n} workers"));
    assert_eq!(pools(&file), expected);
}

#[test]
fn the_last_ones_of_many() {
    let folder = Folder::new("many");
    let file = folder.0.join("trace.json");
    run("many", &file);
    assert_eq!(pools(&file).len(), 64);
}

#[test]
fn a_program_without_a_pool_leaves_none() {
    let folder = Folder::new("none");
    let file = folder.0.join("trace.json");
    run("none", &file);
    assert!(!file.exists());
}

#[test]
fn the_number_of_the_process_can_be_in_the_name() {
    let folder = Folder::new("process");
    run("global", &folder.0.join("trace-%p.json"));
    let files: Vec<_> = fs::read_dir(&folder.0).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let name = files[0].file_name().unwrap().to_str().unwrap().to_owned();
    let number = name.strip_prefix("trace-").and_then(|name| name.strip_suffix(".json"));
    assert!(number.is_some_and(|number| number.parse::<u32>().is_ok()), "{name}");
}

#[test]
fn a_file_that_cannot_be_is_an_error_that_says_what_to_do() {
    let folder = Folder::new("nowhere");
    let output = run("global", &folder.0.join("no/such/folder.json"));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("set HEIST_TRACE to a file in a folder that exists"), "{told}");
}
