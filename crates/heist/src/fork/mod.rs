//! Fork-join that shares nothing until another worker wants work: private jobs, the demand for them, and raids.

pub(crate) mod demand;
pub(crate) mod job;
pub(crate) mod raid;
