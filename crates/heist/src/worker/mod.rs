//! The workers of a pool: what they share, what each of them holds, and what a thread does with it.
//!
//! A *worker* is a numbered position in the pool. Its *core*, the right to run, is held by one *worker thread* at a
//! time. There are as many cores as workers. There can be more threads than workers, because a thread whose task waits
//! may hand its core to another thread; `policy` says which pools do that. Queues belong to threads (`table`).
//!
//! `README.md` has the protocol of waiting, with its argument.

pub(crate) mod admission;
pub(crate) mod config;
pub(crate) mod context;
pub(crate) mod copied;
pub(crate) mod core;
pub(crate) mod current;
pub(crate) mod divide;
pub(crate) mod limit;
pub(crate) mod near;
pub(crate) mod pin;
pub(crate) mod policy;
pub(crate) mod private;
pub(crate) mod shared;
pub(crate) mod table;
pub(crate) mod thread;

pub(crate) mod dump;
pub(crate) mod find;
pub(crate) mod look;
pub(crate) mod inbox;
pub(crate) mod turn;
pub(crate) mod rank;
pub(crate) mod quota;
pub(crate) mod retire;
pub(crate) mod run;

pub(crate) mod guest;
pub(crate) mod handoff;
pub(crate) mod help;
pub(crate) mod keep;
pub(crate) mod limited;
pub(crate) mod nested;
pub(crate) mod outside;
pub(crate) mod wait;
pub(crate) mod any;
pub(crate) mod yields;
