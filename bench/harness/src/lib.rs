//! Measures cases in interleaved rounds, verifies what they compute, and reports ratios between peers.
//!
//! A program describes its cases as [`Row`](row::Row)s. [`Bench`] runs them and keeps every sample; a
//! [`Record`](record::Record) is what is written to a file; [`report`] makes tables. `docs/METHODOLOGY.md`
//! explains why measurements are taken in this way.

pub mod board;
pub mod cores;
mod handoff;
pub mod histogram;
pub mod item;
mod json;
mod lines;
pub mod machine;
mod measure;
pub mod metric;
pub mod pause;
pub mod random;
pub mod record;
pub mod report;
pub mod row;
mod selection;
pub mod stats;
pub mod target;
pub mod threads;
pub mod usage;

pub use measure::{Bench, Step, Unwatched, Watcher};
pub use selection::{Case, Kind, Selection, UnknownName};
