//! How several pipelines share a pool.

use std::sync::Arc;
use std::thread;

use heist::Pool;
use heist::pipeline::Pipeline;

use super::case::{Case, Leftovers};
use crate::{Error, Violation};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrangement {
    /// One after the other, on the calling thread.
    OneByOne,
    /// At once, each on a thread of its own.
    FromThreads,
    /// At once, each in a task of the pool itself.
    InTasks,
    /// At once, in a stage of another pipeline on the same pool.
    Nested,
}

impl Arrangement {
    pub(super) const ALL: [Self; 4] =
        [Self::OneByOne, Self::FromThreads, Self::InTasks, Self::Nested];

    /// Runs the pipelines, and returns what each has left behind.
    pub(super) fn run(self, pool: &Arc<Pool>, cases: Vec<Case>) -> Result<Vec<Leftovers>, Error> {
        match self {
            Self::OneByOne => cases.iter().map(|case| case.run(pool)).collect(),
            Self::FromThreads => from_threads(pool, &cases),
            Self::InTasks => in_tasks(pool, cases),
            Self::Nested => nested(pool, cases),
        }
    }
}

fn from_threads(pool: &Pool, cases: &[Case]) -> Result<Vec<Leftovers>, Error> {
    let outcomes: Vec<_> = thread::scope(|scope| {
        let start = |case: &'_ Case| {
            let case = *case;
            scope.spawn(move || case.run(pool))
        };
        let threads: Vec<_> = cases.iter().map(start).collect();
        // Joins all of them, even after one that fails.
        threads.into_iter().map(|thread| thread.join().expect("no case panics")).collect()
    });
    outcomes.into_iter().collect()
}

fn in_tasks(pool: &Arc<Pool>, cases: Vec<Case>) -> Result<Vec<Leftovers>, Error> {
    let start = |case: Case| {
        let inner = Arc::clone(pool);
        pool.spawn(move || case.run(&inner))
    };
    let handles: Vec<_> = cases.into_iter().map(start).collect();
    let outcomes: Vec<_> =
        handles.into_iter().map(|handle| handle.join().expect("no case panics")).collect();
    outcomes.into_iter().collect()
}

fn nested(pool: &Pool, cases: Vec<Case>) -> Result<Vec<Leftovers>, Error> {
    let mut outcomes = Vec::new();
    let outer = Pipeline::new(cases).batch(1).map(|case| case.run(pool));
    match outer.run(pool, |outcome| outcomes.push(outcome)) {
        Ok(_) => outcomes.into_iter().collect(),
        Err(error) => {
            let violation = Violation::Result(format!("the outer pipeline failed: {error}"));
            Err(violation.in_case(&Arrangement::Nested))
        }
    }
}
