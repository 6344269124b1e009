//! A pipeline written with the standard library alone: a thread that splits the source, workers that share the
//! receiving end behind a lock, and the sink on the calling thread.

use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

use super::job::{Job, Sink, Sum};
use crate::peers::global;

pub(super) const NAME: &str = "mpsc";

/// The capacity of either channel, in batches. Among the fastest of those tried, from 4 to 4096, in a few rounds on
/// a machine that was not quiet.
const CAPACITY: usize = 1024;

pub(super) fn run(job: Job) -> Sum {
    let (to_workers, batches) = sync_channel(CAPACITY);
    let (to_sink, results) = sync_channel(CAPACITY);
    let batches = Arc::new(Mutex::new(batches));
    thread::scope(|scope| {
        scope.spawn(move || {
            let sent = job.buffers(1).try_for_each(|batch| to_workers.send(batch));
            sent.expect("the workers receive until the end");
        });
        for _ in 0..global::WORKERS {
            let (batches, to_sink) = (Arc::clone(&batches), to_sink.clone());
            scope.spawn(move || {
                while let Some(batch) = next(&batches) {
                    to_sink.send(job.work(&batch)).expect("the sink receives until the end");
                }
            });
        }
        drop((batches, to_sink));
        let mut sink = Sum::default();
        results.into_iter().for_each(|result| sink.take(result));
        sink
    })
}

/// Receives a batch. The lock is released before the work begins.
fn next(batches: &Mutex<Receiver<Vec<u64>>>) -> Option<Vec<u64>> {
    batches.lock().expect("no thread panics while it holds the lock").recv().ok()
}
