//! What a pool was built with.

use crate::panic::PanicHook;
use crate::sync::Arc;
use crate::trace::Log;
use crate::worker::admission::Admission;
use crate::worker::pin::Pins;

/// The configuration of a pool. Does not change after the pool was built.
pub(crate) struct Config {
    /// The number of workers.
    pub(crate) workers: usize,
    /// The number of workers, counted from the first, that are attached threads: the caller owns these threads, and
    /// shutdown does not wait for them.
    pub(crate) attached: usize,
    /// The largest number of threads.
    pub(crate) max_threads: usize,
    /// The largest number of guests (`guest`), which do not count as threads of the pool.
    pub(crate) guests: usize,
    pub(crate) stack_size: usize,
    pub(crate) thread_name: Box<dyn Fn(usize) -> String + Send + Sync>,
    pub(crate) on_thread_start: Box<dyn Fn(usize) + Send + Sync>,
    pub(crate) on_thread_stop: Box<dyn Fn(usize) + Send + Sync>,
    pub(crate) on_panic: Arc<PanicHook>,
    /// Where the workers are pinned, if they are.
    pub(crate) pins: Option<Pins>,
    /// The bound on queued tasks and the hook for contexts, if there is one of them.
    pub(crate) admission: Option<Box<Admission>>,
    /// Where the threads record their events, if the pool keeps a trace.
    pub(crate) trace: Option<Arc<Log>>,
}

impl Config {
    /// Returns the configuration of a pool without hooks, names and trace.
    pub(crate) fn plain(workers: usize, max_threads: usize) -> Self {
        Self {
            workers,
            attached: 0,
            max_threads,
            guests: 0,
            stack_size: 1 << 20,
            thread_name: Box::new(|_| String::new()),
            on_thread_start: Box::new(|_| ()),
            on_thread_stop: Box::new(|_| ()),
            on_panic: Arc::default(),
            pins: None,
            admission: None,
            trace: None,
        }
    }
}
