//! Why a simulation did not reach its end.

use std::fmt;

use crate::machine::MachineError;

/// Why a simulation did not reach its end.
///
/// The virtual threads that were left are leaked, with all that they hold. Statics of the simulated code stay as they
/// were, so another simulation of the same code should run in a new process.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// The machine cannot be simulated.
    Machine(MachineError),
    /// The main thread has not ended, and all threads sleep for ever.
    Deadlock {
        /// The virtual time in nanoseconds.
        at: u64,
        /// The threads that sleep.
        blocked: Vec<Blocked>,
    },
    /// The simulation has exceeded its limit of virtual time.
    TimeLimit {
        /// The limit in nanoseconds.
        limit: u64,
    },
}

/// A virtual thread that sleeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The name of the thread.
    pub name: String,
    /// What it waits for.
    pub waits_for: WaitsFor,
}

/// What a virtual thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitsFor {
    /// It is parked.
    Unpark,
    /// A mutex.
    Lock,
    /// A condition variable.
    Notification,
    /// The end of another thread.
    Join,
}

impl fmt::Display for WaitsFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unpark => "is parked",
            Self::Lock => "waits for a lock",
            Self::Notification => "waits for a notification",
            Self::Join => "waits for a thread to end",
        })
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine(error) => error.fmt(f),
            Self::Deadlock { at, blocked } => {
                write!(f, "all threads sleep for ever after {at} ns of virtual time:")?;
                blocked
                    .iter()
                    .try_for_each(|thread| write!(f, "\n  {} {}", thread.name, thread.waits_for))
            }
            Self::TimeLimit { limit } => write!(
                f,
                "the simulation has not ended after {limit} ns of virtual time; set a higher Config::time_limit if it is \
                 not in an endless loop"
            ),
        }
    }
}

impl std::error::Error for RunError {}

impl From<MachineError> for RunError {
    fn from(error: MachineError) -> Self {
        Self::Machine(error)
    }
}
