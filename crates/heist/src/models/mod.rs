//! Loom models of the protocols between threads, and their negative twins.
//!
//! Run with `ci/models.sh`. See the models of `heist-deque` for how they work: every interleaving, every
//! value that a load may return, a floor on how many executions were seen; and with any one ordering
//! weakened or any one fence taken away, some model must fail.

#[path = "../../../deque/tests/models/explore.rs"]
mod explore;

mod idle;
mod stats;
mod task;
mod twins;
