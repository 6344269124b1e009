//! pariter: `parallel_map`, which keeps the order, with as many threads as the others have workers. The calling
//! thread splits the source between two results.

use std::thread;

use pariter::IteratorExt;

use super::job::{Job, Sink};
use crate::peers::global;

pub(super) const NAME: &str = "pariter";

/// The limit of batches in flight. Among the fastest of those tried, from 4 (its default) to 4096, in a few rounds
/// on a machine that was not quiet.
const BUFFER: usize = 512;

pub(super) fn run<S: Sink>(job: Job) -> S {
    thread::scope(|scope| {
        let results = job.buffers(1).parallel_map_scoped_custom(
            scope,
            |builder| builder.threads(global::WORKERS).buffer_size(BUFFER),
            move |batch| job.work(&batch),
        );
        let mut sink = S::default();
        results.for_each(|result| sink.take(result));
        sink
    })
}
