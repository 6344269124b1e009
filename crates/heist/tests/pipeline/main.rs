//! The contracts of pipelines. Their memory is measured in `pipeline_memory.rs`.

#![cfg(not(any(loom, shuttle)))]

#[path = "../common/mod.rs"]
mod common;

mod run;
mod steps;
mod sections;
mod sections_failure;
mod results;
mod feed;
mod feed_help;
mod flush;
mod senders;
mod lines;
mod bounds;
mod weight;
mod prompt;
mod report;
mod progress;
mod cancel;
mod failure;
mod drop_panics;
mod stop;
mod idle;
mod beside;
mod nested;
mod side_by_side;
mod random;
mod random_steps;
mod random_graphs;
