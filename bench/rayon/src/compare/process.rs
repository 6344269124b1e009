//! One process: how it is started, how long to wait for it, and what it printed.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::args::Compare;
use crate::worker::Process;

/// Far longer than any case takes, even on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A case to be measured by a program.
#[derive(Debug)]
pub(super) struct Job {
    program: PathBuf,
    pub(super) case: String,
    threads: String,
    millis: String,
}

impl Job {
    pub(super) fn new(program: &Path, case: &str, args: &Compare) -> Self {
        Self {
            program: program.into(),
            case: case.into(),
            threads: args.threads.to_string(),
            millis: args.millis().to_string(),
        }
    }

    /// Runs the program and waits for what it prints.
    pub(super) fn run(&self) -> Result<Process, String> {
        let mut child = Command::new(&self.program)
            .args(["run", &self.case, "--threads", &self.threads, "--millis", &self.millis])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| {
                let program = self.program.display();
                format!("cannot start {program} ({error}); bench/rayon/run.sh builds it")
            })?;
        let line = outcome(&mut child, LIMIT)?;
        match serde_json::from_str(&line) {
            Ok(Process { runs, .. }) if runs.is_empty() => Err("it measured nothing".into()),
            Ok(found) => Ok(found),
            Err(error) => Err(format!("it printed an unexpected line ({error}): {line}")),
        }
    }
}

/// Returns what the process printed, if it succeeded. The process has ended when this returns, in any case.
fn outcome(child: &mut Child, limit: Duration) -> Result<String, String> {
    let mut stdout = child.stdout.take().expect("it is a pipe");
    let (sender, receiver) = mpsc::channel();
    // A thread that blocks on the pipe takes no processor time from the process, unlike one that polls.
    let reader = thread::spawn(move || {
        let mut text = String::new();
        let outcome = stdout.read_to_string(&mut text).map(|_| text);
        // The receiver is gone if that took too long.
        let _ = sender.send(outcome);
    });
    let received = receiver.recv_timeout(limit);
    if received.is_err() {
        // This fails if the process has just ended by itself, which is fine.
        let _ = child.kill();
    }
    let status = child.wait().map_err(|error| format!("waiting for it failed ({error})"))?;
    reader.join().expect("reading does not panic");
    let text = received.map_err(|_| format!("it had not ended after {} s", limit.as_secs()))?;
    if !status.success() {
        return Err(format!("{status}"));
    }
    text.map_err(|error| format!("its output cannot be read ({error})"))
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
    fn output_is_returned() {
        assert_eq!(shell("echo 1"), Ok("1\n".into()));
    }

    #[test]
    fn a_failing_process_is_an_error() {
        assert!(shell("echo 1; exit 101").is_err());
    }

    #[test]
    fn a_process_that_takes_too_long_is_killed() {
        let child = Command::new("sleep").arg("60").stdout(Stdio::piped()).spawn();
        let outcome = outcome(&mut child.expect("there is `sleep`"), Duration::from_millis(20));
        assert!(outcome.unwrap_err().contains("had not ended"));
    }

    #[test]
    fn a_missing_program_is_an_error_that_says_how_to_build_it() {
        let args = args();
        let message = Job::new(&args.stock, "idle", &args).run().unwrap_err();
        assert!(message.contains("run.sh builds it"), "{message}");
    }
}
