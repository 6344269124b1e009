//! Whole pools, forks, engines and pipelines under shuttle: random and PCT schedules.
//!
//! Run with `ci/models.sh`. A task that is lost, a wake-up that is missed and a wait that never ends are
//! deadlocks, which shuttle reports with the schedule; `HEIST_REPLAY=<schedule> ci/schedules.sh NAME` runs
//! it again. Orderings are the business of the loom models.

#![cfg(shuttle)]

mod scenarios;

mod pool;
mod admission;
mod broadcast;
mod fork;
mod scoped;
mod control;
mod waiting;
mod policy;
mod resize;
mod near;
mod plan;
mod generated;
mod guests;
mod engine;
mod pipeline;
mod sections;
mod futures;
