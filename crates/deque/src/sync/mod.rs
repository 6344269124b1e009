//! The only door to atomics, cells, allocation, locks and threads.
//!
//! The rest of the crate does not know whether it runs on the real machine or inside a model
//! checker: `--cfg loom` and `--cfg shuttle` swap this module's contents, never the logic.

#[cfg(not(any(loom, shuttle)))]
mod native;
#[cfg(not(any(loom, shuttle)))]
pub use native::*;

#[cfg(loom)]
mod loom;
#[cfg(loom)]
pub use self::loom::*;

#[cfg(shuttle)]
mod shuttle;
#[cfg(shuttle)]
pub use self::shuttle::*;
