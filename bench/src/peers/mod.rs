//! The pools: the interface that a pool implements to take part in a workload, and how long pools live.

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

/// The names of the peers that could replace heist for spawning tasks.
pub(crate) const PEERS: &[&str] = &["rayon", "tokio", "threadpool", "channel"];

/// The stack size of every thread that may recurse. The deepest tree has 1,572 levels of four calls each, for which
/// a megabyte is not enough, and a worker that waits for another one runs other work on top. Untouched pages cost
/// nothing.
pub(crate) const STACK: usize = 16 << 20;

/// A pool of threads that run tasks. Every method is one call of the pool's own method, as its documentation
/// recommends.
pub(crate) trait Pool: Send + Sync + Sized + 'static {
    const NAME: &'static str;

    fn new(workers: usize) -> Self;

    /// Creates a pool that keeps this number of events for each thread. Returns `None` if such pools keep no trace.
    fn traced(workers: usize, events: usize) -> Option<Self> {
        let _ = (workers, events);
        None
    }

    /// Spawns a task. No thread waits for this task in particular.
    fn spawn(&self, task: impl FnOnce() + Send + 'static);

    /// Spawns all tasks at once, if the pool has a call for that.
    fn spawn_batch<F: FnOnce() + Send + 'static>(&self, tasks: impl Iterator<Item = F>) {
        tasks.for_each(|task| self.spawn(task));
    }

    /// Returns the heist pool, if this is one.
    fn ours(&self) -> Option<&::heist::Pool> {
        None
    }

    /// Lets a worker call [`answer`], and waits for the result.
    fn ask(&self, question: u64) -> u64;
}

/// Returns what the system granted for a pool, or ends the run with [`Refused`].
pub(crate) fn granted<T>(given: Result<T, impl Display>) -> T {
    given.unwrap_or_else(|refusal| panic_any(Refused(refusal.to_string())))
}

/// A small task whose result can be checked.
#[inline]
pub(crate) fn answer(question: u64) -> u64 {
    question.wrapping_mul(3) + 1
}

/// Returns a number of workers in words.
pub(crate) fn workers(count: usize) -> String {
    if count == 1 { "1 worker".into() } else { format!("{count} workers") }
}

/// A boxed task, for the pools that are a queue of such tasks.
type Job = Box<dyn FnOnce() + Send>;

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    fn answers<P: Pool>() {
        assert_eq!(kept::pool::<P>(2).ask(7), answer(7), "{}", P::NAME);
    }

    #[test]
    fn a_pool_that_cannot_be_built_is_refused() {
        let refused = catch_unwind(|| drop(heist::Stealing::new(usize::MAX))).unwrap_err();
        let Refused(why) = refused.downcast_ref().unwrap();
        let error = ::heist::Pool::builder().workers(usize::MAX).build().unwrap_err();
        assert_eq!(*why, error.to_string());
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
