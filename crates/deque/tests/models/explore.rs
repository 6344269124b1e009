//! How a model is run, and what it must have seen.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use heist_deque::twin::weaken;

/// A scenario to explore.
#[derive(Clone, Copy)]
pub(crate) struct Model {
    pub(crate) name: &'static str,
    /// One execution. Everything that it makes, it must give up.
    pub(crate) run: fn(),
    /// The most preemptions of one execution; `None` for all.
    pub(crate) preemptions: Option<usize>,
    /// The least number of executions that a full exploration has.
    pub(crate) floor: usize,
}

impl Model {
    /// Explores all of it, and counts.
    pub(crate) fn explore(self) -> usize {
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

    /// Explores all of it; fails if a check of the model fails or if too little was explored.
    pub(crate) fn must_hold(self) {
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

/// Names the model that a child process is to explore.
const MODEL: &str = "HEIST_TWIN_MODEL";
/// Names the ordering that it is to weaken; empty for none.
const SITE: &str = "HEIST_TWIN_SITE";

/// Does an execution of this model fail with this site weakened?
///
/// A model that fails may bring down its process (destructors run outside of loom's world), so it is
/// explored in a process of its own: this test binary, called again for the test `child`.
pub(crate) fn fails(child: &str, model: &Model, site: &str) -> bool {
    let this = std::env::current_exe().expect("the path of this test");
    let child = Command::new(this)
        .args(["--exact", child, "--ignored"])
        .env(MODEL, model.name)
        .env(SITE, site)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    !child.expect("a process for the twin").success()
}

/// What `child` does: explores what the environment names.
pub(crate) fn explore_as_child(
    mut models: impl Iterator<Item = &'static Model>,
    sites: &[&'static str],
) {
    let name = std::env::var(MODEL).expect("only called by the other tests");
    let site = std::env::var(SITE).unwrap_or_default();
    weaken(sites.iter().copied().find(|&known| known == site).unwrap_or(""));
    models.find(|model| model.name == name).expect("a known model").explore();
}

/// A list of models and a test for each: name, scenario, preemptions, floor.
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
pub(crate) use models;
