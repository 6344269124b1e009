//! The multi-threaded runtime of tokio. A task is a future that never waits.

use tokio::runtime::Builder;
pub(crate) use tokio::runtime::Runtime;

use super::{Pool, answer, granted};

impl Pool for Runtime {
    const NAME: &'static str = "tokio";

    fn new(workers: usize) -> Self {
        granted(Builder::new_multi_thread().worker_threads(workers).build())
    }

    #[inline]
    fn spawn(&self, task: impl FnOnce() + Send + 'static) {
        drop(self.handle().spawn(async move { task() }));
    }

    fn ask(&self, question: u64) -> u64 {
        let task = self.handle().spawn(async move { answer(question) });
        self.block_on(task).expect("the answer does not panic")
    }
}
