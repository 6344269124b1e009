//! The subcommands, one module each.

pub(crate) mod bench;
pub(crate) mod cluster;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod duel;
pub(crate) mod report;
pub(crate) mod sim;
pub(crate) mod soak;
pub(crate) mod topo;
pub(crate) mod trace;
