//! The contracts of fork-join: `join`, `scope` and `isolate`, and how they go together with tasks, hooks
//! and stops.

#![cfg(not(any(loom, shuttle)))]

#[path = "../common/mod.rs"]
mod common;

mod join;
mod join_panic;
mod scope;
mod scope_end;
mod scoped;
mod built;
mod isolate;
mod isolate_scope;
mod thread_hooks;
mod with_handles;
mod without_core;
mod late_thief;
mod stop;
mod stress;
