//! The workers of a pool: what they share, what one of them holds, what a thread does with it.
//!
//! A *worker* is a position in the pool, with a number. Its *core* (deque, counters, random numbers) is held by one
//! *worker thread* at a time. There are as many cores as workers; there can be more threads, because a thread whose
//! task waits hands its core to another thread.

pub(crate) mod shared;
pub(crate) mod core;
pub(crate) mod current;
pub(crate) mod thread;

pub(crate) mod find;
pub(crate) mod run;

pub(crate) mod handoff;
pub(crate) mod help;
pub(crate) mod nested;
pub(crate) mod wait;
