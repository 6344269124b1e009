//! Atomics, cells, allocation, locks and threads. The rest of the crate uses only these.
//!
//! `--cfg loom` and `--cfg shuttle` replace the contents of this module by those of a model checker, and `--cfg
//! sim` by those of a virtual machine. The logic of the crate is the same in all configurations.

#[cfg(not(any(loom, shuttle, sim)))]
mod native;
#[cfg(not(any(loom, shuttle, sim)))]
pub use native::*;

#[cfg(sim)]
mod sim;
#[cfg(sim)]
pub use sim::*;

#[cfg(not(any(loom, shuttle)))]
mod backoff;
#[cfg(not(any(loom, shuttle)))]
pub(crate) use backoff::Backoff;

#[cfg(loom)]
mod loom;
#[cfg(loom)]
pub use self::loom::*;

#[cfg(shuttle)]
mod shuttle;
#[cfg(shuttle)]
pub use self::shuttle::*;
