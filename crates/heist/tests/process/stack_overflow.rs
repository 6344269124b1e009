//! Unbounded recursion of forks: the process dies quickly, like any stack overflow, and no memory is
//! overwritten.

use std::hint::black_box;
use std::os::unix::process::ExitStatusExt;

use heist_testkit::limits::disable_core_dumps;
use heist_testkit::process;

use crate::common::{Kind, for_every_strategy};

for_every_strategy! {
    in_a_first_half,
}

const STACK: usize = 256 << 10;

/// `SIGABRT`, with which the standard library ends a process whose stack is full, and `SIGSEGV`.
const SIGNALS: [i32; 2] = [6, 11];

fn nest(depth: usize) -> usize {
    let (below, here) = heist::join(|| nest(black_box(depth + 1)), || black_box(1));
    below + here
}

fn in_a_first_half(kind: Kind) {
    for workers in [1, 2] {
        overflow(kind, workers, &format!("{}-{workers}", kind.strategy));
    }
}

fn overflow(kind: Kind, workers: usize, name: &str) {
    if let Some(wanted) = process::part() {
        if wanted == name {
            // A crash on purpose leaves no core file.
            disable_core_dumps();
            let pool = kind.builder(workers).stack_size(STACK).build().expect("a pool");
            println!("begins");
            pool.install(|| nest(0));
        }
        return;
    }
    let output = process::output_of(process::command_for_current_test(name));
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(out.contains("begins"), "{name}: {out}");
    let signal = output.status.signal();
    assert!(signal.is_some_and(|signal| SIGNALS.contains(&signal)), "{name}: {}", output.status);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!told.contains("hangs"), "{name}: {told}");
}
