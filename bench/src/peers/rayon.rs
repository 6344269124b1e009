//! rayon.

pub(crate) use rayon::ThreadPool;
use rayon::ThreadPoolBuilder;

use super::{Pool, STACK, answer, granted};

impl Pool for ThreadPool {
    const NAME: &'static str = "rayon";

    fn new(workers: usize) -> Self {
        granted(ThreadPoolBuilder::new().num_threads(workers).stack_size(STACK).build())
    }

    #[inline]
    fn spawn(&self, task: impl FnOnce() + Send + 'static) {
        ThreadPool::spawn(self, task);
    }

    fn ask(&self, question: u64) -> u64 {
        self.install(|| answer(question))
    }
}
