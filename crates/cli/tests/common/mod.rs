//! Helpers that run the command.

#![allow(dead_code, reason = "each test binary uses its own part of this module")]

use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

/// Returns the command, without the environment variables that affect it.
pub(crate) fn heist(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heist"));
    command.args(arguments).stdin(Stdio::null());
    for name in [
        "COLUMNS",
        "LINES",
        "NO_COLOR",
        "CLICOLOR",
        "CLICOLOR_FORCE",
        "RUST_BACKTRACE",
        "HEIST_WORKERS",
        "HEIST_TRACE",
    ] {
        command.env_remove(name);
    }
    #[cfg(unix)]
    restore_signals(&mut command);
    command
}

/// Restores the default effect of signals. A script that runs the tests in the background makes its children
/// ignore them, and the command would inherit that.
#[cfg(unix)]
fn restore_signals(command: &mut Command) {
    use std::os::unix::process::CommandExt as _;
    let restore = || {
        for kind in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            // SAFETY: this runs in the child before `exec`, where no handler of this process is needed any
            // more.
            unsafe { libc::signal(kind, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: `signal` is async-signal-safe, so that it may be called between `fork` and `exec`.
    unsafe { command.pre_exec(restore) };
}

#[cfg(unix)]
pub(crate) fn signal(child: &Child, kind: libc::c_int) {
    // SAFETY: the call only sends a signal. The child has not been waited for, so the id is still its own.
    let outcome = unsafe { libc::kill(child.id() as libc::pid_t, kind) };
    assert_eq!(outcome, 0);
}

/// Runs the command and waits for it.
pub(crate) fn run(arguments: &[&str]) -> Output {
    heist(arguments).output().expect("the command starts")
}

/// Returns the output of the command, and checks its exit code.
pub(crate) fn expect(arguments: &[&str], code: i32) -> (String, String) {
    let output = run(arguments);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "heist {}\n{out}\n{err}", arguments.join(" "));
    (out, err)
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the output is UTF-8")
}

/// Creates a directory that is removed when the value is dropped.
pub(crate) fn directory() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}
