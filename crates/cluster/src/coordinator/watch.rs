//! What the coordinator knows of its workers, and what it tells those who watch the run.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use super::{Coordinator, LEAST_STRAGGLER};
use crate::engine::Queue;
use crate::message::{Ended, Hello};
use crate::status::{JobStatus, Straggler, WorkerStatus};

/// A worker that was not heard of for this long is not shown any more.
const FORGOTTEN: Duration = Duration::from_secs(60);
/// Stragglers that are shown at most.
const STRAGGLERS: usize = 16;

/// The workers that serve the run, by their ids.
#[derive(Default)]
pub(super) struct Workers(HashMap<u64, (Hello, Instant)>);

impl Workers {
    pub(super) fn hear(&mut self, hello: Hello, now: Instant) {
        self.0.retain(|_, (_, heard)| now.saturating_duration_since(*heard) < FORGOTTEN);
        self.0.insert(hello.id, (hello, now));
    }

    pub(super) fn left(&mut self, id: u64) {
        self.0.remove(&id);
    }

    /// Returns what is shown. Workers with the same name are shown as one.
    fn status(&self, now: Instant) -> Vec<WorkerStatus> {
        let mut nodes = BTreeMap::<_, WorkerStatus>::new();
        for (hello, heard) in self.0.values() {
            let silent = now.saturating_duration_since(*heard);
            let first = || WorkerStatus { node: hello.node.clone(), silent, ..Default::default() };
            let node = nodes.entry(&hello.node).or_insert_with(first);
            node.threads += hello.threads;
            node.held += hello.held;
            node.silent = node.silent.min(silent);
        }
        nodes.into_values().collect()
    }
}

impl<Q: Queue> Coordinator<Q> {
    /// Returns how long the run has lasted, in microseconds.
    pub(super) fn micros(&self) -> u64 {
        self.began.elapsed().as_micros() as u64
    }

    /// Adds a mark to the trace, if there is one.
    pub(super) fn mark(&mut self, what: impl FnOnce() -> String) {
        let micros = self.micros();
        if let Some(trace) = &mut self.trace {
            trace.mark(micros, &what());
        }
    }

    /// Adds a batch that was computed to the trace, if there is one.
    pub(super) fn trace_batch(&mut self, ended: &Ended, note: &str) {
        let (micros, outstanding) = (self.micros(), self.window.outstanding());
        if let Some(trace) = &mut self.trace {
            trace.batch(ended, note);
            trace.outstanding(micros, outstanding);
        }
    }

    /// Returns what happens at the moment.
    pub(super) fn status(&self) -> JobStatus {
        let now = Instant::now();
        let mut report = self.report.clone();
        report.elapsed = now.saturating_duration_since(self.began);
        let stragglers = self.window.stragglers(LEAST_STRAGGLER, now).take(STRAGGLERS);
        JobStatus {
            job: self.job.name.clone(),
            run: format!("{:016x}", self.job.run),
            coordinator: self.settings.node.clone(),
            report,
            outstanding: self.window.outstanding(),
            oldest: self.window.oldest(now),
            stragglers: stragglers
                .map(|(batch, age, nodes)| Straggler { batch, age, nodes: nodes.to_vec() })
                .collect(),
            workers: self.workers.status(now),
        }
    }
}
