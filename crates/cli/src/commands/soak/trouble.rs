//! Why a shape did not end well.

use std::io;

use heist::BuildError;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Something was lost, doubled or otherwise not as it should be: this.
    Wrong(String),
    /// The system has refused a thread. That says nothing about the shape.
    Refused(String),
}

impl From<String> for Trouble {
    fn from(wrong: String) -> Self {
        Self::Wrong(wrong)
    }
}

/// Of a thread.
impl From<io::Error> for Trouble {
    fn from(refused: io::Error) -> Self {
        Self::Refused(format!("the system refused a thread ({refused})"))
    }
}

impl From<BuildError> for Trouble {
    fn from(refused: BuildError) -> Self {
        Self::Refused(refused.to_string())
    }
}
