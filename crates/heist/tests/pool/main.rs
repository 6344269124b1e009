//! The contracts of a pool: building it, tasks and their handles, waiting, panics, counters, traces and
//! the two ways to stop.

#![cfg(not(any(loom, shuttle)))]

#[path = "../common/mod.rs"]
mod common;

mod broadcast;
mod builder;
mod spawn;
mod handle;
mod future;
mod batch;
mod block_on;
mod install;
mod wait;
mod wait_chain;
mod yields;
mod threads;
mod limit;
mod queued;
mod resize;
mod cores;
mod pin;
mod order;
mod fairness;
mod priority;
mod near;
mod control;
mod panic;
mod cancel;
mod context;
mod drops;
mod current;
mod dump;
mod index;
mod stats;
mod trace;
mod stop;
mod stop_now;
mod stress;
