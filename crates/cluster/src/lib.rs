//! Pipelines of heist across machines, on NATS JetStream.
//!
//! A [`Pipeline`](heist::pipeline::Pipeline) whose items and results are serde types runs on a [`Cluster`] as it does on a pool.
//! The same program is started on each machine: as the coordinator, which runs the source and the sink, and as workers, which
//! apply the stages on a pool of their own.
//!
//! ```no_run
//! use heist::pipeline::Pipeline;
//! use heist_cluster::{Cluster, RunOn};
//!
//! let cluster = Cluster::from_env()?;
//! let text = std::fs::File::open("words.txt")?;
//! let mut longest = 0;
//! Pipeline::lines(std::io::BufReader::new(text))
//!     .batch(4096)
//!     .map(|line: String| line.len())
//!     .ordered()
//!     .run_on(&cluster, "lengths", |length| longest = longest.max(length))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Guarantees
//!
//! * Every result is passed to the sink exactly once, in the order of the items if the pipeline is ordered. A batch may be
//!   computed more than once: when a worker or the server dies, and as a copy of a slow one. So stages must not have effects
//!   that must happen once.
//! * What is in flight is bounded, in batches ([`Pipeline::in_flight`](heist::pipeline::Pipeline::in_flight)) and in bytes
//!   ([`ClusterBuilder::bytes`]).
//! * Workers may die, hang and come back, and servers may die and come back. A run ends with an error if there is no server for
//!   longer than [`ClusterBuilder::patience`], or if a batch takes every worker with it that starts it.
//! * If the coordinator dies, a new one starts from the beginning, or goes on with [`ClusterBuilder::resume`].

#![deny(unsafe_code)]

// From what is sent to who sends it: `message` and `window` know no network, `engine` is what is asked of one, `nats`
// implements it, `coordinator` and `worker` are the two roles, `front` starts their threads, and `observer` watches them.
mod error;
mod settings;
mod message;
mod report;
mod status;
mod window;
mod engine;
mod page;
mod trace;
mod nats;
mod network;
mod terminate;
mod coordinator;
mod worker;
mod front;
mod observer;

pub use error::ClusterError;
pub use front::RunOn;
pub use observer::Observer;
pub use report::{ClusterReport, NodeReport};
pub use settings::{Cluster, ClusterBuilder, Role, Storage};
pub use status::{JobStatus, LeavingWorker, Status, Straggler, WaitingWorker, WorkerStatus};
