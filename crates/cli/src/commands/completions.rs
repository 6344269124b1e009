//! `heist completions`: prints completion scripts.

use clap::CommandFactory as _;

use crate::args::{Args, Completions};
use crate::exit::{Exit, Outcome};
use crate::out;

pub(crate) fn run(asked: &Completions) -> Outcome {
    // Not written to stdout directly, because the generator panics if the pipe is closed.
    let mut script = Vec::new();
    clap_complete::generate(asked.shell, &mut Args::command(), "heist", &mut script);
    out::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
