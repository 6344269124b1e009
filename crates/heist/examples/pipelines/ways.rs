//! How several pipelines meet the same pool.

use std::sync::Arc;
use std::thread;

use heist::Pool;
use heist::pipeline::Pipeline;

use super::shape::{Rest, Shape};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    /// One after the other.
    InTurn,
    FromThreads,
    /// Of the pool itself.
    InTasks,
    /// In the stage of one more pipeline.
    InEachOther,
}

/// How one of them is run.
pub(crate) type Each = fn(&Shape, &Pool) -> Result<Rest, String>;

impl Way {
    /// What became of each. If something is wrong: what.
    pub(crate) fn run(
        self,
        pool: &Arc<Pool>,
        shapes: Vec<Shape>,
        each: Each,
    ) -> Vec<Result<Rest, String>> {
        match self {
            Self::InTurn => shapes.iter().map(|shape| each(shape, pool)).collect(),
            Self::FromThreads => from_threads(pool, &shapes, each),
            Self::InTasks => in_tasks(pool, shapes, each),
            Self::InEachOther => in_each_other(pool, shapes, each),
        }
    }
}

fn from_threads(pool: &Pool, shapes: &[Shape], each: Each) -> Vec<Result<Rest, String>> {
    thread::scope(|scope| {
        let start = |shape| scope.spawn(move || each(shape, pool));
        let threads: Vec<_> = shapes.iter().map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

fn in_tasks(pool: &Arc<Pool>, shapes: Vec<Shape>, each: Each) -> Vec<Result<Rest, String>> {
    let start = |shape: Shape| {
        let inner = Arc::clone(pool);
        pool.spawn(move || each(&shape, &inner))
    };
    let handles: Vec<_> = shapes.into_iter().map(start).collect();
    handles.into_iter().map(|handle| handle.join().expect("no panic")).collect()
}

fn in_each_other(pool: &Pool, shapes: Vec<Shape>, each: Each) -> Vec<Result<Rest, String>> {
    let mut rests = Vec::new();
    let outer = Pipeline::new(shapes).batch(1).map(|shape| each(&shape, pool));
    match outer.run(pool, |rest| rests.push(rest)) {
        Ok(_) => rests,
        Err(error) => vec![Err(format!("the outer pipeline failed: {error}"))],
    }
}
