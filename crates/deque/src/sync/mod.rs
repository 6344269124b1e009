//! Atomics, cells, allocation, locks and threads. The rest of the crate uses only these.
//!
//! `--cfg loom` and `--cfg shuttle` replace the contents of this module by those of a model checker. The
//! logic of the crate is the same in all three configurations.

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
