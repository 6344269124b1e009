//! Measures on virtual cores how heist scales: runs its own code on a [`Machine`], and returns how efficient it was.
//!
//! A program should install [`heist_sim::Allocator`] as its global allocator. With it, the same seed gives the same
//! [`Measurement`].
//!
//! ```
//! use heist_sim_workloads::{Run, Strategy, Workload};
//!
//! let run = Run { span: 100_000, ..Run::new(Workload::Join, Strategy::WorkStealing, 2) };
//! let measurement = run.measure()?;
//! assert!(measurement.elapsed > 50_000);
//! # Ok::<(), heist_sim_workloads::Error>(())
//! ```

mod layout;
mod run;
mod sweep;

pub use heist_sim::{Machine, Report};
pub use heist_sim_cases::{
    Case, ITEM, Placement, REST, Strategy, TASK, UnknownName, WARM_UP, Workload, depth,
};
pub use run::{Error, Measurement, Run};
pub use sweep::{Point, efficiency, sweep};
