//! How a loom model is explored, and how much it must explore.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

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
        let executions = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&executions);
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = self.preemptions;
        builder.max_branches = 10_000;
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

/// Returns whether an execution of this model fails with this site weakened.
///
/// A model that fails may bring down its process, because destructors run after loom's execution has
/// ended. The model is therefore explored in a process of its own: this test binary, started again for the
/// test `child`.
///
/// # Panics
///
/// Panics if the child process cannot be started.
#[must_use]
pub fn fails(child: &str, model: &Model, site: &str) -> bool {
    let this = std::env::current_exe().expect("the path of this test binary");
    let child = Command::new(this)
        .args(["--exact", child, "--ignored"])
        .env(MODEL, model.name)
        .env(SITE, site)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    !child.expect("a child process can be started").success()
}

/// The body of the test `child`: explores the model that the environment names, after `weaken` was called
/// with the site that the environment names (an empty string for none).
///
/// # Panics
///
/// Panics if the model fails, or if it is not one of `models`.
pub fn explore_as_child(
    mut models: impl Iterator<Item = &'static Model>,
    sites: &[&'static str],
    weaken: impl FnOnce(&'static str),
) {
    let name = std::env::var(MODEL).expect("only started by the other tests");
    let site = std::env::var(SITE).unwrap_or_default();
    weaken(sites.iter().copied().find(|&known| known == site).unwrap_or(""));
    let _ = models.find(|model| model.name == name).expect("a known model").explore();
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
