//! `HEIST_TRACE`: a program that uses heist writes a trace file when it exits.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::thread;

use heist::Pool;
use heist::engine::{Engine, Worker};
use heist_testkit::{process, temp_dir, test_path};
use serde_json::Value;

/// The programs that the other tests start. This is not a test of its own.
#[test]
#[ignore = "started by the others"]
fn program() {
    match process::part().as_deref() {
        Some("global") => {
            assert_eq!(heist::join(|| heist::spawn(|| 1).join().unwrap(), || 2), (1, 2))
        }
        Some("pools") => {
            for workers in 1..=3 {
                let pool = Pool::builder().workers(workers).build().expect("a pool");
                pool.spawn_batch((0..10).map(|_| || ())).join().unwrap();
            }
            let silent = Pool::builder().workers(1).trace(0).build().expect("a pool");
            silent.install(|| ());
        }
        Some("many") => {
            for _ in 0..100 {
                Pool::builder().workers(1).build().expect("a pool").install(|| ());
            }
        }
        Some("engine") => {
            let (engine, workers) = Engine::new(2, false);
            let start = |worker: Worker| thread::spawn(|| worker.run(|| (), || ()));
            let threads: Vec<_> = workers.into_iter().map(start).collect();
            engine.run(|_| ());
            engine.close();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        }
        Some("none") => {}
        other => panic!("{other:?} is no program"),
    }
    // Some tasks may still run, as in a program that does not wait for the tasks that it has spawned.
    std::process::exit(0);
}

fn run(part: &str, trace: &Path) -> Output {
    let mut program = process::command(test_path!("program"), part);
    program.arg("--ignored").env("HEIST_TRACE", trace).env("HEIST_WORKERS", "2");
    let output = process::output_of(program);
    assert!(output.status.success(), "{output:?}");
    output
}

/// Returns the names of the processes in a trace file. Each pool is a process there.
fn pools(file: &Path) -> Vec<String> {
    names(file, "process_name")
}

/// Returns the names of the processes or threads in a trace file.
fn names(file: &Path, of: &str) -> Vec<String> {
    let text = fs::read(file).expect("a file");
    let file: Value = serde_json::from_slice(&text).expect("it is JSON");
    let events = file["traceEvents"].as_array().expect("events");
    let names = events.iter().filter(|event| event["name"] == of);
    names.map(|event| event["args"]["name"].as_str().expect("a name").into()).collect()
}

#[test]
fn the_global_pool_is_traced() {
    let folder = temp_dir();
    let file = folder.path().join("trace.json");
    run("global", &file);
    assert_eq!(pools(&file), ["heist 1: work stealing, 2 workers"]);
}

#[test]
fn every_pool_is_traced_unless_it_opts_out() {
    let folder = temp_dir();
    let file = folder.path().join("trace.json");
    run("pools", &file);
    let expected = [1, 2, 3].map(|n| format!("heist {n}: work stealing, {n} workers"));
    assert_eq!(pools(&file), expected);
}

/// The threads of an engine belong to the caller, and need not have names.
#[test]
fn the_threads_of_an_engine_have_names() {
    let folder = temp_dir();
    let file = folder.path().join("trace.json");
    run("engine", &file);
    assert_eq!(pools(&file), ["heist 1: rayon-core, 2 workers"]);
    let mut threads = names(&file, "thread_name");
    threads.sort();
    assert_eq!(threads, ["thread 0", "thread 1"]);
}

#[test]
fn only_the_newest_pools_are_kept() {
    let folder = temp_dir();
    let file = folder.path().join("trace.json");
    run("many", &file);
    assert_eq!(pools(&file).len(), 64);
}

#[test]
fn without_a_pool_there_is_no_file() {
    let folder = temp_dir();
    let file = folder.path().join("trace.json");
    run("none", &file);
    assert!(!file.exists());
}

#[test]
fn the_file_name_can_contain_the_process_id() {
    let folder = temp_dir();
    run("global", &folder.path().join("trace-%p.json"));
    let files: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let name = files[0].file_name().unwrap().to_str().unwrap().to_owned();
    let number = name.strip_prefix("trace-").and_then(|name| name.strip_suffix(".json"));
    assert!(number.is_some_and(|number| number.parse::<u32>().is_ok()), "{name}");
}

#[test]
fn a_file_that_cannot_be_written_is_reported_with_advice() {
    let folder = temp_dir();
    let output = run("global", &folder.path().join("no/such/folder.json"));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("set HEIST_TRACE to a file in a folder that exists"), "{told}");
}
