//! `heist completions`.

use clap::CommandFactory as _;

use crate::args::{Args, Completions};
use crate::exit::{Exit, Outcome};
use crate::out;

pub(crate) fn run(asked: &Completions) -> Outcome {
    // Not to stdout at once: the generator panics if nobody reads.
    let mut script = Vec::new();
    clap_complete::generate(asked.shell, &mut Args::command(), "heist", &mut script);
    out::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
