//! One process: how it is started, how long we wait, what it has said.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::{Process, Side};
use crate::args::Compare;
use crate::json::{read_number, read_numbers, read_text};

/// Far longer than any case takes, also on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs a case. An error names the case and the side.
pub(super) fn run(args: &Compare, side: Side, case: &str) -> Result<Process, String> {
    let program = match side {
        Side::Stock => &args.stock,
        Side::Heist => &args.heist,
    };
    let mut child = start(program, args, case)?;
    let outcome = outcome(&mut child, LIMIT).and_then(|line| {
        found(&line).ok_or_else(|| format!("it printed what we do not understand: {line}"))
    });
    outcome.map_err(|reason| format!("{case} with {} failed: {reason}", side.name()))
}

fn start(program: &Path, args: &Compare, case: &str) -> Result<Child, String> {
    Command::new(program)
        .args(["run", case])
        .args(["--threads", &args.threads.to_string()])
        .args(["--millis", &args.millis.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| {
            let program = program.display();
            format!("cannot start {program} ({error}); bench/rayon/run.sh builds it")
        })
}

/// What it has printed, if all was well. No process is left, whatever happens.
fn outcome(child: &mut Child, limit: Duration) -> Result<String, String> {
    let mut stdout = child.stdout.take().expect("it is a pipe");
    let (sender, receiver) = mpsc::channel();
    // A thread that reads does not look at the clock, so it takes nothing from the process.
    let reader = thread::spawn(move || {
        let mut text = String::new();
        let outcome = stdout.read_to_string(&mut text).map(|_| text);
        // Nobody is there any more if that took too long.
        let _ = sender.send(outcome);
    });
    let received = receiver.recv_timeout(limit);
    if received.is_err() {
        // If it has just ended by itself, that is as well.
        let _ = child.kill();
    }
    let status = child.wait().map_err(|error| format!("it cannot be waited for ({error})"))?;
    reader.join().expect("reading does not panic");
    let text = received.map_err(|_| format!("it had not ended after {} s", limit.as_secs()))?;
    if !status.success() {
        return Err(format!("{status}"));
    }
    text.map_err(|error| format!("what it prints cannot be read ({error})"))
}

fn found(line: &str) -> Option<Process> {
    Some(Process {
        rayon_core: read_text(line, "rayon_core")?.into(),
        samples: read_numbers(line, "samples")?,
        cpu_millis: read_number(line, "cpu_milliseconds")?,
        switches: read_number(line, "switches")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::tests::args;

    fn shell(script: &str) -> Result<String, String> {
        let child = Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn();
        outcome(&mut child.expect("there is a shell"), LIMIT)
    }

    #[test]
    fn what_was_printed_comes_back() {
        assert_eq!(shell("echo 1"), Ok("1\n".into()));
    }

    #[test]
    fn a_failure_is_one() {
        assert!(shell("echo 1; exit 101").is_err());
    }

    #[test]
    fn who_takes_too_long_is_stopped() {
        let child = Command::new("sleep").arg("60").stdout(Stdio::piped()).spawn();
        let outcome = outcome(&mut child.expect("one can sleep"), Duration::from_millis(20));
        assert!(outcome.unwrap_err().contains("had not ended"));
    }

    #[test]
    fn a_program_that_is_not_there_is_said() {
        let message = run(&args(), Side::Stock, "idle").unwrap_err();
        assert!(message.contains("run.sh builds it"), "{message}");
    }

    #[test]
    fn a_line_is_understood() {
        let line = "{\"rayon_core\":\"1.13.0 from a path\",\"cpu_milliseconds\":7.5,\
                    \"switches\":3,\"samples\":[1.5,2]}";
        let process = found(line).unwrap();
        assert_eq!((process.cpu_millis, process.switches), (7.5, 3.0));
        assert_eq!(process.samples, [1.5, 2.0]);
        assert_eq!(found("{}"), None);
    }
}
