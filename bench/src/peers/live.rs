//! Which pool of ours is at work just now, for whoever watches the benchmark.

use std::sync::{Mutex, PoisonError};

static LIVE: Mutex<Option<&'static heist::Pool>> = Mutex::new(None);

/// This one, or none of ours, from now on.
pub(crate) fn set(pool: Option<&'static heist::Pool>) {
    *LIVE.lock().unwrap_or_else(PoisonError::into_inner) = pool;
}

/// The one that was asked for last.
pub(crate) fn pool() -> Option<&'static heist::Pool> {
    *LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}
