//! The virtual clock, as `std::time::Instant` shows the real one.

use std::ops::{Add, Sub};
use std::time::Duration;

use crate::costs::Picos;
use crate::kernel::{self, enter};
use crate::report::Activity;

/// A moment in virtual time. Outside of a simulation it is always the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(Picos);

impl Instant {
    /// Reads the clock of the calling thread, which takes some time.
    pub fn now() -> Self {
        kernel::spend(Activity::Clock, |ticks| ticks.clock);
        Self(enter(|kernel| kernel.now()).unwrap_or(0))
    }

    /// Returns the time since this moment.
    pub fn elapsed(&self) -> Duration {
        Self::now().saturating_duration_since(*self)
    }

    /// Returns the time since an earlier moment, or zero if it is later.
    pub fn duration_since(&self, earlier: Self) -> Duration {
        self.saturating_duration_since(earlier)
    }

    /// Returns the time since an earlier moment, or zero if it is later.
    pub fn saturating_duration_since(&self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0) / 1_000)
    }

    /// Returns the moment after that time, or `None` if there is no such moment.
    pub fn checked_add(&self, time: Duration) -> Option<Self> {
        self.0.checked_add(picos(time)).map(Self)
    }
}

/// Converts a duration to the unit of the virtual clock.
pub(crate) fn picos(time: Duration) -> Picos {
    Picos::try_from(time.as_nanos() * 1_000).unwrap_or(Picos::MAX)
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        Self(self.0.saturating_add(picos(time)))
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.saturating_duration_since(earlier)
    }
}
