//! Helpers that the tests of `heist-deque`, `heist` and `rayon-core` share.
//!
//! This crate depends on none of the three, because all of them have it as a development dependency.
//! Helpers that need a type of a crate under test are in `tests/common` of that crate.
//!
//! | Module | What it offers |
//! |---|---|
//! | [`alloc`] | a global allocator that counts |
//! | [`compile_fail`] | when the recorded compiler messages can be compared |
//! | [`executor`] | a minimal executor and a waker that counts |
//! | `explore` | loom: exploration with a floor, and negative twins (cfg and feature `loom`) |
//! | [`ledger`] | values that record how often they were dropped |
//! | [`limits`] | resource limits of the process |
//! | [`panics`] | panic messages, and silence for panics that a test causes on purpose |
//! | [`process`] | parts of a test in a process of their own |
//! | [`random`] | a seeded random number generator |
//! | `schedules` | shuttle: random and PCT schedules (cfg and feature `shuttle`) |
//! | [`threads`] | counts threads of the process by name, or by the hooks of a pool |
//! | [`watchdog`] | aborts a test that hangs; waits for a condition |

pub mod alloc;
pub mod compile_fail;
pub mod executor;
#[cfg(all(loom, feature = "loom"))]
pub mod explore;
pub mod ledger;
pub mod limits;
pub mod machine;
pub mod panics;
pub mod process;
pub mod random;
#[cfg(all(shuttle, feature = "shuttle"))]
pub mod schedules;
pub mod threads;
pub mod watchdog;

/// Creates an empty temporary directory. It is removed when the value is dropped.
///
/// # Panics
///
/// Panics if the directory cannot be created.
#[must_use]
pub fn temp_dir() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("heist-test-").tempdir().expect("a temporary directory")
}

/// The full path of a test of the current module, as [`watchdog::watched`] and [`process`] expect it: the
/// name of the test binary, the modules and the function.
#[macro_export]
macro_rules! test_path {
    ($test:expr) => {
        concat!(module_path!(), "::", $test)
    };
}
