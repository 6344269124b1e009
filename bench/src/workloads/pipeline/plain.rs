//! No library: a loop with one buffer.

use super::job::{BATCH, Job, Sink};

pub(super) const NAME: &str = "plain";

pub(super) fn run<S: Sink>(job: Job) -> S {
    let (mut items, mut sink) = (job.items(), S::default());
    let mut buffer = Vec::with_capacity(BATCH);
    loop {
        buffer.clear();
        buffer.extend(items.by_ref().take(BATCH));
        if buffer.is_empty() {
            return sink;
        }
        sink.take(job.work(&buffer));
    }
}
