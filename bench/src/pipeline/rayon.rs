//! rayon: `par_bridge`, whose workers take from the iterator in turn. It keeps no order.

use rayon::ThreadPool;
use rayon::prelude::*;

use super::job::{Job, Sum};
use crate::pools::{Pool, global, kept};

pub(super) const NAME: &str = ThreadPool::NAME;

pub(super) fn run(job: Job) -> Sum {
    kept::pool::<ThreadPool>(global::WORKERS).install(|| {
        let results = job.buffers(1).par_bridge().map(|batch| Sum::of(job.work(&batch)));
        results.reduce(Sum::default, Sum::merge)
    })
}
