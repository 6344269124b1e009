//! The pools: what one must do to take part in a workload, and how long one lives.

#[cfg(feature = "peers")]
pub(crate) mod channel;
pub(crate) mod condvar;
pub(crate) mod global;
pub(crate) mod heist;
pub(crate) mod kept;
pub(crate) mod live;
pub(crate) mod rayon;
pub(crate) mod shape;
#[cfg(feature = "peers")]
pub(crate) mod threadpool;
#[cfg(feature = "peers")]
pub(crate) mod tokio;
pub(crate) mod traced;

use std::fmt::Display;
use std::panic::panic_any;

use crate::Refused;
pub(crate) use global::set_environment;

/// Every peer that one would choose instead of heist to spawn tasks.
pub(crate) const PEERS: &[&str] = &["rayon", "tokio", "threadpool", "channel"];

/// Of every thread that may be asked to recurse. The deepest tree has 1,572 levels of four calls each, for
/// which a megabyte is not enough; and a worker that waits for another runs something else on top.
/// Pages that nobody touches cost nothing.
pub(crate) const STACK: usize = 16 << 20;

/// A number of threads that run tasks. Every method is a call of the pool's own, as its
/// documentation has it.
pub(crate) trait Pool: Send + Sync + Sized + 'static {
    const NAME: &'static str;

    fn new(workers: usize) -> Self;

    /// One that keeps so many events of each thread; `None` if such pools keep none.
    fn traced(workers: usize, events: usize) -> Option<Self> {
        let _ = (workers, events);
        None
    }

    /// Nobody waits for this task by itself.
    fn spawn(&self, task: impl FnOnce() + Send + 'static);

    /// All of them at once, where the pool has a call for that.
    fn spawn_batch<F: FnOnce() + Send + 'static>(&self, tasks: impl Iterator<Item = F>) {
        tasks.for_each(|task| self.spawn(task));
    }

    /// The pool itself, if it is one of ours.
    fn ours(&self) -> Option<&::heist::Pool> {
        None
    }

    /// Has a worker call [`answer`], and waits for what it returns.
    fn ask(&self, question: u64) -> u64;
}

/// What the system has given for a pool, or the end of the run.
pub(crate) fn granted<T>(given: Result<T, impl Display>) -> T {
    given.unwrap_or_else(|refusal| panic_any(Refused(refusal.to_string())))
}

/// A small task with a result that one can check.
#[inline]
pub(crate) fn answer(question: u64) -> u64 {
    question.wrapping_mul(3) + 1
}

/// So many, in words.
pub(crate) fn workers(count: usize) -> String {
    if count == 1 { "1 worker".into() } else { format!("{count} workers") }
}

/// A task by itself, for the pools that are no more than a queue of such.
type Job = Box<dyn FnOnce() + Send>;

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    fn answers<P: Pool>() {
        assert_eq!(kept::pool::<P>(2).ask(7), answer(7), "{}", P::NAME);
    }

    #[test]
    fn a_pool_that_cannot_be_is_refused() {
        let refused = catch_unwind(|| drop(heist::Stealing::new(usize::MAX))).unwrap_err();
        let Refused(why) = refused.downcast_ref().unwrap();
        assert!(why.starts_with("a pool has at most "), "{why}");
    }

    #[test]
    fn every_pool_answers() {
        answers::<heist::Stealing>();
        answers::<heist::Locked>();
        answers::<heist::Global>();
        answers::<condvar::Workers>();
        answers::<rayon::ThreadPool>();
        #[cfg(feature = "peers")]
        {
            answers::<tokio::Runtime>();
            answers::<threadpool::ThreadPool>();
            answers::<channel::Workers>();
        }
    }
}
