#!/usr/bin/env bash
# Runs the published tests of rayon and rayon-core on our rayon-core: unit tests, integration tests and doc tests. The tests
# are not in this repository: the script fetches them into target/rayon-suite.
#
# The numbers below are minimums. The first is the number of tests that pass on rayon-core 1.13.0 itself, so that no test goes
# missing unnoticed. The second is the number of test processes in which a pool of ours was seen. It is well below the usual
# number, because a process may end before the first thread of its pool has logged a line.
set -euo pipefail
cd "$(dirname "$0")/.."
# The packages of the workspace with their own lock file have compiled some of it.
target=${CARGO_TARGET_DIR:-$PWD/target}
# shellcheck source=ci/rayon-common.sh
source ci/rayon-common.sh
export CARGO_TARGET_DIR=$target

fetch rayon=1.12.0 rayon-core=1.13.0

# rayon, unchanged. All tests run.
unpack rayon=1.12.0
cd "$work/rayon"
settle
tests rayon 332 12 --lib --tests
tests rayon-doc 246 50 --doc

# rayon-core. Its sources are compiled under another name, so that `rayon_core` in its doc tests and integration tests is our
# crate. Its unit tests use paths that begin with `crate::`. Here they are modules of an integration test whose root contains
# everything that our crate exports, and the three private items that the tests use.
unpack rayon-core=1.13.0
cd "$work/rayon-core"
sed -i.orig -e 's/^name = "rayon-core"$/name = "theirs"/' -e 's/^name = "rayon_core"$/name = "theirs"\ntest = false/' \
    -e '/^links = /d' -e 's/^build = .*/build = false/' Cargo.toml Cargo.lock
cat >>Cargo.toml <<'TOML'

[[test]]
name = "unit"
path = "src/unit.rs"

[dev-dependencies.rayon-core]
version = "1.13.0"
TOML
cat >src/unit.rs <<'RUST'
#![allow(unused_imports, dead_code)]

use rayon_core::*;
use std::ops::Deref;
use std::sync::{Arc, Condvar, Mutex};

mod unwind {
    pub(crate) fn halt_unwinding<R>(f: impl FnOnce() -> R) -> std::thread::Result<R> {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(f))
    }
}

mod registry {
    pub(crate) fn in_worker<R: Send>(op: impl FnOnce((), ()) -> R + Send) -> R {
        rayon_core::scope(|_| op((), ()))
    }
}

/// A pool with the two functions of its registry that the tests use: the number of threads, and waiting for their end.
struct Watched {
    pool: ThreadPool,
    registry: Arc<Registry>,
}

struct Registry {
    threads: usize,
    running: Mutex<usize>,
    stopped: Condvar,
}

impl Watched {
    fn new(threads: usize) -> Watched {
        let registry = Arc::new(Registry { threads, running: Mutex::new(threads), stopped: Condvar::new() });
        let at_exit = Arc::clone(&registry);
        let pool = ThreadPoolBuilder::new().num_threads(threads).exit_handler(move |_| {
            *at_exit.running.lock().unwrap() -= 1;
            at_exit.stopped.notify_all();
        });
        Watched { pool: pool.build().unwrap(), registry }
    }
}

impl Deref for Watched {
    type Target = ThreadPool;
    fn deref(&self) -> &ThreadPool {
        &self.pool
    }
}

impl Registry {
    fn num_threads(&self) -> usize {
        self.threads
    }
    fn wait_until_stopped(&self) {
        drop(self.stopped.wait_while(self.running.lock().unwrap(), |running| *running > 0).unwrap());
    }
}

mod test;
mod broadcast {
    mod test;
}
mod join {
    use crate::unwind;
    use rayon_core::{join, join_context};
    mod test;
}
mod scope {
    mod test;
}
mod spawn {
    use rayon_core::{spawn, spawn_fifo};
    mod test;
}
mod thread_pool {
    mod test;
}
RUST
# Two tests (workers_stop, sleeper_stop) use the registry inside the pool.
sed -i.orig 's/let thread_pool = ThreadPoolBuilder::new().num_threads(22).build().unwrap();/let thread_pool = crate::Watched::new(22);/' \
    src/thread_pool/test.rs
[[ $(grep -c 'crate::Watched' src/thread_pool/test.rs) == 2 ]] || fail "the tests that use a pool's registry have changed"

settle
# All tests run. The two ignored ones (run_with_small_stack, run_with_large_stack) are run by stack_overflow_crash in separate
# processes.
tests rayon-core 110 3 --tests
tests rayon-core-doc 27 5 --doc

printf '%s: %s tests passed on %s\n' "$me" "$total" "$core"
