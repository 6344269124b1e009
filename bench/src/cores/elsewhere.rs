//! Systems on which we leave it to the scheduler.

pub(crate) fn pin(_seat: usize) {}

pub(crate) fn roam() {}
