//! The error of a failed build.

use std::error::Error;
use std::fmt;
use std::io;

/// The reason why a pool could not be built. Threads that were started end again.
///
/// ```
/// let build = || rayon_core::ThreadPoolBuilder::new().num_threads(1).build_global();
/// build()?;
/// let error = build().unwrap_err();
/// assert_eq!(error.to_string(), "The global thread pool has already been initialized.");
/// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
/// ```
#[derive(Debug)]
pub struct ThreadPoolBuildError {
    kind: ErrorKind,
}

#[derive(Debug)]
pub(crate) enum ErrorKind {
    GlobalPoolAlreadyInitialized,
    CurrentThreadAlreadyInPool,
    IOError(io::Error),
}

impl ErrorKind {
    /// Returns the text, or the error of the system that has one. The texts are exactly those of stock
    /// rayon-core, because programs compare them.
    fn text(&self) -> Result<&'static str, &io::Error> {
        match self {
            Self::GlobalPoolAlreadyInitialized => {
                Ok("The global thread pool has already been initialized.")
            }
            Self::CurrentThreadAlreadyInPool => {
                Ok("The current thread is already part of another thread pool.")
            }
            Self::IOError(error) => Err(error),
        }
    }
}

impl ThreadPoolBuildError {
    // A constructor instead of `From`, because an additional `From` implementation could change the type
    // inference of programs.
    pub(crate) fn new(kind: ErrorKind) -> Self {
        Self { kind }
    }

    /// Returns whether the system has no threads at all.
    pub(crate) fn is_unsupported(&self) -> bool {
        matches!(&self.kind, ErrorKind::IOError(error) if error.kind() == io::ErrorKind::Unsupported)
    }
}

impl fmt::Display for ThreadPoolBuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind.text() {
            Ok(text) => fmt::Display::fmt(text, f),
            Err(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl Error for ThreadPoolBuildError {
    #[expect(
        deprecated,
        reason = "there is no other way to get the text of an `io::Error` as a `&str`"
    )]
    fn description(&self) -> &str {
        self.kind.text().unwrap_or_else(|error| error.description())
    }

    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.kind {
            ErrorKind::IOError(error) => Some(error),
            _ => None,
        }
    }
}
