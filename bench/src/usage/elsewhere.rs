//! Systems that we do not ask.

use super::Usage;

pub(crate) fn look() -> Usage {
    Usage::default()
}
