//! The errors of a run on a cluster. Each says what to do.

use std::time::Duration;

use heist::pipeline::PipelineError;

/// The reason why a run on a cluster did not reach its end, or did not start.
///
/// ```
/// use heist_cluster::{Cluster, ClusterError};
///
/// let error = Cluster::builder().url("not a url").build().unwrap_err();
/// assert!(matches!(error, ClusterError::Setting { .. }));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// A setting, or the environment variable for it, is invalid.
    #[error("the setting {name} is invalid ({value:?}): {hint}")]
    Setting {
        /// The name of the setting.
        name: &'static str,
        /// Its value.
        value: String,
        /// What would be valid.
        hint: String,
    },
    /// No server answers.
    #[error(
        "no NATS server answers at {url} ({reason}): start one with `nats-server -js` or `heist cluster up`, or set HEIST_CLUSTER_URL to the address \
         of the one that runs"
    )]
    Unreachable {
        /// The address.
        url: String,
        /// What the client says.
        reason: String,
    },
    /// The server refused the user or the password.
    #[error(
        "the NATS server at {url} refused the credentials: check the user and the password in the address, or \
         HEIST_CLUSTER_CREDENTIALS"
    )]
    Credentials {
        /// The address, without the password.
        url: String,
    },
    /// The connection cannot be encrypted, or the certificates are not accepted.
    #[error(
        "no TLS connection to {url} ({reason}): set HEIST_CLUSTER_CA to the certificate of the authority that has signed the \
         server's, and HEIST_CLUSTER_CERT and HEIST_CLUSTER_KEY to those of this node if the server asks for them"
    )]
    Tls {
        /// The address.
        url: String,
        /// What the client says.
        reason: String,
    },
    /// The server runs without JetStream.
    #[error(
        "the NATS server at {url} has no JetStream: start it with `-js`, or with a `jetstream` block in its configuration"
    )]
    NoJetStream {
        /// The address.
        url: String,
    },
    /// The user may not use a subject.
    #[error(
        "the NATS server does not permit what the run needs ({violation}): grant this user the subjects that docs/CLUSTER.md lists"
    )]
    Permission {
        /// What the server says.
        violation: String,
    },
    /// A batch does not fit into a message.
    #[error(
        "batch {batch} has {bytes} bytes, and the NATS server accepts {limit}: make batches smaller with `batch`, or raise \
         `max_payload` in the configuration of the server"
    )]
    BatchTooLarge {
        /// The number of the batch, counted from 0.
        batch: u64,
        /// Its size.
        bytes: usize,
        /// The server's limit.
        limit: usize,
    },
    /// The results of a batch do not fit into a message.
    #[error(
        "the results of batch {batch} on node {node} have {bytes} bytes, and the NATS server accepts {limit}: make batches \
         smaller with `batch`, or raise `max_payload` in the configuration of the server"
    )]
    ResultTooLarge {
        /// The number of the batch, counted from 0.
        batch: u64,
        /// The node that has computed it.
        node: String,
        /// The size of the results.
        bytes: usize,
        /// The server's limit.
        limit: usize,
    },
    /// Another coordinator runs this job.
    #[error(
        "the job {job} has a coordinator already, on node {node}: wait until it has ended, or give this run another job name"
    )]
    AlreadyRunning {
        /// The name of the job.
        job: String,
        /// The node of the other coordinator.
        node: String,
    },
    /// The coordinator runs another program, or another version of it.
    #[error(
        "the coordinator of the job {job} runs another pipeline or version: {theirs}, and here it is {ours}: start the same \
         program on all nodes"
    )]
    Mismatch {
        /// The name of the job.
        job: String,
        /// What this process would run.
        ours: String,
        /// What the coordinator runs.
        theirs: String,
    },
    /// A batch was lost together with each node that had started it.
    #[error(
        "batch {batch} of the job {job} was lost by every node that has started it ({}): it probably ends their processes; look \
         at their logs, and at the items of that batch",
        nodes.join(", ")
    )]
    Poison {
        /// The name of the job.
        job: String,
        /// The number of the batch, counted from 0.
        batch: u64,
        /// The nodes that had started it.
        nodes: Vec<String>,
    },
    /// A stage returned an error or panicked.
    #[error(
        "{stage} {what} {at} on node {node}: {message}",
        what = if *panicked { "panicked" } else { "failed" },
        at = place(*batch, *item)
    )]
    Stage {
        /// The stage, such as `stage 1`.
        stage: String,
        /// The number of the batch, counted from 0.
        batch: u64,
        /// The index in the source of the item, counted from 0, unless the stage had more than one.
        item: Option<u64>,
        /// The node on which it happened.
        node: String,
        /// Whether it panicked.
        panicked: bool,
        /// The error, or the message of the panic.
        message: String,
    },
    /// A batch or its results could not be encoded or decoded.
    #[error(
        "batch {batch} cannot be {action} ({reason}): the types of items and results must be ones that serde can write and read \
         without names, so without `flatten` and `untagged`"
    )]
    Codec {
        /// The number of the batch, counted from 0.
        batch: u64,
        /// What was tried.
        action: &'static str,
        /// What the encoder says.
        reason: String,
    },
    /// The sink returned an error.
    #[error("the sink failed in batch {batch}: {source}")]
    Sink {
        /// The number of the batch, counted from 0.
        batch: u64,
        /// The error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The source has other items than in the run that is to be resumed.
    #[error(
        "batch {batch} differs from the one whose results the job {job} has committed: resume only with the same source and the \
         same size of batches, or run without `resume` once"
    )]
    SourceChanged {
        /// The name of the job.
        job: String,
        /// The number of the batch, counted from 0.
        batch: u64,
    },
    /// There was no connection for too long, or the server did not do for too long what the run needs.
    #[error(
        "the NATS server at {url} could not be used for {} s ({reason}): start it again, or raise `patience` (HEIST_CLUSTER_PATIENCE_MS)",
        after.as_secs()
    )]
    Lost {
        /// The address.
        url: String,
        /// How long it was tried.
        after: Duration,
        /// What has failed last.
        reason: String,
    },
    /// The server has no room for what the run stores there.
    #[error(
        "the NATS server has no room for {operation} ({reason}): raise the limits of the server, of the account or of the stream, or have less in flight with `in_flight` or `bytes`"
    )]
    Limit {
        /// What was to be stored.
        operation: &'static str,
        /// What the server says.
        reason: String,
    },
    /// A worker found no coordinator of the job.
    #[error(
        "no coordinator runs the job {job} since {} s: start one, with the same server and job name, or raise `wait` (HEIST_CLUSTER_WAIT_MS)",
        after.as_secs()
    )]
    NoCoordinator {
        /// The name of the job.
        job: String,
        /// How long it was waited for.
        after: Duration,
    },
    /// The source failed, the settings of the pipeline are invalid, or the run was cancelled. The report in it is empty.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// The server refused an operation.
    #[error("the NATS server refused {operation}: {reason}")]
    Server {
        /// What was tried.
        operation: &'static str,
        /// What the server says.
        reason: String,
    },
    /// The system refused a thread, a socket or a signal handler.
    #[error("the system refused a resource that the run needs: {0}")]
    System(#[from] std::io::Error),
}

impl ClusterError {
    /// Returns whether an operation on the server fails again if it is tried again.
    pub(crate) fn is_final(&self) -> bool {
        matches!(
            self,
            Self::AlreadyRunning { .. }
                | Self::BatchTooLarge { .. }
                | Self::Limit { .. }
                | Self::NoJetStream { .. }
                | Self::Permission { .. }
        )
    }
}

/// Returns the error of a cancelled run.
pub(crate) fn cancelled() -> PipelineError {
    PipelineError::Cancelled { report: Box::default() }
}

/// Describes the place of an error as heist does.
fn place(batch: u64, item: Option<u64>) -> String {
    match item {
        Some(item) => format!("at item {item} (batch {batch})"),
        None => format!("in batch {batch}"),
    }
}
