//! The contracts of sources that are made of others: merged ones, chunks, and streams; and of a second sink.

#![cfg(not(any(loom, shuttle)))]

#[path = "../common/mod.rs"]
mod common;

mod merge;
mod merge_ahead;
mod chunks;
mod chunks_timeout;
mod random;
#[cfg(feature = "futures")]
mod run_async;
#[cfg(feature = "futures")]
mod stream;
mod tee;

use std::num::NonZero;
use std::time::Duration;

use heist::Pool;
use heist::pipeline::{Feed, Pipeline, Sender};

use common::{Kind, WORKERS};

/// So long that no test waits for it.
const NEVER: Duration = Duration::MAX;
const SOON: Duration = Duration::from_millis(1);
/// What takes longer has gone wrong.
const LONG: Duration = Duration::from_secs(30);

/// A pool of each strategy and size.
fn pools() -> impl Iterator<Item = Pool> {
    WORKERS.into_iter().flat_map(|workers| {
        [
            Kind::WORK_STEALING.pool(workers),
            Kind::LOCKED_DEQUES.pool(workers),
            Kind::GLOBAL_QUEUE.pool(workers),
        ]
    })
}

fn fed<T>(capacity: usize) -> (Sender<T>, Pipeline<Feed<T>>) {
    Pipeline::fed(NonZero::new(capacity).expect("some room"))
}

/// Runs each function as a test of its own, under the watchdog.
macro_rules! watched_tests {
    ($($test:ident),* $(,)?) => {
        mod watched {
            $(
                #[test]
                fn $test() {
                    let path = heist_testkit::test_path!(stringify!($test));
                    $crate::common::watched(path, super::$test);
                }
            )*
        }
    };
}
use watched_tests;
