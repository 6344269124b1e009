//! oneTBB, in C++: the three smallest programs, in which only the cost of a fork counts.

use std::ffi::{CStr, c_char, c_int};
use std::hint::black_box;
use std::time::Instant;

use harness::row::{Row, Sample};

use super::uts::light;
use super::{expect, nqueens};
use crate::peers::STACK;

const NAME: &str = "tbb";

/// A smaller number than for the others, because a join takes tens of nanoseconds here, whatever the number.
const FIB: u64 = if cfg!(test) { 10 } else { 31 };
const FIB_RESULT: u64 = if cfg!(test) { 55 } else { 1_346_269 };
const FIB_JOINS: u64 = if cfg!(test) { 88 } else { 2_178_308 };

// SAFETY: these are the signatures in `programs.cpp`. None of them takes a pointer or throws, and only the
// measuring thread calls them.
unsafe extern "C" {
    safe fn heist_bench_tbb_version() -> *const c_char;
    safe fn heist_bench_tbb_fib(workers: c_int, stack: usize, n: u64) -> u64;
    safe fn heist_bench_tbb_queens(workers: c_int, stack: usize, queens: u32) -> u64;
    safe fn heist_bench_tbb_light(
        workers: c_int,
        stack: usize,
        seed: u64,
        limit: u64,
        root: u32,
        children: u32,
    ) -> u64;
}

/// Returns the version of the loaded library.
pub(crate) fn version() -> String {
    // SAFETY: it returns a string constant of the library, which is never freed.
    let version = unsafe { CStr::from_ptr(heist_bench_tbb_version()) };
    version.to_string_lossy().into_owned()
}

/// Adds oneTBB to a row, if it has this program.
pub(super) fn enter(rows: &mut [Row]) {
    for row in rows {
        match (row.workload, row.case.split('/').next()) {
            ("fib", _) => {
                let run = |workers| heist_bench_tbb_fib(workers, STACK, black_box(FIB));
                enter_one(row, run, FIB_RESULT, FIB_JOINS);
            }
            ("nqueens", _) => {
                use nqueens::{BOARDS, QUEENS, SOLUTIONS};
                let run = |workers| heist_bench_tbb_queens(workers, STACK, black_box(QUEENS));
                enter_one(row, run, SOLUTIONS, BOARDS);
            }
            ("uts", Some("light")) => {
                use light::{CHILDREN, LIMIT, NODES, ROOT, SEED};
                let run =
                    |workers| heist_bench_tbb_light(workers, STACK, SEED, LIMIT, ROOT, CHILDREN);
                enter_one(row, run, NODES, NODES);
            }
            _ => (),
        }
    }
}

fn enter_one(row: &mut Row, run: fn(c_int) -> u64, expected: u64, operations: u64) {
    let workers = row.workers.expect("cases with oneTBB have a number of workers") as c_int;
    row.enter(NAME, move || {
        let start = Instant::now();
        let found = run(workers);
        let time = start.elapsed();
        expect(NAME, found, expected);
        Sample::new(time, operations)
    });
}
