//! Why an item could not be sent. Each error returns the item.

use std::fmt;

/// An item could not be sent, because the run has ended or the pipeline was dropped.
///
/// The error returns the item.
///
/// ```
/// use std::num::NonZero;
/// use heist::pipeline::Pipeline;
///
/// let (sender, pipeline) = Pipeline::fed(NonZero::<usize>::MIN);
/// drop(pipeline);
/// assert_eq!(sender.send(7).unwrap_err().0, 7);
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(
    /// The item that was not sent.
    pub T,
);

/// An item could not be sent at once: the error of [`Sender::try_send`](super::Sender::try_send).
///
/// The error returns the item.
///
/// ```
/// use std::num::NonZero;
/// use heist::pipeline::{Pipeline, TrySendError};
///
/// let (sender, pipeline) = Pipeline::fed(NonZero::<usize>::MIN);
/// sender.try_send("a")?;
/// let error = sender.try_send("b").unwrap_err();
/// assert!(matches!(error, TrySendError::Full(_)));
/// assert_eq!(error.into_inner(), "b");
/// # drop(pipeline);
/// # Ok::<(), TrySendError<&str>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TrySendError<T> {
    /// There is no room for the item at the moment.
    Full(T),
    /// The run has ended or the pipeline was dropped.
    Closed(T),
}

/// An item could not be sent in time: the error of [`Sender::send_timeout`](super::Sender::send_timeout).
///
/// The error returns the item.
///
/// ```
/// use std::num::NonZero;
/// use std::time::Duration;
/// use heist::pipeline::{Pipeline, SendTimeoutError};
///
/// let (sender, pipeline) = Pipeline::fed(NonZero::<usize>::MIN);
/// drop(pipeline);
/// let error = sender.send_timeout(7, Duration::from_secs(1)).unwrap_err();
/// assert_eq!(error, SendTimeoutError::Closed(7));
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SendTimeoutError<T> {
    /// There was no room for the item in time.
    Timeout(T),
    /// The run has ended or the pipeline was dropped.
    Closed(T),
}

impl<T> TrySendError<T> {
    /// Returns the item that was not sent.
    ///
    /// ```
    /// use heist::pipeline::TrySendError;
    ///
    /// assert_eq!(TrySendError::Full(7).into_inner(), 7);
    /// ```
    pub fn into_inner(self) -> T {
        let (Self::Full(item) | Self::Closed(item)) = self;
        item
    }
}

impl<T> SendTimeoutError<T> {
    /// Returns the item that was not sent.
    ///
    /// ```
    /// use heist::pipeline::SendTimeoutError;
    ///
    /// assert_eq!(SendTimeoutError::Timeout(7).into_inner(), 7);
    /// ```
    pub fn into_inner(self) -> T {
        let (Self::Timeout(item) | Self::Closed(item)) = self;
        item
    }
}

/// What all of these errors say when there is no run any more.
const CLOSED: &str = "the pipeline has ended and takes no more items";

impl<T> From<SendError<T>> for TrySendError<T> {
    fn from(SendError(item): SendError<T>) -> Self {
        Self::Closed(item)
    }
}

impl<T> From<SendError<T>> for SendTimeoutError<T> {
    fn from(SendError(item): SendError<T>) -> Self {
        Self::Closed(item)
    }
}

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SendError").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Full(_) => "Full",
            Self::Closed(_) => "Closed",
        };
        f.debug_tuple(name).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for SendTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Timeout(_) => "Timeout",
            Self::Closed(_) => "Closed",
        };
        f.debug_tuple(name).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(CLOSED)
    }
}

impl<T> fmt::Display for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "the pipeline has no room for the item at the moment",
            Self::Closed(_) => CLOSED,
        })
    }
}

impl<T> fmt::Display for SendTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Timeout(_) => "the pipeline had no room for the item in time",
            Self::Closed(_) => CLOSED,
        })
    }
}

impl<T> std::error::Error for SendError<T> {}
impl<T> std::error::Error for TrySendError<T> {}
impl<T> std::error::Error for SendTimeoutError<T> {}
