//! The command line.

use std::ffi::OsString;
use std::num::NonZero;
use std::path::PathBuf;

use clap::{ArgGroup, Parser, Subcommand};

/// Runs a server for trials, shows what happens on a cluster, and starts and drains workers.
///
/// A cluster runs a pipeline on several machines: see docs/CLUSTER.md.
#[derive(Debug, Parser)]
#[command(name = "heist cluster", bin_name = "heist cluster", version, after_help = TOP)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const TOP: &str = "\
Examples:
  heist cluster up                      start a server for this machine
  heist cluster worker -- ./program     start a worker of your program
  heist cluster status                  show runs, rates and workers
  heist cluster drain left-4711         have one worker leave

The variables HEIST_CLUSTER_URL, HEIST_CLUSTER_CREDENTIALS, HEIST_CLUSTER_CA,
HEIST_CLUSTER_CERT and HEIST_CLUSTER_KEY name the server, as for your program.

Exit codes:
  0  success
  1  the server or a worker did not do what was asked: stderr says why
  2  the command line is invalid
`worker` becomes the program that it starts, and ends with its exit code.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a NATS server for this machine, which ends with Ctrl-C
    #[command(after_help = UP)]
    Up(Up),
    /// Show runs, rates, outstanding batches and workers
    #[command(after_help = STATUS)]
    Status(Status),
    /// Start a program of yours as a worker
    #[command(after_help = WORKER)]
    Worker(Worker),
    /// Have workers finish what they have started and leave
    #[command(after_help = DRAIN)]
    Drain(Drain),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Up {
    /// Port on the loopback interface; 0 takes a free one
    #[arg(long, value_name = "N", default_value_t = 4222)]
    pub(crate) port: u16,
    /// Folder for the files of the server [default: heist-cluster in $XDG_STATE_HOME or ~/.local/state]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) dir: Option<PathBuf>,
}

const UP: &str = "\
Examples:
  heist cluster up                  on the port 4222, where programs look for it
  heist cluster up --port 0         on a free port, which it prints
  heist cluster up --dir /tmp/nats  with its files in another folder

The server has no password, and only processes of this machine can reach it.
docs/CLUSTER.md says how to start one for several machines. The program is
`nats-server` in PATH, or the one that HEIST_NATS_SERVER names.";

#[derive(Debug, clap::Args)]
pub(crate) struct Status {
    /// Show it once, also in a terminal
    #[arg(long)]
    pub(crate) once: bool,
    /// Print JSON, for scripts
    #[arg(long)]
    pub(crate) json: bool,
}

const STATUS: &str = "\
Examples:
  heist cluster status                        every second, until Ctrl-C
  heist cluster status --once                 once
  heist cluster status | grep right           once, because it is piped
  heist cluster status --json | jq '.jobs[]'  everything, for scripts

Rates are those since the last refresh, or since the run began if it is shown
once. `busy` is the share of the time of its threads that a node has computed.";

#[derive(Debug, clap::Args)]
pub(crate) struct Worker {
    /// Name of the node [default: the name of the machine and the number of the process]
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// Number of threads [default: that of a pool]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZero<usize>>,
    /// Wait for the next run when one has ended
    #[arg(long)]
    pub(crate) stay: bool,
    /// Your program and its arguments: the same program as the coordinator's
    #[arg(value_name = "COMMAND", required = true, last = true)]
    pub(crate) command: Vec<OsString>,
}

const WORKER: &str = "\
Examples:
  heist cluster worker -- ./program words.txt       serve one run
  heist cluster worker --stay -- ./program          serve one run after another
  heist cluster worker --node right -- ./program    with a name for `drain`

A worker is the program that calls `run_on`, with HEIST_CLUSTER_ROLE=worker in
its environment. This command sets the variable and becomes the program. It
starts nothing again: use systemd or a container for that.";

#[derive(Debug, clap::Args)]
#[command(group(ArgGroup::new("which").required(true).args(["node", "all"])))]
pub(crate) struct Drain {
    /// The worker, by its name in `heist cluster status`
    pub(crate) node: Option<String>,
    /// All workers of all jobs
    #[arg(long)]
    pub(crate) all: bool,
}

const DRAIN: &str = "\
Examples:
  heist cluster drain right        have the worker with this name leave
  heist cluster drain --all        have all workers of all jobs leave
  heist cluster status --once      see who is left

A worker finishes what it has started and gives back the rest. Then `run_on`
returns in its process, as after SIGTERM.";

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_parser_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_worker_needs_a_program_and_a_drain_needs_a_node() {
        for line in ["worker", "worker ./program", "drain", "drain a --all", "status --twice"] {
            let words = ["heist-cluster"].into_iter().chain(line.split(' '));
            assert!(Args::try_parse_from(words).is_err(), "{line}");
        }
    }
}
