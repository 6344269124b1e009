//! What the tests share: pools whose threads are waited for, a list that records an order, and child
//! processes.

#![allow(dead_code, reason = "each test binary uses its own part of this module")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Output;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use heist_testkit::panics::panic_message;
use heist_testkit::process;
use rayon_core::{ThreadBuilder, ThreadPool, ThreadPoolBuilder};

/// Calls `f` with a pool. Its threads have ended when this returns.
pub(crate) fn with_pool<R>(threads: usize, f: impl FnOnce(&ThreadPool) -> R) -> R {
    with_built(ThreadPoolBuilder::new().num_threads(threads), f)
}

/// Like [`with_pool`], with a pool of this builder.
pub(crate) fn with_built<R>(builder: ThreadPoolBuilder, f: impl FnOnce(&ThreadPool) -> R) -> R {
    builder.build_scoped(ThreadBuilder::run, f).expect("a pool")
}

/// A list that records an order.
#[derive(Default)]
pub(crate) struct Order(Mutex<Vec<usize>>);

impl Order {
    pub(crate) fn push(&self, number: usize) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(number);
    }

    pub(crate) fn take(&self) -> Vec<usize> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Adds to a count.
pub(crate) fn add(count: &AtomicUsize, more: usize) {
    count.fetch_add(more, Ordering::Relaxed);
}

/// Returns the message of the panic of `f`.
pub(crate) fn panic_of<R>(f: impl FnOnce() -> R) -> String {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(_) => panic!("there should have been a panic"),
        Err(payload) => panic_message(&*payload).to_owned(),
    }
}

/// Returns whether this process is one that [`child`] has started.
pub(crate) fn is_child() -> bool {
    process::is_child()
}

/// Runs one test of this binary, given with its path, in a process of its own, with these variables and
/// none of Rayon's others.
pub(crate) fn child(test: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = process::command(test, "child");
    for variable in ["RAYON_NUM_THREADS", "RAYON_RS_NUM_CPUS", "HEIST_RAYON_LOG", "RUST_BACKTRACE"]
    {
        command.env_remove(variable);
    }
    command.envs(variables.iter().copied());
    process::output_of(command)
}

/// Runs the body of a test in a process of its own, where it must succeed.
pub(crate) fn alone(test: &str, variables: &[(&str, &str)], body: impl FnOnce()) {
    if is_child() {
        body();
    } else {
        process::assert_passed(test, &child(test, variables));
    }
}
