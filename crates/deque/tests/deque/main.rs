//! The contracts of the deques and of the injector. Three contracts have binaries of their own: `memory`
//! replaces the allocator, `race` needs two processors to itself, `auto_traits` runs the compiler.

#![cfg(all(feature = "std", not(any(loom, shuttle))))]

#[path = "../common/mod.rs"]
mod common;

mod owner;
mod thief;
mod injector;
mod injector_batches;
mod capacity;
mod drops;
mod sequences;
