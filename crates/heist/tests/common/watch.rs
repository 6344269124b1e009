//! Nobody waits for a test that hangs; and tests that need a process of their own get one.

use std::cell::Cell;
use std::env;
use std::fs;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::{self, Command};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use super::hush::hush;

/// After this a test hangs. Far more than the slowest takes on a machine that does something else besides.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// Says which part of a test the process is to run.
const PART: &str = "HEIST_TEST_PART";

thread_local! {
    static TEST: Cell<&'static str> = const { Cell::new("") };
}

/// Runs a test, given with the path of its function; ends the process, and says why, if the test
/// does not come back.
pub(crate) fn watched(test: &'static str, job: impl FnOnce()) {
    hush();
    // A child gives up before its parent does, and so leaves nothing behind.
    let patience = if env::var_os(PART).is_some() { PATIENCE / 2 } else { PATIENCE };
    let (done, is_done) = mpsc::channel::<()>();
    let watch = thread::spawn(move || {
        if is_done.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
            // Past the harness, which would keep this to itself.
            let _ = writeln!(io::stderr(), "\n{test} hangs. Threads:\n{}", threads());
            process::abort();
        }
    });
    // The harness leaves the name of the binary out.
    TEST.set(test.split_once("::").map_or(test, |(_binary, test)| test));
    let outcome = catch_unwind(AssertUnwindSafe(job));
    drop(done);
    watch.join().expect("a watch");
    outcome.unwrap_or_else(|payload| resume_unwind(payload));
}

/// The name and state of every thread of this process.
fn threads() -> String {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return String::new() };
    let line =
        |task: io::Result<fs::DirEntry>| fs::read_to_string(task.ok()?.path().join("stat")).ok();
    let states =
        tasks.filter_map(line).map(|stat| stat.split(' ').take(3).collect::<Vec<_>>().join(" "));
    states.collect::<Vec<_>>().join("\n")
}

/// Runs one part of the current test in a process of its own, with these changes to its
/// environment.
pub(crate) fn in_child(part: &str, changes: &[(&str, Option<&str>)], job: impl FnOnce()) {
    match env::var(PART) {
        Ok(wanted) if wanted == part => job(),
        Ok(_) => {}
        Err(_) => {
            let mut child = Command::new(env::current_exe().expect("a test binary"));
            child.args(["--exact", TEST.get(), "--nocapture", "--test-threads=1"]);
            child.env(PART, part);
            for (name, value) in changes {
                match value {
                    Some(value) => child.env(name, value),
                    None => child.env_remove(name),
                };
            }
            let output = child.output().expect("a process");
            let (out, err) =
                (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            assert!(output.status.success(), "{part}: {}\n{out}\n{err}", output.status);
            assert!(out.contains("1 passed"), "{part}: no such test\n{out}");
        }
    }
}
