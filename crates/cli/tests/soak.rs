//! The contract of `heist soak`: it ends in time, reports what it ran, and says how to repeat it.

mod common;

use common::{expect, heist, text};

#[test]
fn a_second_of_shapes() {
    let (out, err) = expect(&["soak", "--minutes", "0.02", "--seed", "11"], 0);
    for part in
        ["queues", "pools", "forks", "loops and sorts", "pipelines", "nothing was lost", "seed 11"]
    {
        assert!(out.contains(part), "{part} is not in\n{out}");
    }
    // The shapes contain panics, none of which is printed.
    assert!(err.starts_with("soak: 2 s, seed 11\n") && !err.contains("panicked"), "{err}");
}

#[test]
fn the_time_can_be_given_in_seconds() {
    let (out, err) = expect(&["soak", "--seconds", "0.5", "--seed", "11"], 0);
    assert!(out.contains("nothing was lost"), "{out}");
    assert!(err.starts_with("soak: 1 s, seed 11\n"), "{err}");
}

#[test]
fn quiet_prints_one_line() {
    let (out, err) = expect(&["soak", "--minutes", "0.005", "--quiet"], 0);
    assert!(out.starts_with("ok: ") && out.lines().count() == 1, "{out}");
    assert_eq!(err, "");
}

#[test]
fn the_shortest_run_has_one_shape() {
    let (out, _) = expect(&["soak", "--minutes", "1e-9", "--quiet"], 0);
    assert!(out.starts_with("ok: 1 shape in "), "{out}");
}

#[test]
fn one_shape_over_and_over() {
    // The fourth of five kinds.
    let (out, _) = expect(&["soak", "--minutes", "0.005", "--seed", "1", "--shape", "3"], 0);
    let shapes = |name: &str| {
        out.lines()
            .find(|line| line.starts_with(name))
            .unwrap()
            .split_whitespace()
            .rev()
            .nth(3)
            .unwrap()
            .to_owned()
    };
    assert_eq!([shapes("queues"), shapes("pools"), shapes("forks"), shapes("pipelines")], ["0"; 4]);
    assert_ne!(shapes("loops"), "0");
}

#[test]
fn panics_are_not_printed_even_with_backtraces() {
    let output = heist(&["soak", "--minutes", "0.02", "--seed", "5"])
        .env("RUST_BACKTRACE", "1")
        .output()
        .unwrap();
    let err = text(&output.stderr);
    assert!(err.starts_with("soak: 2 s, seed 5\n") && !err.contains("panicked"), "{err}");
}

#[test]
fn a_pool_that_cannot_start_is_no_failed_check() {
    let output = heist(&["soak"]).env("HEIST_WORKERS", "many").output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert!(text(&output.stderr).contains("not a number of workers"), "{output:?}");
}

#[cfg(target_os = "linux")]
mod interrupted {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::process::{Child, Command, Stdio};

    use super::*;
    use common::signal;

    /// Starts a run that is long enough to be interrupted, and waits for its first line.
    fn begun() -> (Child, BufReader<std::process::ChildStderr>) {
        let mut child = heist(&["soak", "--minutes", "5", "--seed", "2"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut err = BufReader::new(child.stderr.take().unwrap());
        err.read_line(&mut String::new()).unwrap();
        (child, err)
    }

    #[test]
    fn ctrl_c_ends_it_with_a_summary() {
        for kind in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            let (mut child, mut err) = begun();
            signal(&child, kind);
            let (mut out, mut rest) = (String::new(), String::new());
            child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
            err.read_to_string(&mut rest).unwrap();
            assert_eq!(child.wait().unwrap().code(), Some(130), "{out}{rest}");
            assert!(
                out.contains("pipelines") && out.contains("interrupted:") && out.contains("seed 2"),
                "{out}"
            );
            assert_eq!(rest, "");
        }
    }

    /// `nohup` and the background jobs of scripts ignore signals.
    #[test]
    fn ignored_signals_stay_ignored() {
        let script = "trap '' INT HUP; exec \"$0\" \"$@\"";
        let mut child = Command::new("sh")
            .args(["-c", script, env!("CARGO_BIN_EXE_heist"), "soak", "--minutes", "0.02"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut err = BufReader::new(child.stderr.take().unwrap());
        err.read_line(&mut String::new()).unwrap();
        signal(&child, libc::SIGINT);
        signal(&child, libc::SIGHUP);
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}
