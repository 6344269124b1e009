//! The programs on the first revision.

use ::before as heist;

#[path = "programs.rs"]
pub(crate) mod programs;
