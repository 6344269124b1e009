//! Work that is shared only when another worker wants it: private jobs and tasks, the demand for them, and raids. And how the
//! parts of a scope are counted.

pub(crate) mod demand;
pub(crate) mod job;
pub(crate) mod latch;
pub(crate) mod private;
pub(crate) mod purse;
mod quiet;
pub(crate) mod raid;
