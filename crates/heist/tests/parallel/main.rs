//! The contracts of parallel loops and of parallel sorts.

#![cfg(not(any(loom, shuttle)))]

#[path = "../common/mod.rs"]
mod common;

mod cancelled;
mod early;
mod init;
mod loops;
mod owned;
mod pieces;
mod sort;
mod sort_comparisons;

use common::{Kind, WORKERS};

/// Sizes around those at which loops are divided differently.
const SIZES: [usize; 11] = [0, 1, 2, 3, 7, 63, 64, 65, 128, 1_000, 8_000];

/// Work that is sometimes worth dividing.
fn work(n: usize) -> usize {
    (0..n % 97 * 10).fold(n, |sum, x| std::hint::black_box(sum ^ x))
}

/// Runs a test outside of any pool, and in pools of several sizes. What an installed closure needs is compiled once for all
/// tests.
fn everywhere(kind: Kind, test: &(dyn Fn() + Sync)) {
    test();
    for workers in WORKERS {
        kind.pool(workers).install(test);
    }
}
