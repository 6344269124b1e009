//! The errors of pools and tasks, with what to do about them.

use std::fmt;

use crate::panic::Panic;
use crate::topology::CpuSet;

/// The reason why a task has no result.
///
/// ```
/// let pool = heist::Pool::builder().workers(1).build()?;
/// pool.stop();
/// assert!(matches!(pool.spawn(|| 1).join(), Err(heist::JoinError::Stopped)));
/// # Ok::<(), heist::BuildError>(())
/// ```
#[derive(Debug)]
pub enum JoinError {
    /// The task panicked, with this panic.
    Panicked(Panic),
    /// The task was cancelled before it started: by [`JoinHandle::cancel`](crate::JoinHandle::cancel), by the token of its
    /// [`TaskBuilder`](crate::TaskBuilder), or by [`Pool::stop_now`](crate::Pool::stop_now). Or it is a future, which was
    /// cancelled, or was still pending when its pool had nothing else to run and ended.
    Cancelled,
    /// The pool had stopped before the task was submitted.
    Stopped,
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked(panic) => write!(f, "the task panicked: {panic}"),
            Self::Cancelled => f.write_str("the task was cancelled"),
            Self::Stopped => f.write_str("the pool has stopped and takes no more tasks"),
        }
    }
}

impl std::error::Error for JoinError {}

/// A closure has ended early, because a token was cancelled: see [`CancelToken::run`](crate::CancelToken::run).
///
/// ```
/// let token = heist::CancelToken::new();
/// token.cancel();
/// assert_eq!(token.run(|| 42), Err(heist::Cancelled));
/// assert_eq!(heist::Cancelled.to_string(), "the work was cancelled before it was done");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cancelled;

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the work was cancelled before it was done")
    }
}

impl std::error::Error for Cancelled {}

/// The reason why a pool could not be built. No thread is left running.
///
/// ```
/// let error = heist::Pool::builder().workers(0).build().unwrap_err();
/// assert_eq!(error.to_string(), "a pool needs a worker: ask for at least one, or leave the number out");
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// The pool was to have no workers, and would never run anything.
    ZeroWorkers,
    /// The pool was to have more workers than are supported.
    TooManyWorkers {
        /// The number of workers that were requested.
        asked: usize,
        /// The largest number of workers that a pool can have.
        limit: usize,
    },
    /// The pool was to queue no tasks, and would never run one.
    ZeroQueued,
    /// The trace was to keep more events than are supported.
    TooManyEvents {
        /// The number of events that were requested.
        asked: usize,
        /// The largest number of events that can be kept for each thread.
        limit: usize,
    },
    /// The pool may have fewer threads than it has workers.
    TooFewThreads {
        /// The largest number of threads that was asked for.
        max_threads: usize,
        /// The number of workers.
        workers: usize,
    },
    /// The pool is to have fewer workers at most than it is to start with.
    TooFewMaxWorkers {
        /// The largest number of workers that was asked for.
        max_workers: usize,
        /// The number of workers to start with.
        workers: usize,
    },
    /// `HEIST_WORKERS` is not a number of workers.
    Environment {
        /// The value of the variable.
        value: String,
    },
    /// [`Pin::Processors`](crate::Pin::Processors) has an empty list.
    NoProcessors,
    /// A worker was to be pinned to a processor that the thread which builds the pool may not use.
    ProcessorNotAllowed {
        /// The processor that was requested.
        processor: usize,
        /// The processors that may be used: the affinity mask of the calling thread.
        allowed: CpuSet,
    },
    /// The system does not pin threads, or refused to.
    Pinning {
        /// The error of the system.
        source: std::io::Error,
    },
    /// The global pool was to be started, by [`Builder::build_global`](crate::Builder::build_global), and was running
    /// already.
    GlobalStarted {
        /// The number of workers of the global pool.
        workers: usize,
    },
    /// The system refused a thread. The threads that had started have ended again.
    Thread {
        /// The number of threads that had started.
        started: usize,
        /// The number of workers that were requested.
        asked: usize,
        /// The error of the system.
        source: std::io::Error,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroWorkers => {
                f.write_str("a pool needs a worker: ask for at least one, or leave the number out")
            }
            Self::TooManyWorkers { asked, limit } => write!(
                f,
                "a pool has at most {limit} workers, and {asked} were asked for: one for each processor \
                 is usually best, which is what you get if you leave the number out"
            ),
            Self::ZeroQueued => f.write_str(
                "a pool that may queue no task would never run one: allow at least one by `Builder::max_queued`, or \
                 leave it out",
            ),
            Self::TooManyEvents { asked, limit } => write!(
                f,
                "a trace keeps at most {limit} events of each thread, and {asked} were asked for: ask for fewer"
            ),
            Self::TooFewThreads { max_threads, workers } => write!(
                f,
                "a pool of {workers} workers cannot do with {max_threads} threads: allow at least one thread \
                 for each worker, and some more if tasks wait for each other"
            ),
            Self::TooFewMaxWorkers { max_workers, workers } => write!(
                f,
                "a pool that starts with {workers} workers cannot have {max_workers} at most: pass at least {workers} to \
                 `Builder::max_workers`, or leave it out"
            ),
            Self::Environment { value } => write!(
                f,
                "HEIST_WORKERS is {value:?}, which is not a number of workers: set it to a whole \
                 number from 1 on, or unset it"
            ),
            Self::NoProcessors => f.write_str(
                "there is no processor in the list to which the workers are to be pinned: name at least one, or \
                 leave `Builder::pin` out",
            ),
            Self::ProcessorNotAllowed { processor, allowed } => write!(
                f,
                "processor {processor}, to which a worker is to be pinned, is not one that this thread may use \
                 ({allowed}): name some of these, or start the program with a wider affinity mask (taskset, the \
                 container's cpuset)"
            ),
            Self::Pinning { source } => write!(
                f,
                "this system does not pin threads to processors ({source}): leave `Builder::pin` out here"
            ),
            Self::GlobalStarted { workers } => write!(
                f,
                "the global pool has been started already, with {workers} workers: call build_global once, at the \
                 beginning of main, before the first join, scope, spawn or parallel loop outside of a pool"
            ),
            Self::Thread { started, asked, source } => write!(
                f,
                "the system refused thread {} of {asked} ({source}): ask for fewer workers or a smaller \
                 stack, or raise the limit on threads (ulimit -u, the container's pids limit)",
                started + 1
            ),
        }
    }
}

impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Thread { source, .. } | Self::Pinning { source } => Some(source),
            _ => None,
        }
    }
}
