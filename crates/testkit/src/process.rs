//! Parts of a test in a process of their own: this test binary, started again for the same test.

use std::cell::Cell;
use std::env;
use std::process::{Command, Output};

/// Names the part of a test that a child process runs.
const PART: &str = "HEIST_TEST_PART";

thread_local! {
    static CURRENT_TEST: Cell<&'static str> = const { Cell::new("") };
}

pub(crate) fn set_current_test(test: &'static str) {
    CURRENT_TEST.set(test);
}

/// Returns whether this process is a child, started with [`command`] or [`in_child`].
#[must_use]
pub fn is_child() -> bool {
    part().is_some()
}

/// Returns the part of the test that this process runs, if it is a child.
#[must_use]
pub fn part() -> Option<String> {
    env::var(PART).ok()
}

/// Returns a command that runs one part of a test of this binary. The test is given with its
/// [path](crate::test_path).
///
/// # Panics
///
/// Panics if the path of this binary is unknown.
#[must_use]
pub fn command(test: &str, part: &str) -> Command {
    // The harness leaves the name of the binary out.
    let test = test.split_once("::").map_or(test, |(_binary, test)| test);
    let mut child = Command::new(env::current_exe().expect("the path of this test binary"));
    child.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(PART, part);
    child
}

/// Returns a command that runs one part of the current test, which is under
/// [`watched`](crate::watchdog::watched).
#[must_use]
pub fn command_for_current_test(part: &str) -> Command {
    command(CURRENT_TEST.get(), part)
}

/// Runs a command, and returns its output.
///
/// # Panics
///
/// Panics if the command cannot be started.
#[must_use]
pub fn output_of(mut command: Command) -> Output {
    command.output().expect("a child process can be started")
}

/// Checks that a child of [`command`] has run one test, which passed.
///
/// # Panics
///
/// Panics with all that the child has printed if it failed, or if there is no such test.
pub fn assert_passed(name: &str, output: &Output) {
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {}\n{out}\n{err}", output.status);
    assert!(out.contains("1 passed"), "{name}: no such test\n{out}");
}

/// Runs one part of the current test in a process of its own, with these changes to its environment. The
/// test is under [`watched`](crate::watchdog::watched).
///
/// # Panics
///
/// Panics if the part fails.
pub fn in_child(part: &str, changes: &[(&str, Option<&str>)], body: impl FnOnce()) {
    match self::part() {
        Some(wanted) if wanted == part => body(),
        Some(_) => {}
        None => {
            let mut child = command_for_current_test(part);
            for (name, value) in changes {
                match value {
                    Some(value) => child.env(name, value),
                    None => child.env_remove(name),
                };
            }
            assert_passed(part, &output_of(child));
        }
    }
}
