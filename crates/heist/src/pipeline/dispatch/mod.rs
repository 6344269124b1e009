//! How batches get from the source to the workers: where they wait (`queue`, `waiting`), which queue the producer thread
//! chooses (`producer`), and where a worker looks for its next batch (`find`).

mod batch;
mod distribution;
mod find;
mod producer;
mod queue;
mod stock;
mod waiting;

pub(super) use batch::{Batch, BoxedBatch};
pub use distribution::Distribution;
pub(super) use queue::{CACHE_LINE, PREFETCH_LINES, PushEnd, WorkerQueue};
pub(super) use stock::Stock;
