//! The outcome of an attempt to steal.

/// The outcome of an attempt to steal.
///
/// ```
/// use heist_deque::{Steal, growable};
///
/// let (worker, stealer) = growable::new();
/// worker.push(1);
/// assert_eq!(stealer.steal(), Steal::Success(1));
/// assert_eq!(stealer.steal(), Steal::Empty);
/// ```
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steal<T> {
    /// There was nothing to steal.
    Empty,
    /// This item was stolen.
    Success(T),
    /// Another thread interfered, and there may be items left. Try again, here or elsewhere.
    Retry,
}

impl<T> Steal<T> {
    /// Returns whether there was nothing to steal.
    ///
    /// ```
    /// assert!(heist_deque::Steal::<()>::Empty.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }

    /// Returns whether something was stolen.
    ///
    /// ```
    /// assert!(heist_deque::Steal::Success(1).is_success());
    /// ```
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Success(_))
    }

    /// Returns whether another attempt is worthwhile.
    ///
    /// ```
    /// assert!(heist_deque::Steal::<()>::Retry.is_retry());
    /// ```
    pub fn is_retry(&self) -> bool {
        matches!(self, Self::Retry)
    }

    /// Returns what was stolen, if anything.
    ///
    /// ```
    /// assert_eq!(heist_deque::Steal::Success(1).success(), Some(1));
    /// assert_eq!(heist_deque::Steal::<u8>::Retry.success(), None);
    /// ```
    pub fn success(self) -> Option<T> {
        match self {
            Self::Success(item) => Some(item),
            Self::Empty | Self::Retry => None,
        }
    }

    /// Applies a function to what was stolen, if anything.
    ///
    /// ```
    /// assert_eq!(heist_deque::Steal::Success(1).map(|n| n + 1), heist_deque::Steal::Success(2));
    /// ```
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Steal<U> {
        match self {
            Self::Success(item) => Steal::Success(change(item)),
            Self::Empty => Steal::Empty,
            Self::Retry => Steal::Retry,
        }
    }

    /// Makes another attempt if nothing was stolen. If one attempt returned `Retry` and the other one
    /// `Empty`, the result is `Retry`, so that a chain of attempts returns `Empty` only if all victims were
    /// empty.
    ///
    /// ```
    /// use heist_deque::Steal;
    ///
    /// assert_eq!(Steal::Empty.or_else(|| Steal::Success(1)), Steal::Success(1));
    /// assert_eq!(Steal::<u8>::Retry.or_else(|| Steal::Empty), Steal::Retry);
    /// assert_eq!(Steal::Success(1).or_else(|| unreachable!()), Steal::Success(1));
    /// ```
    pub fn or_else(self, elsewhere: impl FnOnce() -> Self) -> Self {
        match self {
            Self::Success(_) => self,
            Self::Empty => elsewhere(),
            Self::Retry => match elsewhere() {
                Self::Success(item) => Self::Success(item),
                Self::Empty | Self::Retry => Self::Retry,
            },
        }
    }
}

/// Returns the first success. If there is none, returns `Retry` if any attempt did, and `Empty` otherwise.
///
/// ```
/// use heist_deque::{Steal, growable};
///
/// let deques: Vec<_> = (0..3).map(|_| growable::new()).collect();
/// deques[2].0.push("found");
/// let found: Steal<_> = deques.iter().map(|(_, stealer)| stealer.steal()).collect();
/// assert_eq!(found, Steal::Success("found"));
/// ```
impl<T> FromIterator<Steal<T>> for Steal<T> {
    fn from_iter<I: IntoIterator<Item = Self>>(attempts: I) -> Self {
        let mut outcome = Self::Empty;
        for attempt in attempts {
            match attempt {
                Self::Success(_) => return attempt,
                Self::Retry => outcome = Self::Retry,
                Self::Empty => {}
            }
        }
        outcome
    }
}
