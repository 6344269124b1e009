//! `Status`: what happens on a cluster at the moment.

use std::fmt::Write;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::report::{ClusterReport, escaped, seconds};

/// What happens on a cluster at the moment, as its nodes have answered an [`Observer`](crate::Observer).
///
/// ```
/// let status = heist_cluster::Status::default();
/// assert!(status.jobs.is_empty() && status.waiting.is_empty());
/// ```
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Status {
    /// The runs, in the order of the names of their jobs.
    pub jobs: Vec<JobStatus>,
    /// The workers that wait for a coordinator, in the order of their names.
    pub waiting: Vec<WaitingWorker>,
}

/// What happens in a run at the moment, as its coordinator sees it.
///
/// ```no_run
/// let mut observer = heist_cluster::Cluster::from_env()?.observe()?;
/// for job in observer.status()?.jobs {
///     println!("{}: {} batches delivered, {} outstanding", job.job, job.report.batches, job.outstanding);
/// }
/// # Ok::<(), heist_cluster::ClusterError>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct JobStatus {
    /// The name of the job.
    pub job: String,
    /// Identifies the run: another run of the job has another number, in hexadecimal digits.
    pub run: String,
    /// The node of the coordinator.
    pub coordinator: String,
    /// What has happened since the run began. What only the source and the sink know is 0 here.
    pub report: ClusterReport,
    /// Batches without a result.
    pub outstanding: usize,
    /// How long ago the oldest of them was sent first.
    #[serde(with = "seconds")]
    pub oldest: Duration,
    /// Outstanding batches that take longer than three times the median since they were started, or since they were sent if they
    /// are not started. In their order, and at most 16 of them.
    pub stragglers: Vec<Straggler>,
    /// The workers that serve the run, in the order of their names.
    pub workers: Vec<WorkerStatus>,
}

/// A batch that takes much longer than others.
///
/// ```
/// let straggler = heist_cluster::Straggler::default();
/// assert!(straggler.nodes.is_empty());
/// ```
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Straggler {
    /// The number of the batch, counted from 0.
    pub batch: u64,
    /// How long ago it was sent first.
    #[serde(with = "seconds")]
    pub age: Duration,
    /// The nodes that have started it.
    pub nodes: Vec<String>,
}

/// A worker that serves a run.
///
/// ```
/// let worker = heist_cluster::WorkerStatus::default();
/// assert_eq!(worker.held, 0);
/// ```
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WorkerStatus {
    /// Its name.
    pub node: String,
    /// The number of its threads.
    pub threads: usize,
    /// Batches that it has and that have no result, when it was last heard of.
    pub held: usize,
    /// How long ago it was last heard of. A worker says every second that it is there.
    #[serde(with = "seconds")]
    pub silent: Duration,
}

/// A worker that waits for a coordinator.
///
/// ```
/// let worker = heist_cluster::WaitingWorker::default();
/// assert_eq!(worker.threads, 0);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WaitingWorker {
    /// Its name.
    pub node: String,
    /// The name of its job.
    pub job: String,
    /// The number of its threads.
    pub threads: usize,
}

/// A worker that was asked to leave.
///
/// ```
/// let worker = heist_cluster::LeavingWorker::default();
/// assert_eq!(worker.held, 0);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LeavingWorker {
    /// Its name.
    pub node: String,
    /// The name of its job.
    pub job: String,
    /// Batches that it had. It finishes those that it has started, and gives the others back.
    pub held: usize,
}

impl JobStatus {
    /// Returns the status in the text format of Prometheus: the counts of
    /// [`ClusterReport::prometheus`] and what is outstanding and held at the moment.
    ///
    /// ```no_run
    /// let mut observer = heist_cluster::Cluster::from_env()?.observe()?;
    /// for job in observer.status()?.jobs {
    ///     println!("{}", job.prometheus());
    /// }
    /// # Ok::<(), heist_cluster::ClusterError>(())
    /// ```
    #[must_use]
    pub fn prometheus(&self) -> String {
        let mut text = self.report.prometheus(&self.job);
        let job = escaped(&self.job);
        let gauges = [
            ("outstanding", "Batches without a result.", self.outstanding as f64),
            ("oldest_seconds", "Age of the oldest of them.", self.oldest.as_secs_f64()),
            ("stragglers", "Batches that take much longer.", self.stragglers.len() as f64),
            ("elapsed_seconds", "Age of the run.", self.report.elapsed.as_secs_f64()),
        ];
        for (name, help, value) in gauges {
            let name = format!("heist_cluster_{name}");
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
            let _ = writeln!(text, "{name}{{job=\"{job}\"}} {value}");
        }
        type Value = fn(&WorkerStatus) -> f64;
        let of_workers: [(_, _, Value); 3] = [
            ("threads", "Threads of a worker.", |worker| worker.threads as f64),
            ("held", "Batches that a worker has.", |worker| worker.held as f64),
            ("silent_seconds", "Time since a worker was heard of.", |worker| {
                worker.silent.as_secs_f64()
            }),
        ];
        for (name, help, value) in of_workers {
            if self.workers.is_empty() {
                break;
            }
            let name = format!("heist_cluster_node_{name}");
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
            for worker in &self.workers {
                let (node, value) = (escaped(&worker.node), value(worker));
                let _ = writeln!(text, "{name}{{job=\"{job}\",node=\"{node}\"}} {value}");
            }
        }
        text
    }
}
