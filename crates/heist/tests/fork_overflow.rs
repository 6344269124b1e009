//! Forks that nest without end: the process dies as it does of any recursion, and quickly, with nothing
//! overwritten.

#![cfg(all(unix, not(any(loom, shuttle))))]

mod common;

use std::env;
use std::hint::black_box;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use common::{Kind, for_every_strategy};

for_every_strategy! {
    in_a_first_half,
}

/// Tells a child from its parent.
const CHILD: &str = "HEIST_TEST_OVERFLOW";
const STACK: usize = 256 << 10;

/// `SIGABRT`, with which the standard library ends a process whose stack is full, and `SIGSEGV`.
const SIGNALS: [i32; 2] = [6, 11];

fn nest(depth: usize) -> usize {
    let (below, here) = heist::join(|| nest(black_box(depth + 1)), || black_box(1));
    below + here
}

/// A crash on purpose leaves no memory image.
#[cfg(target_os = "linux")]
fn leave_no_core() {
    let limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is a valid one, and lives through the call.
    let code = unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const limit) };
    assert_eq!(code, 0);
}

#[cfg(not(target_os = "linux"))]
fn leave_no_core() {}

fn in_a_first_half<S: Kind>() {
    for workers in [1, 2] {
        overflow::<S>(workers, &format!("{}-{workers}", S::STRATEGY));
    }
}

fn overflow<S: Kind>(workers: usize, name: &str) {
    if let Ok(wanted) = env::var(CHILD) {
        if wanted == name {
            leave_no_core();
            let pool = S::builder(workers).stack_size(STACK).build().expect("a pool");
            println!("begins");
            pool.install(|| nest(0));
        }
        return;
    }
    let mut child = Command::new(env::current_exe().expect("a test binary"));
    child.args(["in_a_first_half", "--nocapture", "--test-threads=1"]).env(CHILD, name);
    let output = child.output().expect("a process");
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(out.contains("begins"), "{name}: {out}");
    let signal = output.status.signal();
    assert!(signal.is_some_and(|signal| SIGNALS.contains(&signal)), "{name}: {}", output.status);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!told.contains("hangs"), "{name}: {told}");
}
