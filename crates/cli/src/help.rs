//! The examples at the end of the help texts. Each can be typed as it is. No line is wider than 80 columns.

macro_rules! top {
    () => {
        "\
Examples:
  heist                                 run the duel: tables, a page, a trace
  heist topo                            show the machine
  heist bench fib --json fib.json       measure the fib cases, keep the samples
  heist report fib.json -o fib.html     make a page from the samples
  heist trace duel/skewed -o skew.json  record each worker, view it in Perfetto
  heist soak --minutes 10               check that no task is lost
  heist sim --cores 1..256              simulate how it scales
  heist cluster status                  show pipelines that several machines run

Run `heist help COMMAND` for the options and examples of a command."
    };
}

pub(crate) const TOP: &str = top!();

pub(crate) const TOP_LONG: &str = concat!(
    top!(),
    "

Results go to stdout, progress and errors to stderr. Ctrl-C ends a run and shows
the results so far. A second Ctrl-C, half a second later, ends it immediately.

Exit codes:
    0  success: every result was verified
    1  verification failed: a result was wrong, or a task was lost or ran twice
    2  the command line is invalid
    3  a file could not be read or written, or has the wrong contents
    4  the system refused a resource, such as a thread
  130  ended by Ctrl-C, SIGTERM or SIGHUP, with the results so far

Environment:
  HEIST_WORKERS  default number of workers
  HEIST_TRACE    file to which a program that uses heist writes its trace.
                 Benchmarks ignore it; use `heist trace` instead.
  NO_COLOR       disables colours unless empty"
);

pub(crate) const BENCH: &str = "\
Examples:
  heist bench --list                      list the names of all cases
  heist bench fib                         the fib cases, such as fib/1 and fib/2
  heist bench duel/skewed thief           the skewed cases, and those with thief
  heist bench spawn --peers heist,rayon   only these two peers
  heist bench fib --workers 2 --rounds 5  faster, but less certain
  heist bench fib sort --seconds 30       as many rounds as fit into 30 seconds
  heist bench fib --json before.json      keep the samples to compare or report
  heist bench --list | grep pipeline      output can be piped

WORKLOAD matches by exact name, prefix, component or substring. The first of
these that matches anything is used.";

pub(crate) const COMPARE: &str = "\
Examples:
  heist bench fib --json before.json    measure
  heist bench fib --json after.json     change something and measure again
  heist compare before.json after.json  see whether it made a difference

Each interval covers the rounds of one process. Processes differ as well: repeat
both sides before you trust a small difference.";

pub(crate) const REPORT: &str = "\
Examples:
  heist bench fib --json fib.json       measure and keep the samples
  heist report fib.json                 make report.html from them
  heist report fib.json -o fib.html     write the page to another file
  heist sim --json sim.json             simulate and keep the points
  heist report sim.json                 make a page from them";

pub(crate) const TRACE: &str = "\
Examples:
  heist bench --list                    list the names of all cases
  heist trace duel/skewed               write what each worker did to trace.json
  heist trace duel/skewed -o skew.json  write it to another file
  heist trace --summary                 show who did what in trace.json
  heist trace --summary skew.json       show who did what in another file
  heist trace duel/skewed --summary     record it and show who did what
  HEIST_TRACE=mine.json ./my-program    trace your own program that uses heist
  heist trace --summary mine.json       show who did what in it

Open the file in https://ui.perfetto.dev or chrome://tracing to see when.";

pub(crate) const SOAK: &str = "\
Examples:
  heist soak                         run random workloads for a minute
  heist soak --minutes 60            run them for an hour
  heist soak --seconds 5             run them for five seconds
  heist soak --seed 7                run the same workloads every time
  heist soak --seed 7 --shape 31415  repeat only one of them
  heist soak --quiet && echo fine    in scripts: exit code 1 if a check failed";

pub(crate) const SIM: &str = "\
Examples:
  heist sim                                   joins on 1 to 64 virtual cores
  heist sim --cores 1..256 --strategy all     the three strategies, up to 256
  heist sim --workload scope,sort --cores 64  two workloads on 64 cores
  heist sim --machine server-2x64             two sockets of 64 cores each
  heist sim --machine mine.toml               a machine that a file describes
  heist sim --json sim.json                   keep all points
  heist report sim.json -o sim.html           make a page from them

The code that ships runs on virtual cores in virtual time. The result shows
where threads wait for each other, not the speed of a real machine:
docs/SIMULATION.md says what may be claimed. The same seed gives the same
result with the same build of heist.

Machines: generic, server-2x64, server-4x24, arm-64, desktop-16, dev-2;
`here` is dev-2, the machine with two processors on which the constants were
measured.";

pub(crate) const TOPO: &str = "\
Examples:
  heist topo                              the machine and heist's defaults on it
  heist topo --quiet                      a summary in one line
  heist topo --json                       everything, for scripts
  taskset -c 0 heist topo                 with one processor
  HEIST_WORKERS=3 heist topo              with a given number of workers
  docker run --cpus 1.5 IMAGE heist topo  within the limit of a container";

pub(crate) const CLUSTER: &str = "\
Examples:
  heist cluster up                    start a server for this machine
  heist cluster worker -- ./program   start a worker of your program
  heist cluster status                show runs, rates and workers
  heist cluster drain left-4711       have one worker leave
  heist cluster status --help         the options of one of them

This is the program `heist-cluster`, beside `heist` or in PATH. Install it with
  cargo install --path crates/cluster --features command";

pub(crate) const COMPLETIONS: &str = "\
Install the script where your shell finds it, then start a new shell:
  mkdir -p ~/.local/share/bash-completion/completions
  heist completions bash > ~/.local/share/bash-completion/completions/heist
  mkdir -p ~/.zfunc
  heist completions zsh > ~/.zfunc/_heist    # with fpath+=~/.zfunc in ~/.zshrc
  mkdir -p ~/.config/fish/completions
  heist completions fish > ~/.config/fish/completions/heist.fish
  heist completions powershell >> $PROFILE
  mkdir -p ~/.config/elvish
  heist completions elvish >> ~/.config/elvish/rc.elv";
