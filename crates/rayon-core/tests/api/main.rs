//! The contracts of the API, one file each. Tests that use the global pool run in processes of their own;
//! those that are only about it are in the binary `process`.

#[path = "../common/mod.rs"]
mod common;

mod surface;
mod auto_traits;
mod build;
mod join;
mod scope;
mod spawn;
mod broadcast;
mod order;
mod yield_now;
mod current_thread;
mod cross_pool;
mod heist_pool;
mod lifecycle;
mod stack;
mod threads;
