//! `Cluster`: which server, which role, which limits. `builder` sets and checks them.

mod builder;

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::ClusterError;
pub use builder::ClusterBuilder;

/// The address of a server that was started without options.
const URL: &str = "nats://127.0.0.1:4222";
/// How long a worker may be silent before its batches go to other workers. A guess: longer than most pauses of a process or a
/// network, and short enough to wait for.
const LEASE: Duration = Duration::from_secs(5);
/// A worker renews its leases three times in this, beside everything else that it does.
const SHORTEST_LEASE: Duration = Duration::from_millis(100);
/// How often a batch is started before it counts as poison. A guess.
const ATTEMPTS: usize = 4;
/// How many bytes of batches the coordinator keeps. A guess.
const BYTES: usize = 256 << 20;
/// How long the connection and what is made on the server before a run may take. A guess: whoever has mistyped an address waits.
const START: Duration = Duration::from_secs(5);
/// A worker asks for the coordinator every second, and waits 2 s for the answer.
const SHORTEST_WAIT: Duration = Duration::from_secs(4);
/// How long a run survives without a server. A guess: a restart takes seconds, and an election of a leader some more.
const PATIENCE: Duration = Duration::from_secs(60);

/// What this process does in a run.
///
/// ```
/// use heist_cluster::{Cluster, Role};
///
/// let cluster = Cluster::builder().role(Role::Worker).build()?;
/// assert_eq!(cluster.role(), Role::Worker);
/// # Ok::<(), heist_cluster::ClusterError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Runs the source and the sink.
    Coordinator,
    /// Runs the stages.
    Worker,
}

/// Where the server keeps batches and committed results.
///
/// ```
/// use heist_cluster::{Cluster, Storage};
///
/// Cluster::builder().storage(Storage::File).build()?;
/// # Ok::<(), heist_cluster::ClusterError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// In memory. If the server is restarted, the coordinator sends it again.
    Memory,
    /// In files.
    File,
}

/// The connection to a cluster, the role of this process and the limits.
///
/// Nothing is connected before a pipeline is [run](crate::RunOn::run_on).
///
/// ```
/// use heist_cluster::{Cluster, Role};
///
/// let cluster = Cluster::builder().url("nats://127.0.0.1:4222").build()?;
/// assert_eq!(cluster.role(), Role::Coordinator);
/// # Ok::<(), heist_cluster::ClusterError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cluster {
    pub(crate) settings: Settings,
    /// Set when the process is to end: then no further job is served.
    pub(crate) drained: Arc<AtomicBool>,
}

/// The settings, as the user has built them.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) url: String,
    pub(crate) credentials: Option<PathBuf>,
    pub(crate) ca: Option<PathBuf>,
    pub(crate) certificate: Option<(PathBuf, PathBuf)>,
    pub(crate) role: Role,
    pub(crate) node: String,
    pub(crate) threads: Option<NonZero<usize>>,
    pub(crate) lease: Duration,
    pub(crate) attempts: usize,
    pub(crate) bytes: usize,
    pub(crate) start: Duration,
    pub(crate) patience: Duration,
    pub(crate) wait: Option<Duration>,
    pub(crate) storage: Storage,
    pub(crate) replicas: usize,
    pub(crate) resume: bool,
    pub(crate) stay: bool,
    pub(crate) version: String,
    pub(crate) metrics: Option<SocketAddr>,
    pub(crate) trace: Option<PathBuf>,
}

impl fmt::Debug for Settings {
    /// Leaves out the address, which may contain a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("role", &self.role)
            .field("node", &self.node)
            .finish_non_exhaustive()
    }
}

impl Settings {
    /// Returns the address without the password.
    pub(crate) fn shown_url(&self) -> String {
        crate::nats::shown_url(&self.url)
    }
}

impl Cluster {
    /// Returns a builder with the default settings. The environment is not read.
    ///
    /// ```
    /// let cluster = heist_cluster::Cluster::builder().node("here").build()?;
    /// # Ok::<(), heist_cluster::ClusterError>(())
    /// ```
    pub fn builder() -> ClusterBuilder {
        ClusterBuilder {
            settings: Settings {
                url: URL.to_owned(),
                credentials: None,
                ca: None,
                certificate: None,
                role: Role::Coordinator,
                node: default_node(),
                threads: None,
                lease: LEASE,
                attempts: ATTEMPTS,
                bytes: BYTES,
                start: START,
                patience: PATIENCE,
                wait: None,
                storage: Storage::Memory,
                replicas: 1,
                resume: false,
                stay: false,
                version: String::new(),
                metrics: None,
                trace: None,
            },
        }
    }

    /// Reads the settings from the environment. What is not set there has its default.
    ///
    /// | variable | setting |
    /// |---|---|
    /// | `HEIST_CLUSTER_URL` | [`url`](ClusterBuilder::url) |
    /// | `HEIST_CLUSTER_CREDENTIALS` | [`credentials`](ClusterBuilder::credentials) |
    /// | `HEIST_CLUSTER_CA` | [`authority`](ClusterBuilder::authority) |
    /// | `HEIST_CLUSTER_CERT`, `HEIST_CLUSTER_KEY` | [`certificate`](ClusterBuilder::certificate) |
    /// | `HEIST_CLUSTER_ROLE` | [`role`](ClusterBuilder::role): `coordinator` or `worker` |
    /// | `HEIST_CLUSTER_NODE` | [`node`](ClusterBuilder::node) |
    /// | `HEIST_CLUSTER_THREADS` | [`threads`](ClusterBuilder::threads) |
    /// | `HEIST_CLUSTER_LEASE_MS` | [`lease`](ClusterBuilder::lease) |
    /// | `HEIST_CLUSTER_BYTES` | [`bytes`](ClusterBuilder::bytes) |
    /// | `HEIST_CLUSTER_ATTEMPTS` | [`attempts`](ClusterBuilder::attempts) |
    /// | `HEIST_CLUSTER_START_MS` | [`start_within`](ClusterBuilder::start_within) |
    /// | `HEIST_CLUSTER_PATIENCE_MS` | [`patience`](ClusterBuilder::patience) |
    /// | `HEIST_CLUSTER_WAIT_MS` | [`wait`](ClusterBuilder::wait) |
    /// | `HEIST_CLUSTER_STORAGE` | [`storage`](ClusterBuilder::storage): `memory` or `file` |
    /// | `HEIST_CLUSTER_REPLICAS` | [`replicas`](ClusterBuilder::replicas) |
    /// | `HEIST_CLUSTER_RESUME` | [`resume`](ClusterBuilder::resume): `1` or `0` |
    /// | `HEIST_CLUSTER_VERSION` | [`version`](ClusterBuilder::version) |
    /// | `HEIST_CLUSTER_STAY` | [`stay`](ClusterBuilder::stay): `1` or `0` |
    /// | `HEIST_CLUSTER_METRICS` | [`metrics`](ClusterBuilder::metrics) |
    /// | `HEIST_CLUSTER_TRACE` | [`trace`](ClusterBuilder::trace) |
    ///
    /// ```
    /// let cluster = heist_cluster::Cluster::from_env()?;
    /// # Ok::<(), heist_cluster::ClusterError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`ClusterError::Setting`] if a variable has an invalid value.
    pub fn from_env() -> Result<Self, ClusterError> {
        // A value that is no Unicode becomes one that is invalid, or the name of a file that is not there.
        let variable = |name: &str| Some(std::env::var_os(name)?.to_string_lossy().into_owned());
        from_variables(variable)
    }

    /// Returns the role of this process.
    ///
    /// ```
    /// use heist_cluster::{Cluster, Role};
    ///
    /// assert_eq!(Cluster::builder().build()?.role(), Role::Coordinator);
    /// # Ok::<(), heist_cluster::ClusterError>(())
    /// ```
    #[must_use]
    pub fn role(&self) -> Role {
        self.settings.role
    }

    /// Has a worker finish what it has started and end, as SIGTERM does. The call of `run_on` that serves a job returns, and
    /// each further one returns at once.
    ///
    /// ```
    /// use heist_cluster::{Cluster, Role};
    ///
    /// let cluster = Cluster::builder().role(Role::Worker).build()?;
    /// cluster.drain();
    /// # Ok::<(), heist_cluster::ClusterError>(())
    /// ```
    pub fn drain(&self) {
        self.drained.store(true, Ordering::SeqCst);
    }
}

/// Reads the settings from variables.
fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Cluster, ClusterError> {
    let text = |name| variable(name).filter(|value: &String| !value.is_empty());
    let mut builder = Cluster::builder();
    let settings = &mut builder.settings;
    if let Some(url) = text("HEIST_CLUSTER_URL") {
        settings.url = url;
    }
    settings.credentials = text("HEIST_CLUSTER_CREDENTIALS").map(PathBuf::from);
    settings.ca = text("HEIST_CLUSTER_CA").map(PathBuf::from);
    settings.certificate = match (text("HEIST_CLUSTER_CERT"), text("HEIST_CLUSTER_KEY")) {
        (Some(certificate), Some(key)) => Some((certificate.into(), key.into())),
        (None, None) => None,
        (Some(value), None) | (None, Some(value)) => {
            let hint = "set HEIST_CLUSTER_CERT and HEIST_CLUSTER_KEY together";
            return Err(invalid("HEIST_CLUSTER_CERT", value, hint));
        }
    };
    if let Some(role) = text("HEIST_CLUSTER_ROLE") {
        settings.role = match role.as_str() {
            "coordinator" => Role::Coordinator,
            "worker" => Role::Worker,
            _ => return Err(invalid("HEIST_CLUSTER_ROLE", role, "use coordinator or worker")),
        };
    }
    if let Some(node) = text("HEIST_CLUSTER_NODE") {
        settings.node = node;
    }
    settings.version = text("HEIST_CLUSTER_VERSION").unwrap_or_default();
    set_limits(settings, text)?;
    let flag = |name| match text(name).as_deref() {
        None | Some("0") => Ok(false),
        Some("1") => Ok(true),
        Some(other) => Err(invalid(name, other.to_owned(), "use 1 or 0")),
    };
    settings.resume = flag("HEIST_CLUSTER_RESUME")?;
    settings.stay = flag("HEIST_CLUSTER_STAY")?;
    settings.trace = text("HEIST_CLUSTER_TRACE").map(PathBuf::from);
    let metrics = text("HEIST_CLUSTER_METRICS");
    settings.metrics = metrics.map(|address| page_address(&address)).transpose()?;
    builder.build()
}

/// Reads the limits from variables.
fn set_limits(
    settings: &mut Settings,
    text: impl Fn(&'static str) -> Option<String>,
) -> Result<(), ClusterError> {
    let number = |name| {
        let value = text(name);
        let number = value.map(|value| {
            value.parse().map_err(|_| invalid(name, value, "use a whole number of at least 1"))
        });
        number.transpose()
    };
    let millis = |name| {
        let millis = number(name)?.map(|millis: NonZero<usize>| millis.get() as u64);
        Ok::<_, ClusterError>(millis.map(Duration::from_millis))
    };
    settings.threads = number("HEIST_CLUSTER_THREADS")?;
    settings.wait = millis("HEIST_CLUSTER_WAIT_MS")?;
    for (name, duration) in [
        ("HEIST_CLUSTER_LEASE_MS", &mut settings.lease),
        ("HEIST_CLUSTER_START_MS", &mut settings.start),
        ("HEIST_CLUSTER_PATIENCE_MS", &mut settings.patience),
    ] {
        *duration = millis(name)?.unwrap_or(*duration);
    }
    for (name, count) in [
        ("HEIST_CLUSTER_BYTES", &mut settings.bytes),
        ("HEIST_CLUSTER_ATTEMPTS", &mut settings.attempts),
        ("HEIST_CLUSTER_REPLICAS", &mut settings.replicas),
    ] {
        *count = number(name)?.map_or(*count, NonZero::get);
    }
    settings.storage = match text("HEIST_CLUSTER_STORAGE").as_deref() {
        None => settings.storage,
        Some("memory") => Storage::Memory,
        Some("file") => Storage::File,
        Some(other) => {
            let hint = "use memory or file";
            return Err(invalid("HEIST_CLUSTER_STORAGE", other.to_owned(), hint));
        }
    };
    Ok(())
}

/// Reads a port of the loopback interface, or an address with a port.
fn page_address(text: &str) -> Result<SocketAddr, ClusterError> {
    let port = text.parse().map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    port.or_else(|_| text.parse()).map_err(|_| {
        let hint =
            "use a port, for example 9464, or an address with a port, for example 0.0.0.0:9464";
        invalid("metrics", text.to_owned(), hint)
    })
}

fn invalid(name: &'static str, value: String, hint: &str) -> ClusterError {
    ClusterError::Setting { name, value, hint: hint.to_owned() }
}

/// Returns the name of the machine with the number of the process.
fn default_node() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let host = host.or_else(|| std::env::var("HOSTNAME").ok());
    let host = host.as_deref().map_or("node", str::trim);
    format!("{host}-{}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_is_read_and_checked() {
        let read = |name: &'static str, value: &'static str| {
            from_variables(move |asked| (asked == name).then(|| value.to_owned()))
        };
        let worker = read("HEIST_CLUSTER_ROLE", "worker").expect("a role");
        assert_eq!(worker.role(), Role::Worker);
        assert!(read("HEIST_CLUSTER_RESUME", "1").expect("a flag").settings.resume);
        for (text, address) in [("9464", "127.0.0.1:9464"), ("[::1]:1", "[::1]:1")] {
            let read = read("HEIST_CLUSTER_METRICS", text).expect("an address");
            assert_eq!(read.settings.metrics, address.parse().ok());
        }
        let patient = read("HEIST_CLUSTER_PATIENCE_MS", "7000").expect("a limit").settings;
        assert_eq!((patient.patience, patient.start), (Duration::from_secs(7), START));
        assert_eq!(read("HEIST_CLUSTER_REPLICAS", "3").expect("a number").settings.replicas, 3);
        let stored = read("HEIST_CLUSTER_STORAGE", "file").expect("a storage").settings.storage;
        assert_eq!(stored, Storage::File);
        for (name, value) in [
            ("HEIST_CLUSTER_STORAGE", "tape"),
            ("HEIST_CLUSTER_REPLICAS", "2"),
            ("HEIST_CLUSTER_WAIT_MS", "1"),
            ("HEIST_CLUSTER_ROLE", "boss"),
            ("HEIST_CLUSTER_THREADS", "0"),
            ("HEIST_CLUSTER_LEASE_MS", "soon"),
            ("HEIST_CLUSTER_RESUME", "yes"),
            ("HEIST_CLUSTER_CA", "/no/such/file"),
            ("HEIST_CLUSTER_CERT", "alone.pem"),
            ("HEIST_CLUSTER_METRICS", "here"),
        ] {
            let error = read(name, value).expect_err(name);
            assert!(matches!(error, ClusterError::Setting { .. }), "{name}: {error}");
        }
    }

    #[test]
    fn a_password_is_in_no_message() {
        let url = "nats://user:secret@127.0.0.1:1";
        let cluster = Cluster::builder().url(url).build().expect("a valid address");
        assert!(!format!("{cluster:?}").contains("secret"));
        let bad = [
            "ftp://user:secret@[",
            "nats://user:sec@secret:x",
            "user:secret@[",
            "nats://u:secret/x@h",
            "nats://u:1/secret@h",
            "nats://secret?x@h",
            "nats://secret#x@h",
            "nats://u:a,secret@h",
        ];
        for url in bad {
            let error = Cluster::builder().url(url).build().expect_err("a bad address");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
