//! The contract of the output: colours only on request or on a terminal, and pipes may close.

mod common;

use std::io::Read as _;
use std::process::Stdio;

use common::{expect, heist, run, text};

const ESCAPE: char = '\x1b';

#[test]
fn a_pipe_has_no_colours() {
    for arguments in
        [&["topo"][..], &["--help"], &["sok"], &["soak", "--minutes", "0.0001", "--seed", "1"]]
    {
        let output = run(arguments);
        assert!(
            !text(&output.stdout).contains(ESCAPE) && !text(&output.stderr).contains(ESCAPE),
            "{arguments:?}"
        );
    }
}

#[test]
fn no_color_overrides_clicolor_force() {
    for arguments in [&["topo"][..], &["--help"], &["sok"]] {
        let output =
            heist(arguments).env("NO_COLOR", "1").env("CLICOLOR_FORCE", "1").output().unwrap();
        assert!(
            !text(&output.stdout).contains(ESCAPE) && !text(&output.stderr).contains(ESCAPE),
            "{arguments:?}"
        );
    }
}

#[test]
fn color_always_has_colours_and_never_has_none() {
    for arguments in [&["topo"][..], &["--help"], &["sok"]] {
        let with = |when: &str| {
            let output = heist(&[arguments, &["--color", when]].concat()).output().unwrap();
            text(&output.stdout) + &text(&output.stderr)
        };
        assert!(with("always").contains(ESCAPE), "{arguments:?}");
        assert!(!with("never").contains(ESCAPE), "{arguments:?}");
    }
}

/// The reader closes the pipe at once, as `| head -0` does.
#[test]
fn a_closed_pipe_is_a_quiet_success() {
    for arguments in [
        &["topo"][..],
        &["completions", "zsh"],
        &["--help"],
        &["soak", "--minutes", "0.0001", "--quiet"],
    ] {
        let mut child =
            heist(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut err = String::new();
        child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        assert_eq!((child.wait().unwrap().code(), err.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn a_closed_stderr_does_not_matter() {
    let mut child = heist(&["soak", "--minutes", "0.0001"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported() {
    for arguments in ["topo", "--help", "--version"] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = heist(&[arguments]).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{arguments}");
        assert!(text(&output.stderr).starts_with("heist: cannot print the result: "), "{output:?}");
    }
}

/// A command that does not measure has no results to show, so that signals end it.
#[cfg(unix)]
#[test]
fn a_command_that_waits_for_a_file_ends_on_a_signal() {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Command;

    let directory = common::directory();
    let pipe = directory.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut child = heist(&["report", "pipe"]).current_dir(directory.path()).spawn().unwrap();
    // Opening succeeds once the command reads.
    let writer = std::fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    common::signal(&child, libc::SIGTERM);
    drop(writer);
    assert_eq!(child.wait().unwrap().signal(), Some(15));
}

#[test]
fn completions_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let (script, _) = expect(&["completions", shell], 0);
        for word in ["soak", "topo", "--minutes", "--color"] {
            // Fish writes options without their dashes.
            assert!(script.contains(word.trim_start_matches('-')), "{shell}: {word}");
        }
    }
}
