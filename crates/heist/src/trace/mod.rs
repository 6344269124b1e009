//! What the threads of a pool did, and when: the last events of each.
//!
//! A pool that was [told to](crate::Builder::trace) keeps them in memory, and [`Pool::trace_snapshot`](crate::Pool::trace_snapshot)
//! reads them at any time, without a word to the threads. [`Trace::write_chrome`] makes a file of them that
//! [Perfetto](https://ui.perfetto.dev) and `chrome://tracing` show.
//!
//! ```
//! let pool = heist::Pool::builder().workers(2).trace(1000).build()?;
//! pool.spawn(|| ()).join().unwrap();
//! pool.stop();
//! let trace = pool.trace_snapshot().expect("it was asked for");
//! let events = trace.threads.iter().flat_map(|thread| &thread.events);
//! assert!(events.clone().any(|event| event.kind == heist::trace::EventKind::Start));
//!
//! let mut file = Vec::new();
//! trace.write_chrome(&mut file)?;
//! assert!(file.starts_with(b"{\"traceEvents\":["));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # For any program
//!
//! With the environment variable `HEIST_TRACE` set to the name of a file, every pool of the program that was not told otherwise keeps
//! the last 65,535 events of each thread, and they are written to that file when the program ends: when `main` returns, or by
//! [`std::process::exit`] (not on Windows), not by a signal or an abort. Of many pools, 64 are in it: those that ended first go first. `%p` in the
//! name is the process's number, for programs that start others.
//!
//! ```sh
//! HEIST_TRACE=trace.json cargo run --release
//! ```
//!
//! # Spans
//!
//! With the feature `tracing`, whatever subscriber the program has set sees every task as a span: `task`, target `heist`, level `TRACE`. So what a
//! task logs is seen to be within it. This has nothing to do with the rest of this module: no pool need be told.
//!
//! # What it costs
//!
//! Two looks at the clock for each task, one more where it was stolen or came from outside, and 16 bytes for each event that is kept. Joins that
//! nobody wanted to take part in are no tasks, and leave no trace. Without a trace, each of these looks is a test of a word, and a join costs nothing.

mod chrome;
mod event;
#[cfg(not(any(loom, shuttle)))]
mod file;
mod log;
mod recorder;
mod ring;
#[cfg(feature = "tracing")]
mod span;

pub use event::{Event, EventKind, ThreadTrace, Trace};
pub(crate) use log::{Log, MOST_EVENTS};
pub(crate) use recorder::{Recorder, record, task};
#[cfg(all(test, loom))]
pub(crate) use ring::Ring;

use crate::sync::Arc;

/// Events of each thread, where the environment asks for a trace.
#[cfg(not(any(loom, shuttle)))]
const EVENTS: usize = (1 << 16) - 1;

/// For a pool that was told to keep so many events of each thread, or nothing.
pub(crate) fn of_pool(name: &str, workers: usize, told: Option<usize>) -> Option<Arc<Log>> {
    let log = |events| Arc::new(Log::new(name, workers, events));
    match told {
        Some(0) => None,
        Some(events) => Some(log(events)),
        None => of_environment(log),
    }
}

#[cfg(not(any(loom, shuttle)))]
fn of_environment(log: impl FnOnce(usize) -> Arc<Log>) -> Option<Arc<Log>> {
    file::is_wanted().then(|| file::keep(log(EVENTS)))
}

/// There is none in a model.
#[cfg(any(loom, shuttle))]
fn of_environment(_: impl FnOnce(usize) -> Arc<Log>) -> Option<Arc<Log>> {
    None
}
