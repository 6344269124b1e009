//! Loom models of every queue, and their negative twins.
//!
//! Run with `ci/models.sh`. Each model explores every interleaving of its threads (up to the stated number
//! of preemptions) and every value that the memory model lets a load return. It asserts a floor on the
//! number of executions: a model that explores nothing fails. Each twin is the same model with one ordering
//! of the real code weakened, or with one of the classic mistakes made in a deque of the classic kind; it
//! must fail.

#![cfg(loom)]

mod beam;
mod deques;
mod injector;
mod twins;
