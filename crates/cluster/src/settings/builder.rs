//! `ClusterBuilder`: one method for each setting, and the check of them all.

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::{
    Cluster, Role, SHORTEST_LEASE, SHORTEST_WAIT, Settings, Storage, invalid, page_address,
};
use crate::error::ClusterError;

/// Builds a [`Cluster`].
///
/// ```
/// use std::time::Duration;
///
/// let builder = heist_cluster::Cluster::builder().lease(Duration::from_secs(2)).bytes(1 << 20);
/// let cluster = builder.build()?;
/// # Ok::<(), heist_cluster::ClusterError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct ClusterBuilder {
    pub(super) settings: Settings,
}

impl ClusterBuilder {
    /// Sets the address of the server: `nats://host:port`, `nats://user:password@host:port`, `nats://token@host:port`, or
    /// `tls://host:port`. Special characters of a password are percent-encoded. The servers of a cluster are separated by commas. The default is `nats://127.0.0.1:4222`.
    ///
    /// ```
    /// let builder = heist_cluster::Cluster::builder().url("nats://127.0.0.1:4222");
    /// builder.build()?;
    /// # Ok::<(), heist_cluster::ClusterError>(())
    /// ```
    pub fn url(mut self, url: &str) -> Self {
        self.settings.url = url.to_owned();
        self
    }

    /// Sets the credentials file of the user, as `nsc` writes it.
    ///
    /// ```no_run
    /// let builder = heist_cluster::Cluster::builder().credentials("worker.creds");
    /// builder.build()?;
    /// # Ok::<(), heist_cluster::ClusterError>(())
    /// ```
    pub fn credentials(mut self, file: impl Into<PathBuf>) -> Self {
        self.settings.credentials = Some(file.into());
        self
    }

    /// Requires TLS, and accepts servers whose certificate was signed by the authority in this PEM file.
    ///
    /// ```no_run
    /// let builder = heist_cluster::Cluster::builder().authority("ca.pem");
    /// builder.build()?;
    /// # Ok::<(), heist_cluster::ClusterError>(())
    /// ```
    pub fn authority(mut self, file: impl Into<PathBuf>) -> Self {
        self.settings.ca = Some(file.into());
        self
    }

    /// Sets the certificate and the key that this node shows to the server, as PEM files.
    ///
    /// ```no_run
    /// let builder = heist_cluster::Cluster::builder().certificate("node.pem", "node-key.pem");
    /// builder.build()?;
    /// # Ok::<(), heist_cluster::ClusterError>(())
    /// ```
    pub fn certificate(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.settings.certificate = Some((certificate.into(), key.into()));
        self
    }

    /// Sets what this process does. The default is [`Role::Coordinator`].
    ///
    /// ```
    /// let builder = heist_cluster::Cluster::builder().role(heist_cluster::Role::Worker);
    /// builder.build()?;
    /// # Ok::<(), heist_cluster::ClusterError>(())
    /// ```
    pub fn role(mut self, role: Role) -> Self {
        self.settings.role = role;
        self
    }

    /// Sets the name of this node in errors and reports. The default is the name of the machine and the number of the process.
    ///
    /// ```
    /// let builder = heist_cluster::Cluster::builder().node("left");
    /// builder.build()?;
    /// # Ok::<(), heist_cluster::ClusterError>(())
    /// ```
    pub fn node(mut self, name: &str) -> Self {
        self.settings.node = name.to_owned();
        self
    }

    /// Sets how many workers the pool of a worker process has. The default is that of [`heist::Pool`].
    ///
    /// ```
    /// let builder = heist_cluster::Cluster::builder().threads(std::num::NonZero::<usize>::MIN);
    /// builder.build()?;
    /// # Ok::<(), heist_cluster::ClusterError>(())
    /// ```
    pub fn threads(mut self, threads: NonZero<usize>) -> Self {
        self.settings.threads = Some(threads);
        self
    }

    /// Sets how long a worker may be silent before its batches go to other workers. The coordinator's setting counts. The default
    /// is 5 s.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let builder = heist_cluster::Cluster::builder().lease(Duration::from_secs(2));
    /// builder.build()?;
    /// # Ok::<(), heist_cluster::ClusterError>(())
    /// ```
    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = lease;
        self
    }

    /// Sets how often a batch is started before the run ends with [`ClusterError::Poison`]. The default is 4.
    ///
    /// ```
    /// let builder = heist_cluster::Cluster::builder().attempts(2);
    /// builder.build()?;
    /// # Ok::<(), heist_cluster::ClusterError>(())
    /// ```
    pub fn attempts(mut self, starts: usize) -> Self {
        self.settings.attempts = starts;
        self
    }

    /// Sets how many bytes are in flight at most: encoded batches, and in their place their encoded results until the sink has had
    /// them. A batch that is larger is in flight alone. One further batch is kept ready. How large results are is not known before:
    /// if they are larger than their batches, those of what is in flight already may exceed the limit, and no further batch is sent
    /// until they fit. The default is 256 MiB.
    ///
    /// ```
    /// let builder = heist_cluster::Cluster::builder().bytes(16 << 20);
    /// builder.build()?;
    /// # Ok::<(), heist_cluster::ClusterError>(())
    /// ```
    pub fn bytes(mut self, bytes: usize) -> Self {
        self.settings.bytes = bytes;
        self
    }

    /// Sets how long everything before a run may take: the connection, and what is made on the server. The default is 5 s.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let builder = heist_cluster::Cluster::builder().start_within(Duration::from_secs(30));
    /// builder.build()?;
    /// # Ok::<(), heist_cluster::ClusterError>(())
    /// ```
    pub fn start_within(mut self, limit: Duration) -> Self {
        self.settings.start = limit;
        self
    }

    /// Sets how long a run survives without a server. The default is 60 s.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let builder = heist_cluster::Cluster::builder().patience(Duration::from_secs(10));
    /// builder.build()?;
    /// # Ok::<(), heist_cluster::ClusterError>(())
    /// ```
    pub fn patience(mut self, patience: Duration) -> Self {
        self.settings.patience = patience;
        self
    }

    /// Ends a worker with [`ClusterError::NoCoordinator`] if no coordinator can be found for this long, which is at least 4 s. By default, it
    /// waits.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let builder = heist_cluster::Cluster::builder().wait(Duration::from_secs(30));
    /// builder.build()?;
    /// # Ok::<(), heist_cluster::ClusterError>(())
    /// ```
    pub fn wait(mut self, limit: Duration) -> Self {
        self.settings.wait = Some(limit);
        self
    }

    /// Sets where the server keeps batches. The default is [`Storage::Memory`].
    ///
    /// ```
    /// let builder = heist_cluster::Cluster::builder().storage(heist_cluster::Storage::File);
    /// builder.build()?;
    /// # Ok::<(), heist_cluster::ClusterError>(())
    /// ```
    pub fn storage(mut self, storage: Storage) -> Self {
        self.settings.storage = storage;
        self
    }

    /// Sets how many servers of a NATS cluster keep the batches: 1, 3 or 5. The default is 1.
    ///
    /// ```
    /// let builder = heist_cluster::Cluster::builder().replicas(3);
    /// builder.build()?;
    /// # Ok::<(), heist_cluster::ClusterError>(())
    /// ```
    pub fn replicas(mut self, servers: usize) -> Self {
        self.settings.replicas = servers;
        self
    }

    /// Commits results to files of the server, and goes on where an earlier run of the job with this setting ended early: its results
    /// are delivered again, and their batches are not computed again. The source must yield the same items again, and be
    /// cut into the same batches: one whose batches depend on what has arrived when they are cut, such as a channel, ends the new run
    /// with [`ClusterError::SourceChanged`]. When a run reaches its end, its results are removed. The default is `false`.
    ///
    /// ```
    /// let builder = heist_cluster::Cluster::builder().resume(true);
    /// builder.build()?;
    /// # Ok::<(), heist_cluster::ClusterError>(())
    /// ```
    pub fn resume(mut self, resume: bool) -> Self {
        self.settings.resume = resume;
        self
    }

    /// Sets whether a worker waits for the next run of the job after a run has ended. By default, `run_on` returns then.
    ///
    /// ```
    /// let builder = heist_cluster::Cluster::builder().stay(true);
    /// builder.build()?;
    /// # Ok::<(), heist_cluster::ClusterError>(())
    /// ```
    pub fn stay(mut self, stay: bool) -> Self {
        self.settings.stay = stay;
        self
    }

    /// Sets the version of the program. Nodes with different versions do not work together.
    ///
    /// ```
    /// let builder = heist_cluster::Cluster::builder().version("1.2");
    /// builder.build()?;
    /// # Ok::<(), heist_cluster::ClusterError>(())
    /// ```
    pub fn version(mut self, version: &str) -> Self {
        self.settings.version = version.to_owned();
        self
    }

    /// Serves the counts of a run in the text format of Prometheus while it goes on, at `/metrics` of this address of the
    /// coordinator: a port of the loopback interface such as `9464`, or an address with a port. The text is that of
    /// [`JobStatus::prometheus`](crate::JobStatus::prometheus), with the counts of each node. Workers have no page. By default,
    /// the coordinator has none either.
    ///
    /// ```
    /// let builder = heist_cluster::Cluster::builder().metrics("9464")?;
    /// builder.build()?;
    /// # Ok::<(), heist_cluster::ClusterError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`ClusterError::Setting`] if this is no address.
    pub fn metrics(mut self, address: &str) -> Result<Self, ClusterError> {
        self.settings.metrics = Some(page_address(address)?);
        Ok(self)
    }

    /// Writes a trace of the run to this file of the coordinator, for [Perfetto](https://ui.perfetto.dev): which thread of which
    /// node has computed which batch when, and what was sent again. The clocks of the nodes are compared over the network, as
    /// exactly as half of a round trip. If the file system refuses more, the trace ends early, and the run goes on.
    ///
    /// ```
    /// let builder = heist_cluster::Cluster::builder().trace("trace.json");
    /// builder.build()?;
    /// # Ok::<(), heist_cluster::ClusterError>(())
    /// ```
    pub fn trace(mut self, file: impl Into<PathBuf>) -> Self {
        self.settings.trace = Some(file.into());
        self
    }

    /// Checks the settings.
    ///
    /// ```
    /// let error = heist_cluster::Cluster::builder().attempts(0).build().unwrap_err();
    /// assert!(error.to_string().contains("attempts"));
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`ClusterError::Setting`] if a setting is invalid, or if a file does not exist.
    pub fn build(self) -> Result<Cluster, ClusterError> {
        let settings = self.settings;
        crate::nats::check_url(&settings.url)?;
        let files = [("credentials", &settings.credentials), ("authority", &settings.ca)];
        let pair = settings.certificate.iter().flat_map(|(certificate, key)| [certificate, key]);
        let files = files.iter().filter_map(|(name, file)| file.as_ref().map(|file| (*name, file)));
        for (name, file) in files.chain(pair.map(|file| ("certificate", file))) {
            if !file.is_file() {
                let hint = "there is no such file";
                return Err(invalid(name, file.display().to_string(), hint));
            }
        }
        let text = |duration: Duration| format!("{duration:?}");
        if settings.attempts == 0 {
            return Err(invalid(
                "attempts",
                "0".to_owned(),
                "a batch must be started once at least",
            ));
        }
        if settings.bytes == 0 {
            return Err(invalid("bytes", "0".to_owned(), "with 0 bytes nothing can be in flight"));
        }
        if settings.lease < SHORTEST_LEASE {
            let hint = "use at least 100 ms: workers renew their leases three times in it";
            return Err(invalid("lease", text(settings.lease), hint));
        }
        if settings.patience.is_zero() {
            return Err(invalid("patience", text(settings.patience), "use at least some seconds"));
        }
        if settings.start.is_zero() {
            return Err(invalid("start_within", text(settings.start), "use at least some seconds"));
        }
        if let Some(wait) = settings.wait.filter(|wait| *wait < SHORTEST_WAIT) {
            let hint = "use at least 4 s: a coordinator that is busy may need as long to be found";
            return Err(invalid("wait", text(wait), hint));
        }
        if ![1, 3, 5].contains(&settings.replicas) {
            return Err(invalid("replicas", settings.replicas.to_string(), "use 1, 3 or 5"));
        }
        if settings.node.is_empty() || settings.node.len() > 128 {
            return Err(invalid("node", settings.node, "use 1 to 128 bytes"));
        }
        Ok(Cluster { settings, drained: Arc::new(AtomicBool::new(false)) })
    }
}
