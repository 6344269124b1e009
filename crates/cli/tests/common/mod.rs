//! How the tests run the command.

#![allow(dead_code, reason = "each test binary uses its own part of this module")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// `heist`, in an environment that says nothing of its own.
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
    heed_signals(&mut command);
    command
}

/// Also if whoever started the tests ignores them, as scripts have it for their background jobs: that is inherited.
#[cfg(unix)]
fn heed_signals(command: &mut Command) {
    use std::os::unix::process::CommandExt as _;
    let heed = || {
        for kind in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            // SAFETY: no handler of ours is replaced: this is the child, before it is another program.
            unsafe { libc::signal(kind, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: all that it does may be done between a fork and an exec.
    unsafe { command.pre_exec(heed) };
}

#[cfg(unix)]
pub(crate) fn signal(child: &Child, kind: libc::c_int) {
    // SAFETY: the call only sends a signal, to a child that has not been waited for.
    let outcome = unsafe { libc::kill(child.id() as libc::pid_t, kind) };
    assert_eq!(outcome, 0);
}

/// Runs it to its end.
pub(crate) fn run(arguments: &[&str]) -> Output {
    heist(arguments).output().expect("the command starts")
}

/// What it prints, if it ends with that code.
pub(crate) fn expect(arguments: &[&str], code: i32) -> (String, String) {
    let output = run(arguments);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "heist {}\n{out}\n{err}", arguments.join(" "));
    (out, err)
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("it prints UTF-8")
}

/// A directory that is gone in the end.
pub(crate) struct Directory(pub(crate) PathBuf);

impl Directory {
    /// Of a name that no other test uses.
    pub(crate) fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        // An earlier run may have been killed.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
