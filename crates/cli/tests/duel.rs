//! The whole duel, as a newcomer starts it, but with less time.

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};
use std::thread;

#[cfg(unix)]
use common::signal;
use common::{directory, text};
use heist_bench::record::Record;
use tempfile::TempDir;

/// Returns the command, to be run in a directory.
fn heist(directory: &TempDir, arguments: &[&str]) -> Command {
    let mut command = common::heist(arguments);
    command.current_dir(directory).env_remove("CARGO_MANIFEST_DIR");
    command
}

fn run(directory: &TempDir, arguments: &[&str]) -> Output {
    heist(directory, arguments).output().unwrap()
}

fn record(directory: &TempDir) -> Record {
    let text = fs::read_to_string(directory.path().join("target/heist/duel.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_duel_ends_with_a_table_and_files() {
    let directory = directory();
    let output = run(&directory, &["--seconds", "5"]);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    for part in ["heist on ", "uniform, ", "work stealing", "rayon", "Losses ", "heist topo"] {
        assert!(stdout.contains(part), "{part} is not in:\n{stdout}");
    }
    assert!(!stdout.contains('\x1b') && !stderr.contains('\x1b'), "{stdout}{stderr}");
    let paths = stdout.split_whitespace().filter(|word| word.starts_with("target/heist/"));
    for path in paths.clone() {
        assert!(directory.path().join(path).is_file(), "{path}");
    }
    assert!(paths.count() >= 2, "{stdout}");
}

#[test]
fn a_slow_machine_shows_partial_results() {
    let directory = directory();
    let output = run(&directory, &["--seconds", "0.1", "--quiet"]);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!((output.status.code(), stderr.as_str()), (Some(0), ""), "{stdout}");
    assert!(stdout.contains("the time was up"), "{stdout}");
    let record = record(&directory);
    assert_eq!(record.rounds, 1);
    let names: Vec<_> = record.samples.iter().map(|series| series.by.as_str()).collect();
    assert_eq!(&names[..4], ["heist", "heist-locked", "heist-global", "rayon"]);
}

#[test]
fn a_missing_folder_is_reported_before_measuring() {
    let directory = directory();
    fs::write(directory.path().join("target"), "a file").unwrap();
    let output = run(&directory, &[]);
    let stderr = text(&output.stderr);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(3), ""), "{stderr}");
    assert!(stderr.contains("cannot create the folder target/heist"), "{stderr}");
}

#[test]
fn an_unwritable_file_is_reported_before_measuring() {
    for name in ["report.html", "trace.json", "duel.json"] {
        let directory = directory();
        fs::create_dir_all(directory.path().join("target/heist").join(name)).unwrap();
        let output = run(&directory, &[]);
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert_eq!((output.status.code(), stdout.as_str()), (Some(3), ""), "{stderr}");
        assert!(stderr.contains(&format!("{name}: it is a folder")), "{stderr}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn tables_are_shown_even_if_a_file_cannot_be_written() {
    let directory = directory();
    fs::create_dir_all(directory.path().join("target/heist")).unwrap();
    std::os::unix::fs::symlink("/dev/full", directory.path().join("target/heist/report.html"))
        .unwrap();
    let output = run(&directory, &["--seconds", "0.1", "--quiet"]);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(3), "{stdout}{stderr}");
    assert!(stderr.contains("cannot write target/heist/report.html"), "{stderr}");
    for part in ["uniform, ", "Losses ", "\nSamples ", "Run next"] {
        assert!(stdout.contains(part), "{part} is not in:\n{stdout}");
    }
    assert!(!stdout.contains("\nPage "), "{stdout}");
    assert_eq!(record(&directory).rounds, 1);
}

#[test]
fn a_malformed_environment_is_refused() {
    let directory = directory();
    let output = heist(&directory, &[]).env("HEIST_WORKERS", "many").output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(text(&output.stderr).contains("not a number of workers"), "{output:?}");
    assert!(!directory.path().join("target").exists());
}

#[test]
fn the_duel_ignores_the_default_number_of_workers() {
    let directory = directory();
    let head = |command: &mut Command| {
        let stdout = text(&command.output().unwrap().stdout);
        stdout.split("\n\n").next().unwrap().to_owned()
    };
    let mut command = heist(&directory, &["--seconds", "0.1", "--quiet"]);
    let without = head(&mut command);
    assert!(without.contains("worker"), "{without}");
    assert_eq!(head(command.env("HEIST_WORKERS", "13")), without);
}

#[test]
fn commands_reject_the_seconds_of_the_duel() {
    for command in ["topo", "soak", "bench"] {
        let output = run(&directory(), &["--seconds", "5", command]);
        assert_eq!(output.status.code(), Some(2));
        let err = text(&output.stderr);
        assert!(err.contains("--seconds before a command applies only to the duel"), "{err}");
        assert!(err.contains("`heist soak --seconds 5`"), "{err}");
    }
}

#[cfg(unix)]
#[test]
fn a_duel_without_measurements_leaves_no_files() {
    let directory = directory();
    let mut command = heist(&directory, &[]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !directory.path().join("target/heist").exists() {
        thread::yield_now();
    }
    signal(&child, libc::SIGINT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    // It may have measured something before the signal arrived.
    let measured = output.stdout.contains(&b'\n');
    assert_eq!(directory.path().join("target").exists(), measured, "{output:?}");
}

#[cfg(unix)]
#[test]
fn an_interrupted_duel_shows_its_results() {
    let directory = directory();
    // Enough time on any machine for a second round, whose start reports the first.
    let mut command = heist(&directory, &["--seconds", "600"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Once a round is reported, there are results to show.
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("round 1 took")));
    signal(&child, libc::SIGINT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let stdout = text(&output.stdout);
    assert!(stdout.contains("interrupted after"), "{stdout}");
    let record = record(&directory);
    assert!(record.rounds >= 1 && record.complete == Some(false));
    let page = fs::read_to_string(directory.path().join("target/heist/report.html")).unwrap();
    assert!(page.contains("is of a run that was cut short"));
    assert_eq!(page.contains("debug build"), record.optimized == Some(false));
}
