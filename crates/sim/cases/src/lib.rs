//! Workloads that show how heist scales. Each verifies that all of its work was done exactly once.
//!
//! The same sources are compiled twice: `heist-sim-cases` runs on virtual cores, and `heist-real-cases` on the real
//! machine, for comparison. `--cfg sim` swaps the module `host`, as it swaps `sync` in heist.

mod case;
mod host;
mod run;
mod workloads;

pub use case::{Case, Placement, Strategy, UnknownName, Workload};
pub use run::{REST, Sample, WARM_UP, measure};
pub use workloads::{ITEM, TASK, depth};
