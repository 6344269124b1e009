//! The errors of this crate.

use core::fmt;

/// The reason why [`bounded::new`](crate::bounded::new) could not make a deque of the requested capacity.
///
/// ```
/// use heist_deque::{CapacityError, bounded};
///
/// let error = bounded::new::<u8>(100).unwrap_err();
/// assert_eq!(error, CapacityError::NotPowerOfTwo { requested: 100, below: 64, above: Some(128) });
/// assert_eq!(
///     error.to_string(),
///     "a capacity of 100 is not a power of two: the nearest ones are 64 and 128",
/// );
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CapacityError {
    /// The capacity was zero. The smallest valid capacity is one.
    Zero,
    /// The capacity was not a power of two.
    NotPowerOfTwo {
        /// The requested capacity.
        requested: usize,
        /// The nearest power of two below.
        below: usize,
        /// The nearest power of two above, if it fits into a `usize`.
        above: Option<usize>,
    },
    /// The slots need more bytes than one allocation can have.
    TooLarge {
        /// The requested capacity.
        requested: usize,
    },
    /// The allocator could not provide the memory.
    OutOfMemory {
        /// The requested capacity.
        requested: usize,
        /// The size of the failed allocation in bytes.
        bytes: usize,
    },
}

impl fmt::Display for CapacityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Zero => write!(f, "a capacity of 0 holds nothing: the nearest valid one is 1"),
            Self::NotPowerOfTwo { requested, below, above } => {
                write!(f, "a capacity of {requested} is not a power of two: ")?;
                match above {
                    Some(above) => write!(f, "the nearest ones are {below} and {above}"),
                    None => write!(f, "the nearest one is {below}"),
                }
            }
            Self::TooLarge { requested } => write!(
                f,
                "a capacity of {requested} needs more memory than can be addressed: ask for less, \
                 or use the growable flavour",
            ),
            Self::OutOfMemory { requested, bytes } => write!(
                f,
                "no memory for a capacity of {requested} ({bytes} bytes): ask for less, or free \
                 some first",
            ),
        }
    }
}

impl core::error::Error for CapacityError {}

/// A bounded deque had no free slot. Contains the item that was to be pushed.
///
/// ```
/// use heist_deque::{Full, bounded};
///
/// let (worker, _stealer) = bounded::new(1)?;
/// worker.push('a').unwrap();
/// let Full(item) = worker.push('b').unwrap_err();
/// assert_eq!(item, 'b');
/// # Ok::<(), heist_deque::CapacityError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Full<T>(
    /// The item that did not fit.
    pub T,
);

impl<T> Full<T> {
    /// Returns the item that did not fit.
    ///
    /// ```
    /// assert_eq!(heist_deque::Full(7).into_inner(), 7);
    /// ```
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> fmt::Debug for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Full(..)")
    }
}

impl<T> fmt::Display for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the deque is full: pop or steal first, or put the item into an injector")
    }
}

impl<T> core::error::Error for Full<T> {}
