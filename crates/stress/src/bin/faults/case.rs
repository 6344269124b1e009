//! A case: what it does, how it is to end, and how it is run in a process of its own.

use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How much of a case to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    Short,
    Long,
}

impl Size {
    /// Returns the value for this size.
    pub(crate) fn choose<T>(self, short: T, long: T) -> T {
        match self {
            Self::Short => short,
            Self::Long => long,
        }
    }

    /// A process counts as hanging after this time. It is far more than the slowest case takes on a busy machine.
    fn patience(self) -> Duration {
        Duration::from_secs(self.choose(180, 1_800))
    }
}

/// How the process of a case is to end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ends {
    Well,
    /// By an abort, after a message with these words.
    Aborted(&'static str),
}

/// One fault, or several of a kind.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) ends: Ends,
    pub(crate) run: fn(Size),
}

impl Case {
    /// Returns a case that is to end well.
    pub(crate) fn new(name: &'static str, run: fn(Size)) -> Self {
        Self { name, ends: Ends::Well, run }
    }

    /// Returns a case that is to end by an abort, after a message with these words.
    pub(crate) fn aborted(name: &'static str, words: &'static str, run: fn(Size)) -> Self {
        Self { name, ends: Ends::Aborted(words), run }
    }

    /// Runs the case in a process of its own. Returns whether that ended as it should, and prints a line.
    pub(crate) fn passes(&self, size: Size) -> bool {
        let start = Instant::now();
        let command = match size {
            Size::Short => again(&["--run", self.name]),
            Size::Long => again(&["--long", "--run", self.name]),
        };
        let ended = run(command, size.patience());
        let problem = match (self.ends, &ended.status) {
            (_, None) => Some("hangs".to_owned()),
            (Ends::Well, Some(status)) if status.success() => None,
            (Ends::Aborted(words), Some(status)) if status.signal() == Some(libc::SIGABRT) => {
                (!ended.text.contains(words)).then(|| format!("said nothing of `{words}`"))
            }
            (_, Some(status)) => Some(format!("ended by {status}")),
        };
        match problem {
            None => {
                println!("{}: ok, {:.1} s", self.name, start.elapsed().as_secs_f64());
                true
            }
            Some(problem) => {
                eprintln!("{}: FAILED: {problem}\n{}", self.name, ended.text);
                false
            }
        }
    }
}

/// How a process has ended.
pub(crate) struct Ended {
    /// `None` if it did not end in time, and was killed.
    pub(crate) status: Option<ExitStatus>,
    /// What it has written to its standard error.
    pub(crate) text: String,
}

/// Returns a command that starts this program again.
pub(crate) fn again(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the path of this program"));
    // A backtrace of each planned panic would take most of the time.
    command.args(arguments).env("RUST_BACKTRACE", "0");
    command
}

/// Runs a program, and kills it, with all that it has started, if it does not end in time.
pub(crate) fn run(mut command: Command, patience: Duration) -> Ended {
    // A case that is to abort leaves no core file.
    // SAFETY: the closure makes one system call, and touches no memory but its own.
    unsafe { command.pre_exec(no_core_file) };
    command.process_group(0).stdin(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("a process");
    let mut output = child.stderr.take().expect("a pipe");
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        // What is no text is shown as far as it is one.
        let _ = output.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let status = wait(&mut child, patience);
    if status.is_none() {
        // SAFETY: the call sends a signal to the group of the child, which is not waited for yet.
        unsafe { libc::kill(-(child.id() as libc::pid_t), libc::SIGKILL) };
        let _ = child.wait();
    }
    Ended { status, text: reader.join().expect("the reader does not panic") }
}

fn no_core_file() -> io::Result<()> {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is a valid one, and lives through the call.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) };
    Ok(())
}

fn wait(child: &mut Child, patience: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    while start.elapsed() < patience {
        if let Some(status) = child.try_wait().expect("a child of this process") {
            return Some(status);
        }
        thread::sleep(Duration::from_millis(2));
    }
    None
}
