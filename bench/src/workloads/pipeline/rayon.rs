//! rayon: `par_bridge`, whose workers take from the iterator in turn. It keeps no order and has no sink: results
//! are added up where they arise, or collected first and then given to the sink.

use rayon::ThreadPool;
use rayon::iter::IterBridge;
use rayon::prelude::*;

use super::job::{Job, Sink, Sum};
use crate::peers::{Pool, global, kept};

pub(super) const NAME: &str = ThreadPool::NAME;

pub(super) const COLLECT: &str = "rayon-collect";

pub(super) fn run(job: Job) -> Sum {
    on_pool(|| {
        let results = bridge(job).map(|batch| Sum::of(job.work(&batch)));
        results.reduce(Sum::default, Sum::merge)
    })
}

pub(super) fn run_collect(job: Job) -> Sum {
    let results: Vec<u64> = on_pool(|| bridge(job).map(|batch| job.work(&batch)).collect());
    let mut sink = Sum::default();
    results.into_iter().for_each(|result| sink.take(result));
    sink
}

fn bridge(job: Job) -> IterBridge<impl Iterator<Item = Vec<u64>> + Send> {
    job.buffers(1).par_bridge()
}

fn on_pool<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    kept::pool::<ThreadPool>(global::WORKERS).install(f)
}
