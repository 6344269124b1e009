//! How a model is run, and what it must have seen.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

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

/// A list of models and a test for each: name, scenario, preemptions, floor.
macro_rules! models {
    ($($name:ident: $run:expr, $preemptions:expr, $floor:literal;)*) => {
        /// All models of this file.
        pub(crate) const MODELS: &[$crate::explore::Model] = &[$($crate::explore::Model {
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
