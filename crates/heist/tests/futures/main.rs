//! The contracts of futures: handles that are awaited in other executors, and futures on a pool, with the feature
//! `futures`.

#![cfg(not(any(loom, shuttle)))]

#[path = "../common/mod.rs"]
mod common;

mod executors;

#[cfg(feature = "futures")]
mod signal;
#[cfg(feature = "futures")]
mod spawned;
#[cfg(feature = "futures")]
mod ends;
#[cfg(feature = "futures")]
mod fairness;
#[cfg(feature = "futures")]
mod handle;
#[cfg(feature = "futures")]
mod built;
#[cfg(feature = "futures")]
mod context;
#[cfg(feature = "futures")]
mod joined;
#[cfg(feature = "futures")]
mod stream;
