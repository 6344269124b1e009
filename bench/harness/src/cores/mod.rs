//! Pins threads to processors.
//!
//! Otherwise the scheduler often puts two threads of a case on one processor, in particular if something else runs
//! on the other one. Then an owner never runs at the same time as its thief, and a thief finds the stolen items in
//! its own cache. Therefore each thread has a processor of its own.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub use linux::{pin, roam};

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(not(target_os = "linux"))]
pub use elsewhere::{pin, roam};

/// The processor of the owner, and of everything that runs alone.
pub const OWNER: usize = 0;

/// The processor of the thread that steals from the owner.
pub const THIEF: usize = 1;
