//! Other systems: the scheduler decides.

/// Does nothing.
pub fn pin(_index: usize) {}

/// Does nothing.
pub fn roam() {}
