//! The programs on the second revision.

use ::after as heist;

#[path = "programs.rs"]
pub(crate) mod programs;
