//! The contracts of parallel loops and of parallel sorts.

#![cfg(not(any(loom, shuttle)))]

#[path = "../common/mod.rs"]
mod common;

mod loops;
mod sort;
mod sort_comparisons;
