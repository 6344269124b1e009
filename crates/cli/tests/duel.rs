//! The whole duel, as a newcomer starts it, with less time.

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};
use std::thread;

#[cfg(unix)]
use common::signal;
use common::{Directory, text};
use heist_bench::record::Record;

impl Directory {
    fn heist(&self, arguments: &[&str]) -> Command {
        let mut command = common::heist(arguments);
        command.current_dir(&self.0).env_remove("CARGO_MANIFEST_DIR");
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.heist(arguments).output().unwrap()
    }

    fn record(&self) -> Record {
        let text = fs::read_to_string(self.0.join("target/heist/duel.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }
}

#[test]
fn a_duel_ends_with_a_table_and_files() {
    let directory = Directory::new("duel-whole");
    let output = directory.run(&["--seconds", "5"]);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    for part in ["heist on ", "uniform, ", "work stealing", "rayon", "Losses ", "heist topo"] {
        assert!(stdout.contains(part), "{part} is not in:\n{stdout}");
    }
    assert!(!stdout.contains('\x1b') && !stderr.contains('\x1b'), "{stdout}{stderr}");
    let paths = stdout.split_whitespace().filter(|word| word.starts_with("target/heist/"));
    for path in paths.clone() {
        assert!(directory.0.join(path).is_file(), "{path}");
    }
    assert!(paths.count() >= 2, "{stdout}");
}

#[test]
fn a_slow_machine_shows_what_there_is() {
    let directory = Directory::new("duel-slow");
    let output = directory.run(&["--seconds", "0.1", "--quiet"]);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!((output.status.code(), stderr.as_str()), (Some(0), ""), "{stdout}");
    assert!(stdout.contains("the time was up"), "{stdout}");
    let record = directory.record();
    assert_eq!(record.rounds, 1);
    let names: Vec<_> = record.samples.iter().map(|series| series.by.as_str()).collect();
    assert_eq!(&names[..4], ["heist", "heist-locked", "heist-global", "rayon"]);
}

#[test]
fn a_folder_that_cannot_be_made_is_said_before_anything_is_measured() {
    let directory = Directory::new("duel-refused");
    fs::write(directory.0.join("target"), "a file").unwrap();
    let output = directory.run(&[]);
    let stderr = text(&output.stderr);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(3), ""), "{stderr}");
    assert!(stderr.contains("cannot make the folder target/heist"), "{stderr}");
}

#[test]
fn so_is_a_file_that_cannot_be_written() {
    for name in ["report.html", "trace.json", "duel.json"] {
        let directory = Directory::new("duel-occupied");
        fs::create_dir_all(directory.0.join("target/heist").join(name)).unwrap();
        let output = directory.run(&[]);
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert_eq!((output.status.code(), stdout.as_str()), (Some(3), ""), "{stderr}");
        assert!(stderr.contains(&format!("{name}: it is a folder")), "{stderr}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_tables_are_shown_also_if_a_file_cannot_be_written() {
    let directory = Directory::new("duel-full");
    fs::create_dir_all(directory.0.join("target/heist")).unwrap();
    std::os::unix::fs::symlink("/dev/full", directory.0.join("target/heist/report.html")).unwrap();
    let output = directory.run(&["--seconds", "0.1", "--quiet"]);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(3), "{stdout}{stderr}");
    assert!(stderr.contains("cannot write target/heist/report.html"), "{stderr}");
    for part in ["uniform, ", "Losses ", "\nSamples ", "Show me more"] {
        assert!(stdout.contains(part), "{part} is not in:\n{stdout}");
    }
    assert!(!stdout.contains("\nPage "), "{stdout}");
    assert_eq!(directory.record().rounds, 1);
}

#[test]
fn an_environment_that_makes_no_sense_is_refused() {
    let directory = Directory::new("duel-environment");
    let output = directory.heist(&[]).env("HEIST_WORKERS", "many").output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(text(&output.stderr).contains("not a number of workers"), "{output:?}");
    assert!(!directory.0.join("target").exists());
}

#[test]
fn the_workers_are_those_of_the_duel_whatever_the_environment_says() {
    let directory = Directory::new("duel-workers");
    let head = |command: &mut Command| {
        let stdout = text(&command.output().unwrap().stdout);
        stdout.split("\n\n").next().unwrap().to_owned()
    };
    let mut command = directory.heist(&["--seconds", "0.1", "--quiet"]);
    let without = head(&mut command);
    assert!(without.contains("worker"), "{without}");
    assert_eq!(head(command.env("HEIST_WORKERS", "13")), without);
}

#[test]
fn a_command_has_no_seconds() {
    let output = Directory::new("duel-seconds").run(&["--seconds", "5", "topo"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--seconds is for the duel"));
}

#[cfg(unix)]
#[test]
fn a_duel_that_has_measured_nothing_leaves_nothing() {
    let directory = Directory::new("duel-nothing");
    let mut command = directory.heist(&[]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !directory.0.join("target/heist").exists() {
        thread::yield_now();
    }
    signal(&child, libc::SIGINT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    // Unless it was quicker than we were.
    let measured = output.stdout.contains(&b'\n');
    assert_eq!(directory.0.join("target").exists(), measured, "{output:?}");
}

#[cfg(unix)]
#[test]
fn an_interrupted_duel_ends_with_what_it_has() {
    let directory = Directory::new("duel-interrupted");
    // So long that there will be a second round, which tells of the first, on any machine.
    let mut command = directory.heist(&["--seconds", "600"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Once it has told of a round, there is something to show.
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("round 1 took")));
    signal(&child, libc::SIGINT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let stdout = text(&output.stdout);
    assert!(stdout.contains("interrupted after"), "{stdout}");
    let record = directory.record();
    assert!(record.rounds >= 1 && record.complete == Some(false));
    let page = fs::read_to_string(directory.0.join("target/heist/report.html")).unwrap();
    assert!(page.contains("is of a run that was cut short"));
    assert_eq!(page.contains("debug build"), record.optimized == Some(false));
}
