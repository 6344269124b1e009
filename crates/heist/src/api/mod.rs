//! What users call: the pool and its builder, handles and batches, and fork-join.

pub(crate) mod batch;
pub(crate) mod block;
pub(crate) mod broadcast;
pub(crate) mod builder;
pub(crate) mod call;
pub(crate) mod context;
pub(crate) mod current;
#[cfg(feature = "futures")]
pub(crate) mod future;
pub(crate) mod global;
pub(crate) mod handle;
pub(crate) mod isolate;
pub(crate) mod join;
pub(crate) mod limit;
mod near;
pub(crate) mod panics;
pub(crate) mod pin;
#[cfg(feature = "futures")]
mod poll_context;
pub(crate) mod pool;
pub(crate) mod resize;
#[cfg(feature = "futures")]
mod runs;
pub(crate) mod scope;
pub(crate) mod scoped;
pub(crate) mod stop;
pub(crate) mod task;
pub(crate) mod yields;
