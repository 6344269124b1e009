//! `heist cluster`: becomes the program `heist-cluster`, which is a package of its own because of its client of NATS.

use std::env;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::process::Command;

use crate::args::Cluster;
use crate::exit::{Exit, Failure, Outcome};

const PROGRAM: &str = "heist-cluster";

pub(crate) fn run(asked: &Cluster) -> Outcome {
    let beside = beside_this_program();
    let mut command = Command::new(beside.unwrap_or_else(|| PROGRAM.into()));
    command.args(&asked.arguments);
    become_it(&mut command).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure {
            exit: Exit::File,
            what: format!("cannot start {PROGRAM}"),
            why: "it is neither beside this program nor in PATH".to_owned(),
            advice: "Install it with `cargo install --path crates/cluster --features command` in heist's repository."
                .to_owned(),
        },
        _ => Failure {
            exit: Exit::System,
            what: format!("cannot start {}", command.get_program().display()),
            why: error.to_string(),
            advice: "Check that the file can be executed.".to_owned(),
        },
    })
}

/// Returns the program that was installed together with this one.
fn beside_this_program() -> Option<PathBuf> {
    let program = format!("{PROGRAM}{}", env::consts::EXE_SUFFIX);
    let file = env::current_exe().ok()?.with_file_name(program);
    file.is_file().then_some(file)
}

/// Replaces this process, so that signals reach the other program, and its exit code is the one of this command.
#[cfg(unix)]
fn become_it(command: &mut Command) -> io::Result<Exit> {
    use std::os::unix::process::CommandExt as _;
    Err(command.exec())
}

/// Waits for the other program, and ends this process with its exit code.
#[cfg(not(unix))]
fn become_it(command: &mut Command) -> io::Result<Exit> {
    let status = command.status()?;
    std::process::exit(status.code().unwrap_or(Exit::System as i32))
}
