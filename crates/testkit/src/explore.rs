//! How a loom model is explored, and how much it must explore.

use std::fs::{self, File};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

pub use crate::models;

/// A scenario to explore.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// The name of the model and of its test.
    pub name: &'static str,
    /// One execution. It must drop everything that it creates.
    pub run: fn(),
    /// The largest number of preemptions of one execution; `None` for no limit.
    pub preemptions: Option<usize>,
    /// The least number of executions that a full exploration has.
    pub floor: usize,
}

impl Model {
    /// Explores the model completely, and returns the number of executions.
    ///
    /// # Panics
    ///
    /// Panics if a check of the model fails.
    #[must_use]
    pub fn explore(self) -> usize {
        self.explore_most(None)
    }

    /// Explores the model completely, or until there were so many executions, and returns their number.
    fn explore_most(self, most: Option<usize>) -> usize {
        let executions = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&executions);
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = self.preemptions;
        builder.max_branches = 10_000;
        if most.is_some() {
            builder.max_permutations = most;
            // Loom looks only now and then.
            builder.checkpoint_interval = 1;
        }
        builder.check(move || {
            count.fetch_add(1, Relaxed);
            (self.run)();
        });
        executions.load(Relaxed)
    }

    /// Explores the model completely.
    ///
    /// # Panics
    ///
    /// Panics if a check of the model fails, or if too little was explored.
    pub fn must_hold(self) {
        let executions = self.explore();
        println!("{}: {executions} executions", self.name);
        assert!(
            executions >= self.floor,
            "{} explored {executions} executions, fewer than {}: it does not model what it says",
            self.name,
            self.floor,
        );
    }
}

/// Names the model that a child process explores.
const MODEL: &str = "HEIST_TWIN_MODEL";
/// Names the ordering that the child process weakens; empty for none.
const SITE: &str = "HEIST_TWIN_SITE";
/// The number of executions after which the child process ends, if it is set.
const MOST: &str = "HEIST_TWIN_MOST";

/// Enough executions to show that a child process does not fail by itself.
const SOME: usize = 1_000;

/// What loom reports if no thread can go on.
pub const DEADLOCK: &str = "deadlock; threads";
/// What loom reports of two accesses to the same place that are not ordered.
pub const RACE: &str = "Causality violation";

/// What loom reports if an execution does not end. It is not a failure of the model: nothing was shown.
const ENDLESS: &str = "exceeded maximum number of branches";
/// What the child prints when it knows its model and its site.
const BEGUN: &str = "twin begun";
/// After this time a child process counts as hanging.
const PATIENCE: Duration = Duration::from_secs(600);

/// Returns whether an execution of this model fails with this site weakened (none if it is empty), and reports
/// `message`.
///
/// A model that fails may bring down its process, because destructors run after loom's execution has
/// ended. The model is therefore explored in a process of its own: this test binary, started again for the
/// test `child`.
///
/// # Panics
///
/// Panics with all that the child process has printed if it neither explored the whole model nor reported
/// `message`: it failed for another reason, an execution did not end, or there is no such test, model or site.
#[must_use]
pub fn fails(child: &str, model: &Model, site: &str, message: &str) -> bool {
    let (ended, printed) = explore_in_child(child, model.name, site, None);
    let verdict = verdict(ended, &printed, message);
    let name = model.name;
    verdict.unwrap_or_else(|error| panic!("{name}, {site:?} weakened: {error}:\n{printed}"))
}

/// Checks that a model that is to be shown wrong elsewhere holds by itself.
///
/// # Panics
///
/// Panics with all that the child process has printed if it did not explore the whole model.
pub fn must_hold_in_child(child: &str, model: &Model) {
    hold_in_child(child, model, None);
}

/// Checks that a model does not fail in a child process by itself: its first executions. A test of its own explores the whole
/// model, by the same code.
///
/// # Panics
///
/// Panics with all that the child process has printed if it failed.
pub fn must_begin_in_child(child: &str, model: &Model) {
    hold_in_child(child, model, Some(SOME));
}

fn hold_in_child(child: &str, model: &Model, most: Option<usize>) {
    let (ended, printed) = explore_in_child(child, model.name, "", most);
    assert_eq!(verdict(ended, &printed, NEVER), Ok(false), "{} by itself:\n{printed}", model.name);
}

/// No line of the output has this.
const NEVER: &str = "\n\n\0";

/// Returns whether a child that has ended successfully or not, or not in time, has shown a failure, from what it has
/// printed.
fn verdict(ended: Option<bool>, printed: &str, message: &str) -> Result<bool, &'static str> {
    if !printed.contains(BEGUN) {
        return Err("no such test, model or site");
    }
    match ended {
        None => Err("it hangs"),
        Some(true) if printed.contains("1 passed") => Ok(false),
        Some(true) => Err("it has not run"),
        Some(false) if printed.contains(ENDLESS) => Err("an execution does not end"),
        Some(false) if printed.contains(message) => Ok(true),
        Some(false) => Err("it fails for another reason"),
    }
}

/// Returns whether the child process was successful, if it ended in time, and what it has printed.
fn explore_in_child(
    child: &str,
    model: &str,
    site: &str,
    most: Option<usize>,
) -> (Option<bool>, String) {
    let this = std::env::current_exe().expect("the path of this test binary");
    let dir = crate::temp_dir();
    let path = dir.path().join("printed");
    let file = File::create(&path).expect("a temporary file");
    let mut child = Command::new(this)
        .args(["--exact", child, "--ignored", "--nocapture"])
        .env(MODEL, model)
        .env(SITE, site)
        .env(MOST, most.map_or(String::new(), |most| most.to_string()))
        // Names of functions are not messages.
        .env("RUST_BACKTRACE", "0")
        .stdout(file.try_clone().expect("a second handle"))
        .stderr(file)
        .spawn()
        .expect("a child process can be started");
    let deadline = Instant::now() + PATIENCE;
    let ended = loop {
        if let Some(status) = child.try_wait().expect("it is our child") {
            break Some(status.success());
        }
        if Instant::now() > deadline {
            child.kill().expect("it is our child");
            child.wait().expect("it is our child");
            break None;
        }
        thread::sleep(Duration::from_millis(5));
    };
    let printed = fs::read(&path).expect("what the child has printed");
    (ended, String::from_utf8_lossy(&printed).into_owned())
}

/// The body of the test `child`: explores the model that the environment names, after `weaken` was called
/// with the site that the environment names (an empty string for none).
///
/// # Panics
///
/// Panics if the model fails, or if it is not one of `models`, or the site is none of `sites`.
pub fn explore_as_child(
    mut models: impl Iterator<Item = &'static Model>,
    sites: &[&'static str],
    weaken: impl FnOnce(&'static str),
) {
    let name = std::env::var(MODEL).expect("only started by the other tests");
    let site = std::env::var(SITE).expect("only started by the other tests");
    let model = models.find(|model| model.name == name).expect("a known model");
    weaken([""].iter().chain(sites).find(|&&known| known == site).expect("a known site"));
    let most = std::env::var(MOST).ok().and_then(|most| most.parse().ok());
    println!("{BEGUN}");
    let _ = model.explore_most(most);
}

/// Makes a list of models, `MODELS`, and a test for each: name, scenario, preemptions, floor. [`Model`]
/// must be in scope.
#[macro_export]
macro_rules! models {
    ($($name:ident: $run:expr, $preemptions:expr, $floor:literal;)*) => {
        /// All models of this file.
        pub(crate) const MODELS: &[Model] = &[$(Model {
            name: stringify!($name),
            run: $run,
            preemptions: $preemptions,
            floor: $floor,
        }),*];

        $(
            #[test]
            fn $name() {
                let model = MODELS.iter().find(|model| model.name == stringify!($name));
                model.expect("listed").must_hold();
            }
        )*
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: &str = "lost or doubled";

    #[test]
    fn only_the_expected_message_is_a_failure() {
        let printed = |rest: &str| format!("running 1 test\n{BEGUN}\n{rest}");
        let verdict = |ended, rest: &str| super::verdict(ended, &printed(rest), MESSAGE);
        assert_eq!(verdict(Some(false), "panicked: lost or doubled"), Ok(true));
        assert_eq!(verdict(Some(true), "test result: ok. 1 passed"), Ok(false));
        assert!(verdict(Some(true), "test result: ok. 0 passed").is_err());
        assert!(verdict(Some(false), "panicked: something else").is_err());
        assert!(verdict(Some(false), "").is_err(), "a signal");
        assert!(verdict(None, "panicked: lost or doubled").is_err(), "it hangs");
        let endless = "Model exceeded maximum number of branches. lost or doubled";
        assert!(verdict(Some(false), endless).is_err());
    }

    #[test]
    fn an_unknown_name_is_no_failure() {
        assert!(verdict(Some(false), "panicked: lost or doubled", MESSAGE).is_err());
        assert!(verdict(Some(true), "test result: ok. 0 passed", MESSAGE).is_err());
    }
}
