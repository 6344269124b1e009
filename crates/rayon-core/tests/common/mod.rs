//! What the tests share: pools whose threads are waited for, a list that tells the order, and children.

#![allow(dead_code, reason = "each test binary uses its own part of this module")]

use std::any::Any;
use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon_core::{ThreadBuilder, ThreadPool, ThreadPoolBuilder};

/// Calls `f` with a pool. Its threads have ended when this returns.
pub(crate) fn with_pool<R>(threads: usize, f: impl FnOnce(&ThreadPool) -> R) -> R {
    with_built(ThreadPoolBuilder::new().num_threads(threads), f)
}

/// Likewise, with a pool that is something special.
pub(crate) fn with_built<R>(builder: ThreadPoolBuilder, f: impl FnOnce(&ThreadPool) -> R) -> R {
    builder.build_scoped(ThreadBuilder::run, f).expect("a pool")
}

/// Who came when.
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

/// So many more.
pub(crate) fn add(count: &AtomicUsize, more: usize) {
    count.fetch_add(more, Ordering::Relaxed);
}

/// The panic that `f` ends with, which is a text.
pub(crate) fn panic_of<R>(f: impl FnOnce() -> R) -> String {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(_) => panic!("there should have been a panic"),
        Err(payload) => text(&*payload),
    }
}

pub(crate) fn text(payload: &(dyn Any + Send)) -> String {
    match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "not a text".to_owned(),
    }
}

const CHILD: &str = "RAYON_CORE_TEST_CHILD";

/// Is this the process that [`child`] has started?
pub(crate) fn is_child() -> bool {
    env::var_os(CHILD).is_some()
}

/// Runs one test of this program in a process of its own, with these variables and none of Rayon's others.
pub(crate) fn child(test: &str, variables: &[(&str, &str)]) -> Output {
    let program = env::current_exe().expect("a test is a program");
    let mut command = Command::new(program);
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(CHILD, "1");
    for variable in ["RAYON_NUM_THREADS", "RAYON_RS_NUM_CPUS", "HEIST_RAYON_LOG", "RUST_BACKTRACE"]
    {
        command.env_remove(variable);
    }
    command.envs(variables.iter().copied()).output().expect("a child")
}

/// A test whose body, in a process of its own, must succeed.
pub(crate) fn alone(test: &str, variables: &[(&str, &str)], body: impl FnOnce()) {
    if is_child() {
        body();
        return;
    }
    let output = child(test, variables);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{test}: {}\n{said}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(said.contains("1 passed"), "there is no test {test}: {said}");
}
