//! `heist cluster worker`: becomes a program of the user, with the role of a worker.

use std::process::{Command, ExitCode};

use heist_cluster::Cluster;

use crate::Failure;
use crate::args::Worker;

pub(crate) fn run(asked: &Worker) -> Result<ExitCode, Failure> {
    // A setting that is invalid is better said here than by the program.
    Cluster::from_env()?;
    let (program, arguments) = asked.command.split_first().expect("the parser requires it");
    let mut command = Command::new(program);
    command.args(arguments).env("HEIST_CLUSTER_ROLE", "worker");
    if let Some(node) = &asked.node {
        command.env("HEIST_CLUSTER_NODE", node);
    }
    if let Some(threads) = asked.threads {
        command.env("HEIST_CLUSTER_THREADS", threads.to_string());
    }
    if asked.stay {
        command.env("HEIST_CLUSTER_STAY", "1");
    }
    let (error, code) = become_it(&mut command);
    match error {
        None => Ok(code),
        Some(error) => {
            let program = program.display();
            Err(format!("cannot start {program}: {error}\n  Name a program as in a shell, for example ./program").into())
        }
    }
}

/// Replaces this process, so that signals reach the program.
#[cfg(unix)]
fn become_it(command: &mut Command) -> (Option<std::io::Error>, ExitCode) {
    use std::os::unix::process::CommandExt as _;
    (Some(command.exec()), ExitCode::FAILURE)
}

/// Waits for the program.
#[cfg(not(unix))]
fn become_it(command: &mut Command) -> (Option<std::io::Error>, ExitCode) {
    match command.status() {
        Ok(status) => {
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            (None, code.map_or(ExitCode::FAILURE, ExitCode::from))
        }
        Err(error) => (Some(error), ExitCode::FAILURE),
    }
}
