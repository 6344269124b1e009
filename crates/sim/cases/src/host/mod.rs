//! The machine on which the workloads run.

#[cfg(not(sim))]
mod real;
#[cfg(not(sim))]
pub(crate) use real::*;

#[cfg(sim)]
mod sim;
#[cfg(sim)]
pub(crate) use sim::*;
