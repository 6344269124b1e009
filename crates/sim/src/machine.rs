//! The machine that is simulated: how its cores are grouped, and how far apart the groups are.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::core_set::MAX_CORES;
use crate::costs::Costs;

/// A machine: cores in clusters that share a cache, clusters in NUMA nodes, nodes in sockets. Cores are numbered in that
/// order.
///
/// ```
/// use heist_sim::Machine;
///
/// let machine = Machine::generic(64);
/// assert_eq!((machine.sockets, machine.cores()), (2, 64));
/// let desktop = Machine::shipped("desktop-16").unwrap();
/// assert_eq!(desktop.cores(), 16);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The name, for reports.
    pub name: String,
    /// Where the numbers come from.
    pub sources: Vec<String>,
    /// The number of sockets.
    pub sockets: usize,
    /// The number of NUMA nodes in each socket.
    pub nodes_per_socket: usize,
    /// The number of clusters in each node.
    pub clusters_per_node: usize,
    /// The number of cores in each cluster.
    pub cores_per_cluster: usize,
    /// The time to move a modified line between two cores of a cluster, in nanoseconds.
    pub cluster_transfer: f64,
    /// The time to move a modified line between two clusters, in nanoseconds: a row and a column for each NUMA node, with
    /// the transfer between clusters of the same node on the diagonal.
    pub node_transfer: Vec<Vec<f64>>,
    /// Costs that differ from the defaults.
    #[serde(default)]
    pub costs: Costs,
}

/// Why a machine file cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum MachineError {
    /// The file cannot be read.
    Read(String, std::io::Error),
    /// The file is not TOML, or a field is missing, unknown or of the wrong type.
    Syntax(toml::de::Error),
    /// The fields contradict each other, or are out of range. Contains what to change.
    Invalid(String),
    /// No machine with this name is shipped.
    Unknown(String),
}

impl fmt::Display for MachineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(path, error) => write!(f, "cannot read the machine file {path}: {error}"),
            Self::Syntax(error) => write!(
                f,
                "the machine file is not valid; see crates/sim/machines for examples:\n{error}"
            ),
            Self::Invalid(advice) => write!(f, "the machine cannot be simulated: {advice}"),
            Self::Unknown(name) => {
                let names: Vec<_> = SHIPPED.iter().map(|(name, _)| *name).collect();
                write!(f, "no machine is called {name:?}; use one of {}", names.join(", "))
            }
        }
    }
}

impl std::error::Error for MachineError {}

/// The machine files that are part of this crate, by name.
const SHIPPED: [(&str, &str); 5] = [
    ("server-2x64", include_str!("../machines/server-2x64.toml")),
    ("server-4x24", include_str!("../machines/server-4x24.toml")),
    ("arm-64", include_str!("../machines/arm-64.toml")),
    ("desktop-16", include_str!("../machines/desktop-16.toml")),
    ("dev-2", include_str!("../machines/dev-2.toml")),
];

/// Transfers of the generic machine, in nanoseconds. The first is fitted to the machine on which the constants were
/// measured, the second is assumed.
const GENERIC_NEAR: f64 = 26.0;
const GENERIC_FAR: f64 = 130.0;

/// From this number of cores on the generic machine has two sockets.
const GENERIC_TWO_SOCKETS: usize = 64;

impl Machine {
    /// Returns a machine without clusters: one socket, or two from 64 cores on. An odd number is rounded up then.
    pub fn generic(cores: usize) -> Self {
        let sockets = if cores < GENERIC_TWO_SOCKETS { 1 } else { 2 };
        let machine = Self {
            name: "generic".into(),
            sources: vec!["docs/SIMULATION.md".into()],
            sockets,
            nodes_per_socket: 1,
            clusters_per_node: 1,
            cores_per_cluster: cores.div_ceil(sockets),
            cluster_transfer: GENERIC_NEAR,
            node_transfer: Vec::new(),
            costs: Costs::default(),
        };
        let per_socket = machine.cores_per_cluster;
        machine.with_sockets(sockets, per_socket)
    }

    /// Returns this machine with other numbers of sockets and of cores in each of them, without clusters. All sockets are
    /// as far apart as those of the generic machine.
    pub fn with_sockets(self, sockets: usize, cores_per_socket: usize) -> Self {
        let distance = |a, b| if a == b { self.cluster_transfer } else { GENERIC_FAR };
        let node_transfer =
            (0..sockets).map(|a| (0..sockets).map(|b| distance(a, b)).collect()).collect();
        Self {
            sockets,
            nodes_per_socket: 1,
            clusters_per_node: 1,
            cores_per_cluster: cores_per_socket,
            node_transfer,
            ..self
        }
    }

    /// Returns the names of the machines that are part of this crate.
    pub fn shipped_names() -> impl Iterator<Item = &'static str> {
        SHIPPED.iter().map(|(name, _)| *name)
    }

    /// Returns a machine that is part of this crate.
    ///
    /// # Errors
    ///
    /// Returns an error that lists the names if there is no such machine.
    pub fn shipped(name: &str) -> Result<Self, MachineError> {
        let found = SHIPPED.iter().find(|(shipped, _)| *shipped == name);
        Self::parse(found.ok_or_else(|| MachineError::Unknown(name.into()))?.1)
    }

    /// Reads a machine from a file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, or for the reasons of [`parse`](Self::parse).
    pub fn read(path: &Path) -> Result<Self, MachineError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| MachineError::Read(path.display().to_string(), error))?;
        Self::parse(&text)
    }

    /// Reads a machine from the text of a file.
    ///
    /// # Errors
    ///
    /// Returns an error that says what to change if the text does not describe a machine that can be simulated.
    pub fn parse(text: &str) -> Result<Self, MachineError> {
        let machine: Self = toml::from_str(text).map_err(MachineError::Syntax)?;
        machine.check()?;
        Ok(machine)
    }

    /// Returns the number of cores.
    pub fn cores(&self) -> usize {
        self.nodes() * self.clusters_per_node * self.cores_per_cluster
    }

    /// Returns the number of cores in each socket.
    pub fn cores_per_socket(&self) -> usize {
        self.cores() / self.sockets.max(1)
    }

    fn nodes(&self) -> usize {
        self.sockets * self.nodes_per_socket
    }

    /// Checks what the type of the fields does not say.
    pub(crate) fn check(&self) -> Result<(), MachineError> {
        let invalid = |advice: String| Err(MachineError::Invalid(advice));
        let counts = [
            ("sockets", self.sockets),
            ("nodes_per_socket", self.nodes_per_socket),
            ("clusters_per_node", self.clusters_per_node),
            ("cores_per_cluster", self.cores_per_cluster),
        ];
        for (name, count) in counts {
            if !(1..=MAX_CORES).contains(&count) {
                return invalid(format!("set {name} to a number from 1 to {MAX_CORES}"));
            }
        }
        if self.cores() > MAX_CORES {
            return invalid(format!("it has {} cores; use at most {MAX_CORES}", self.cores()));
        }
        let nodes = self.nodes();
        let rows = &self.node_transfer;
        if rows.len() != nodes || rows.iter().any(|row| row.len() != nodes) {
            return invalid(format!("give node_transfer {nodes} rows of {nodes} numbers each"));
        }
        let is_time = |time: &f64| (0.0..=1e6).contains(time);
        if !rows.iter().flatten().chain([&self.cluster_transfer]).all(is_time) {
            return invalid("set all transfers to nanoseconds from 0 to 1,000,000".into());
        }
        if !(0.0..=1.0).contains(&self.costs.request_share) {
            return invalid("set request_share to a number from 0 to 1".into());
        }
        Ok(())
    }
}
