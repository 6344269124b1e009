//! Aborts a test that hangs, and waits for conditions.

use std::fs;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::panics::silence_planned_panics;

/// After this time a test counts as hanging. It is far more than the slowest test takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// Runs a test, given with the [path](crate::test_path) of its function. If the test does not return,
/// reports the threads of the process and aborts.
///
/// # Panics
///
/// Panics if the test does.
pub fn watched(test: &'static str, body: impl FnOnce()) {
    silence_planned_panics();
    // A child process gives up before its parent does, and is not left behind.
    let patience = if crate::process::is_child() { PATIENCE / 2 } else { PATIENCE };
    let (done, is_done) = mpsc::channel::<()>();
    let watchdog = thread::spawn(move || {
        if is_done.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
            // Not `eprintln`: the test harness would capture it.
            let _ = writeln!(io::stderr(), "\n{test} hangs. Threads:\n{}", threads());
            process::abort();
        }
    });
    crate::process::set_current_test(test);
    let outcome = catch_unwind(AssertUnwindSafe(body));
    drop(done);
    watchdog.join().expect("the watchdog does not panic");
    outcome.unwrap_or_else(|payload| resume_unwind(payload));
}

/// Returns the number, the name and the state of every thread of this process, one per line.
fn threads() -> String {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return String::new() };
    let line =
        |task: io::Result<fs::DirEntry>| fs::read_to_string(task.ok()?.path().join("stat")).ok();
    let states =
        tasks.filter_map(line).map(|stat| stat.split(' ').take(3).collect::<Vec<_>>().join(" "));
    states.collect::<Vec<_>>().join("\n")
}

/// Waits until a condition holds.
///
/// # Panics
///
/// Panics with the description of the condition if it never holds.
pub fn eventually(condition: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE / 3;
    while !holds() {
        assert!(Instant::now() < deadline, "waited in vain: {condition}");
        thread::sleep(Duration::from_millis(1));
    }
}
