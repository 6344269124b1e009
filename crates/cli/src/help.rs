//! The examples that the help ends with: each can be typed as it stands. No line is wider than 80 columns.

macro_rules! top {
    () => {
        "\
Examples:
  heist                                 the duel: a table, a page and a trace
  heist topo                            the machine as the scheduler sees it
  heist bench fib --json fib.json       measure the cases of fib, keep samples
  heist report fib.json -o fib.html     make a page of that
  heist trace duel/skewed -o skew.json  see what each worker did, in Perfetto
  heist soak --minutes 10               look for lost tasks

`heist help COMMAND` says more of each."
    };
}

pub(crate) const TOP: &str = top!();

pub(crate) const TOP_LONG: &str = concat!(
    top!(),
    "

Results go to stdout, progress and errors to stderr. Ctrl-C ends a run with what
it has found so far; a second one, half a second later, ends it at once.

Exit codes:
    0  done, and every result was right
    1  a result was wrong, or a task was lost or ran twice
    2  the command line makes no sense
    3  a file could not be read or written, or is not what it should be
    4  the system has refused something that is needed
  130  ended by Ctrl-C, SIGTERM or SIGHUP; what was found has been shown

Environment:
  HEIST_WORKERS  how many workers a pool has that was not told
  HEIST_TRACE        where any program that uses heist writes its trace; what is
                     measured here has none, which `heist trace` is for
  NO_COLOR           no colours, if not empty"
);

pub(crate) const BENCH: &str = "\
Examples:
  heist bench --list                      the names of all cases
  heist bench fib                         those of fib, as fib/1 and fib/2
  heist bench duel/skewed thief           of skewed; any with thief in its name
  heist bench spawn --peers heist,rayon   only these two
  heist bench fib --workers 2 --rounds 5  fewer of all: sooner, and less sure
  heist bench fib --json before.json      keep samples, to compare or report
  heist bench --list | grep pipeline      output is for pipes, too

A name is that of a case; or the beginning of names, up to a slash; or what some
have between slashes; or else any part of them: the first that there is.";

pub(crate) const COMPARE: &str = "\
Examples:
  heist bench fib --json before.json    measure,
  heist bench fib --json after.json     change something, and measure again,
  heist compare before.json after.json  see whether that made a difference

Intervals are those of the rounds of one process each. Processes differ as well:
repeat each side before you believe a small difference.";

pub(crate) const REPORT: &str = "\
Examples:
  heist bench fib --json fib.json       measure, and keep the samples
  heist report fib.json                 a page of them: report.html
  heist report fib.json -o fib.html     the same, elsewhere";

pub(crate) const TRACE: &str = "\
Examples:
  heist bench --list                    the names of all cases
  heist trace duel/skewed               what each worker did: trace.json
  heist trace duel/skewed -o skew.json  the same, elsewhere
  HEIST_TRACE=mine.json ./my-program    the same of a program that uses heist

Open the file in https://ui.perfetto.dev or chrome://tracing.";

pub(crate) const SOAK: &str = "\
Examples:
  heist soak                         a minute of random shapes
  heist soak --minutes 60            an hour of them
  heist soak --seed 7                the same shapes every time
  heist soak --seed 7 --shape 31415  only one of them, over and over
  heist soak --quiet && echo fine    for scripts: exit code 1 if a task was lost";

pub(crate) const TOPO: &str = "\
Examples:
  heist topo                              what is there, what heist makes of it
  heist topo --quiet                      in a line
  heist topo --json                       all of it, for programs
  taskset -c 0 heist topo                 with one processor
  HEIST_WORKERS=3 heist topo          with a wish of your own
  docker run --cpus 1.5 IMAGE heist topo  within the limit of a container";

pub(crate) const COMPLETIONS: &str = "\
Where they go, and are found by the next shell that you start:
  mkdir -p ~/.local/share/bash-completion/completions
  heist completions bash > ~/.local/share/bash-completion/completions/heist
  mkdir -p ~/.zfunc
  heist completions zsh > ~/.zfunc/_heist    # with fpath+=~/.zfunc in ~/.zshrc
  mkdir -p ~/.config/fish/completions
  heist completions fish > ~/.config/fish/completions/heist.fish
  heist completions powershell >> $PROFILE
  mkdir -p ~/.config/elvish
  heist completions elvish >> ~/.config/elvish/rc.elv";
