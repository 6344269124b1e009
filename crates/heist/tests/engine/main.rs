//! The contracts of `heist::engine`, on which API shims such as rayon-core rely.

#![cfg(not(any(loom, shuttle)))]

mod basics;
mod lifecycle;
