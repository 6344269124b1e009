//! The heist pool that is being measured, for observers of a run.

use std::sync::{Mutex, PoisonError};

static LIVE: Mutex<Option<&'static heist::Pool>> = Mutex::new(None);

/// Sets the pool that is being measured; `None` if it is not a heist pool.
pub(crate) fn set(pool: Option<&'static heist::Pool>) {
    *LIVE.lock().unwrap_or_else(PoisonError::into_inner) = pool;
}

/// Returns the pool that was set last.
pub(crate) fn pool() -> Option<&'static heist::Pool> {
    *LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}
