//! Traces: what the threads of a pool did, and when. The last events of each thread are kept.
//!
//! A pool that was built with [`Builder::trace`](crate::Builder::trace) keeps them in memory, and
//! [`Pool::trace_snapshot`](crate::Pool::trace_snapshot) reads them at any time, without disturbing the threads.
//! [`Trace::write_chrome`] writes them to a file that [Perfetto](https://ui.perfetto.dev) and `chrome://tracing`
//! show.
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
//! # Names
//!
//! A task has the name of its closure's type, such as `app::load::{{closure}}`. A function that is spawned by its name has that
//! name. `heist trace --summary` adds up the time of the tasks with each name.
//!
//! # For any program
//!
//! If the environment variable `HEIST_TRACE` names a file, every pool of the program that was not configured
//! otherwise keeps the last 65,535 events of each thread, and writes them to that file when the program exits:
//! when `main` returns, or by [`std::process::exit`] (not on Windows), but not on a signal or an abort. If there
//! are many pools, the file has 64 of them; those that ended first are dropped first. `%p` in the name stands for
//! the process id, for programs that start others.
//!
//! ```sh
//! HEIST_TRACE=trace.json cargo run --release
//! ```
//!
//! # Spans
//!
//! With the feature `tracing`, the program's subscriber sees every task as a span: name `task`, target `heist`,
//! level `TRACE`. So what a task logs appears within its span. This is independent of the rest of this module,
//! and no pool needs to be configured for it.
//!
//! # What it costs
//!
//! A trace takes two looks at the clock for each task, one more for a task that was stolen or came from outside,
//! and 16 bytes for each event that is kept. A join whose second half stays private is no task and leaves no
//! event. Without a trace, each of these looks is a test of one word, and a join costs nothing.

mod chrome;
mod event;
#[cfg(not(any(loom, shuttle)))]
mod file;
mod last;
mod log;
mod names;
mod recorder;
mod ring;
#[cfg(feature = "tracing")]
mod span;

pub use event::{Event, EventKind, ThreadTrace, Trace};
pub(crate) use last::LastEvents;
pub(crate) use log::{Log, MOST_EVENTS};
pub(crate) use recorder::{Recorder, record, record_start, rename, task_named};
#[cfg(all(test, loom))]
pub(crate) use ring::Ring;

use crate::sync::Arc;

/// The number of events for each thread, where the environment requests a trace.
#[cfg(not(any(loom, shuttle)))]
const EVENTS: usize = (1 << 16) - 1;

/// Returns the log of a pool that was configured to keep this many events of each thread, or was not configured.
pub(crate) fn of_pool(name: &str, workers: usize, events: Option<usize>) -> Option<Arc<Log>> {
    let log = |events| Arc::new(Log::new(name, workers, events));
    match events {
        Some(0) => None,
        Some(events) => Some(log(events)),
        None => of_environment(log),
    }
}

#[cfg(not(any(loom, shuttle)))]
fn of_environment(log: impl FnOnce(usize) -> Arc<Log>) -> Option<Arc<Log>> {
    file::is_wanted().then(|| file::keep(log(EVENTS)))
}

/// Returns no log: there is no trace in a model.
#[cfg(any(loom, shuttle))]
fn of_environment(_: impl FnOnce(usize) -> Arc<Log>) -> Option<Arc<Log>> {
    None
}
