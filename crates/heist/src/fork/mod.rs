//! Fork-join without shared memory until somebody wants work: private jobs, the demand for them, and raids on them.

pub(crate) mod demand;
pub(crate) mod job;
pub(crate) mod raid;
