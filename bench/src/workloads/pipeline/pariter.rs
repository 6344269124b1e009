//! pariter: `parallel_map`, which keeps the order, with as many threads as the others have workers. The calling
//! thread cuts the source up between two results.

use std::thread;

use pariter::IteratorExt;

use super::job::{Job, Sink};
use crate::peers::global;

pub(super) const NAME: &str = "pariter";

/// Batches on their way. Among the fastest of those tried, from 4 (its default) to 4096, in a few rounds that were not
/// quiet.
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
