//! Why a case failed.

use std::{error, fmt, io};

use heist::BuildError;

/// Why a case failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// heist broke a promise.
    Violated {
        /// What went wrong.
        violation: Violation,
        /// The case in which it went wrong, as its `Debug` output.
        case: String,
    },
    /// The system refused a thread. This says nothing about heist.
    Refused(String),
}

/// A promise that heist broke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// Something that must happen exactly once for each of `total` items did not.
    NotOnce {
        /// What is counted, in the plural: "items", "tasks".
        what: &'static str,
        /// The number of items for which it never happened.
        lost: usize,
        /// The number of items for which it happened more than once.
        doubled: usize,
        /// The number of items.
        total: usize,
    },
    /// A planned panic was lost, or a panic appeared that the case had not planned.
    Panic(String),
    /// The counters of a pool, or the report of a pipeline, contradict what happened.
    Counters(String),
    /// A result, an order or an outcome differs from the expected one.
    Result(String),
}

impl Violation {
    /// Adds the case in which this violation was found.
    pub(crate) fn in_case(self, case: &impl fmt::Debug) -> Error {
        Error::Violated { violation: self, case: format!("{case:?}") }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOnce { what, lost, doubled, total } => {
                write!(f, "{lost} lost, {doubled} doubled, of {total} {what}")
            }
            Self::Panic(text) | Self::Counters(text) | Self::Result(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Violated { violation, case } => write!(f, "{violation}, in {case}"),
            Self::Refused(why) => f.write_str(why),
        }
    }
}

impl error::Error for Violation {}

impl error::Error for Error {}

/// Converts the error of a thread that did not start.
impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Refused(format!("the system refused a thread ({error})"))
    }
}

impl From<BuildError> for Error {
    fn from(error: BuildError) -> Self {
        Self::Refused(error.to_string())
    }
}
