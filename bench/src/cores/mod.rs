//! On which core a thread runs.
//!
//! Left alone, the scheduler likes to put two threads of a case on one core, in particular when
//! something else runs on the other: then an owner never meets its thief, and a thief finds what
//! it steals in its own cache. So each has a core of its own.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(crate) use linux::{pin, roam};

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{pin, roam};

/// The owner's seat, and that of whatever else runs by itself.
pub(crate) const OWNER: usize = 0;

/// The seat of the thread that robs the owner.
pub(crate) const THIEF: usize = 1;
