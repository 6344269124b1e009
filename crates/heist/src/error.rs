//! What can go wrong, and what to do about it.

use std::fmt;

use crate::panic::Panic;

/// Why there is no result.
///
/// ```
/// let pool = heist::Pool::builder().workers(1).build()?;
/// pool.stop();
/// assert!(matches!(pool.spawn(|| 1).join(), Err(heist::JoinError::Stopped)));
/// # Ok::<(), heist::BuildError>(())
/// ```
#[derive(Debug)]
pub enum JoinError {
    /// The task panicked; this is its panic.
    Panicked(Panic),
    /// The task was cancelled before it started, by [`Pool::stop_now`](crate::Pool::stop_now).
    Cancelled,
    /// The pool had stopped before the task could be taken in.
    Stopped,
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked(panic) => write!(f, "the task panicked: {panic}"),
            Self::Cancelled => f.write_str("the task was cancelled before it started"),
            Self::Stopped => f.write_str("the pool has stopped and takes no more tasks"),
        }
    }
}

impl std::error::Error for JoinError {}

/// Why a pool could not be built. No thread is left behind.
///
/// ```
/// let error = heist::Pool::builder().workers(0).build().unwrap_err();
/// assert_eq!(error.to_string(), "a pool needs a worker: ask for at least one, or leave the number out");
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// A pool of no workers would never run anything.
    ZeroWorkers,
    /// More workers than a pool can have.
    TooManyWorkers {
        /// How many were asked for.
        asked: usize,
        /// How many a pool can have.
        limit: usize,
    },
    /// A trace of more events than one can keep.
    TooManyEvents {
        /// How many were asked for.
        asked: usize,
        /// How many can be kept of each thread.
        limit: usize,
    },
    /// `HEIST_WORKERS` is not a number of workers.
    Environment {
        /// What it says.
        value: String,
    },
    /// The system refused a thread. Those that had started have ended again.
    Thread {
        /// How many had started.
        started: usize,
        /// How many were asked for.
        asked: usize,
        /// What the system said.
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
                "a pool has at most {limit} workers, and {asked} were asked for: one for each shared is \
                 usually best, which is what you get if you leave the number out"
            ),
            Self::TooManyEvents { asked, limit } => write!(
                f,
                "a trace keeps at most {limit} events of each thread, and {asked} were asked for: ask for fewer"
            ),
            Self::Environment { value } => write!(
                f,
                "HEIST_WORKERS is {value:?}, which is not a number of workers: set it to a whole \
                 number from 1 on, or unset it"
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
            Self::Thread { source, .. } => Some(source),
            _ => None,
        }
    }
}
