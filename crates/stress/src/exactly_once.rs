//! Checks that something happens exactly once for each of a range of numbers.

use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::Relaxed;

use crate::error::Violation;

/// Counts how often each number was recorded.
pub(crate) struct ExactlyOnce(Box<[AtomicU8]>);

impl ExactlyOnce {
    /// Expects each of the numbers below `count` once.
    pub(crate) fn new(count: usize) -> Self {
        Self((0..count).map(|_| AtomicU8::new(0)).collect())
    }

    pub(crate) fn record(&self, number: usize) {
        self.0[number].fetch_add(1, Relaxed);
    }

    /// Returns how many numbers were never recorded.
    pub(crate) fn lost(&self) -> usize {
        self.0.iter().filter(|times| times.load(Relaxed) == 0).count()
    }

    /// Returns how many numbers were recorded more than once.
    pub(crate) fn doubled(&self) -> usize {
        self.0.iter().filter(|times| times.load(Relaxed) > 1).count()
    }

    /// Returns an error unless every number was recorded exactly once. `what` names the things that the
    /// numbers stand for, in the plural.
    pub(crate) fn check(&self, what: &'static str) -> Result<(), Violation> {
        match (self.lost(), self.doubled()) {
            (0, 0) => Ok(()),
            (lost, doubled) => Err(Violation::NotOnce { what, lost, doubled, total: self.0.len() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_number_is_found() {
        let seen = ExactlyOnce::new(3);
        [0, 2].into_iter().for_each(|number| seen.record(number));
        let violation = seen.check("items").unwrap_err();
        assert_eq!(violation.to_string(), "1 lost, 0 doubled, of 3 items");
    }

    #[test]
    fn a_doubled_number_is_found() {
        let seen = ExactlyOnce::new(2);
        [0, 1, 0].into_iter().for_each(|number| seen.record(number));
        let violation = seen.check("items").unwrap_err();
        assert_eq!(violation.to_string(), "0 lost, 1 doubled, of 2 items");
    }

    #[test]
    fn numbers_that_come_once_pass() {
        let seen = ExactlyOnce::new(2);
        [1, 0].into_iter().for_each(|number| seen.record(number));
        assert_eq!(seen.check("items"), Ok(()));
    }
}
