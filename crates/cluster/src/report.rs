//! `ClusterReport`: what happened in a run.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::settings::Role;

/// What happened in a run on a cluster, as this process has seen it.
///
/// ```no_run
/// use heist::pipeline::Pipeline;
/// use heist_cluster::{Cluster, RunOn};
///
/// let cluster = Cluster::from_env()?;
/// let report = Pipeline::new(0..1000_u64).run_on(&cluster, "numbers", |_| ())?;
/// println!("{} batches, {} of them delivered again", report.batches, report.redelivered);
/// # Ok::<(), heist_cluster::ClusterError>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClusterReport {
    /// The role of this process.
    pub role: Role,
    /// Batches that were delivered to the sink, or that this worker has finished.
    pub batches: u64,
    /// Results that were delivered to the sink.
    pub results: u64,
    /// Items that have failed and were left out, in the batches that were computed.
    pub skipped: u64,
    /// Calls of stages that were repeated because they had failed, in the batches that were computed.
    pub retried: u64,
    /// Batches that were taken from an earlier run instead of being computed.
    pub resumed: u64,
    /// Batches that a worker started although another one had received them: it had died, was silent for too long, or was slow.
    pub redelivered: u64,
    /// Batches that were sent again because the server may have lost them.
    pub resent: u64,
    /// Copies of slow batches that were sent.
    pub copies: u64,
    /// Results that were dropped because the batch had some already.
    pub duplicates: u64,
    /// Batches that a worker has given back before it had started them.
    pub given_back: u64,
    /// How often a lost connection was made again.
    pub reconnects: u64,
    /// The largest number of batches in flight.
    pub largest_in_flight: usize,
    /// The largest number of bytes in flight: encoded batches, and encoded results that were not delivered.
    pub largest_bytes: usize,
    /// How long the run took. As JSON, durations are numbers of seconds.
    #[serde(with = "seconds")]
    pub elapsed: Duration,
    /// The nodes that have computed batches, by name. Empty in a worker.
    pub nodes: BTreeMap<String, NodeReport>,
}

/// What one node has done in a run.
///
/// ```
/// let report = heist_cluster::NodeReport::default();
/// assert_eq!(report.batches, 0);
/// ```
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NodeReport {
    /// Batches whose results came from this node first.
    pub batches: u64,
    /// How long the stages took for them.
    #[serde(with = "seconds")]
    pub busy: Duration,
}

impl ClusterReport {
    pub(crate) fn new(role: Role) -> Self {
        Self {
            role,
            batches: 0,
            results: 0,
            skipped: 0,
            retried: 0,
            resumed: 0,
            redelivered: 0,
            resent: 0,
            copies: 0,
            duplicates: 0,
            given_back: 0,
            reconnects: 0,
            largest_in_flight: 0,
            largest_bytes: 0,
            elapsed: Duration::ZERO,
            nodes: BTreeMap::new(),
        }
    }

    /// Returns the counts in the text format of Prometheus, with the name of the job as a label.
    ///
    /// ```no_run
    /// use heist::pipeline::Pipeline;
    /// use heist_cluster::{Cluster, RunOn};
    ///
    /// let cluster = Cluster::from_env()?;
    /// let report = Pipeline::new(0..1000_u64).run_on(&cluster, "numbers", |_| ())?;
    /// std::fs::write("heist.prom", report.prometheus("numbers"))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn prometheus(&self, job: &str) -> String {
        let counts = [
            ("batches", "Batches that have ended.", self.batches),
            ("results", "Results that were delivered.", self.results),
            ("skipped", "Items that have failed and were left out.", self.skipped),
            ("retried", "Calls that were repeated because they had failed.", self.retried),
            ("resumed", "Batches whose results an earlier run had committed.", self.resumed),
            ("redelivered", "Batches that were started again.", self.redelivered),
            ("resent", "Batches that were sent to the server again.", self.resent),
            ("copies", "Copies of slow batches.", self.copies),
            ("duplicates", "Results that were dropped.", self.duplicates),
            ("given_back", "Batches that were given back.", self.given_back),
            ("reconnects", "Connections that were made again.", self.reconnects),
        ];
        let mut text = String::new();
        let job = escaped(job);
        for (name, help, value) in counts {
            let name = format!("heist_cluster_{name}_total");
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} counter");
            let _ = writeln!(text, "{name}{{job=\"{job}\"}} {value}");
        }
        if !self.nodes.is_empty() {
            let name = "heist_cluster_node_batches_total";
            let _ = writeln!(text, "# HELP {name} Batches by node.\n# TYPE {name} counter");
            for (node, report) in &self.nodes {
                let node = escaped(node);
                let _ =
                    writeln!(text, "{name}{{job=\"{job}\",node=\"{node}\"}} {}", report.batches);
            }
            let name = "heist_cluster_node_busy_seconds_total";
            let _ = writeln!(text, "# HELP {name} Time in stages by node.\n# TYPE {name} counter");
            for (node, report) in &self.nodes {
                let (node, busy) = (escaped(node), report.busy.as_secs_f64());
                let _ = writeln!(text, "{name}{{job=\"{job}\",node=\"{node}\"}} {busy}");
            }
        }
        text
    }
}

/// Durations as numbers of seconds.
pub(crate) mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        duration: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        duration.as_secs_f64().serialize(serializer)
    }

    pub(crate) fn deserialize<'d, D: Deserializer<'d>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        Duration::try_from_secs_f64(seconds).map_err(serde::de::Error::custom)
    }
}

/// Returns the value of a label.
pub(crate) fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_nodes_are_escaped() {
        let mut report = ClusterReport::new(Role::Coordinator);
        report.nodes.insert("a\"b".to_owned(), NodeReport { batches: 3, ..NodeReport::default() });
        let text = report.prometheus("job");
        let line = r#"heist_cluster_node_batches_total{job="job",node="a\"b"} 3"#;
        assert!(text.lines().any(|found| found == line), "{text}");
    }
}
