//! The pool of everybody who has no other.

use std::sync::{Arc, OnceLock};

use heist::engine;

use crate::builder::ThreadPoolBuilder;
use crate::error::{ErrorKind, ThreadPoolBuildError};
use crate::registry::Registry;
use crate::thread::ThreadSpawn;

/// Set once: `None` if it could not be built.
static GLOBAL: OnceLock<Option<Arc<Registry>>> = OnceLock::new();

/// The global pool, which is built if there is none.
///
/// # Panics
///
/// If it could not be built, now or before.
#[inline]
pub(crate) fn global() -> &'static Arc<Registry> {
    match GLOBAL.get() {
        Some(Some(registry)) => registry,
        _ => first_use(),
    }
}

#[cold]
#[inline(never)]
fn first_use() -> &'static Arc<Registry> {
    let mut error = None;
    let global = GLOBAL.get_or_init(|| by_default().map_err(|reason| error = Some(reason)).ok());
    match (global, error) {
        (Some(registry), _) => registry,
        (None, Some(error)) => panic!("the global thread pool cannot be built: {error}"),
        (None, None) => {
            panic!("the global thread pool could not be built before, and is not tried again")
        }
    }
}

/// The global pool as the user wants it. Returns when all its threads are up.
pub(crate) fn build<S: ThreadSpawn>(
    builder: ThreadPoolBuilder<S>,
) -> Result<(), ThreadPoolBuildError> {
    let mut outcome = Err(ThreadPoolBuildError::new(ErrorKind::GlobalPoolAlreadyInitialized));
    GLOBAL.get_or_init(|| match Registry::build(builder) {
        Ok((registry, all_up)) => {
            outcome = Ok(all_up);
            Some(registry)
        }
        Err(error) => {
            outcome = Err(error);
            None
        }
    });
    // Nothing is ever sent: the end says that the last thread is up, or was dropped.
    outcome.map(|all_up| all_up.into_iter().for_each(|()| ()))
}

/// Where there are no threads at all, this one is the pool.
fn by_default() -> Result<Arc<Registry>, ThreadPoolBuildError> {
    let built = match Registry::build(ThreadPoolBuilder::new()) {
        Err(error) if error.is_unsupported() && !engine::is_inside() => {
            Registry::build(ThreadPoolBuilder::new().num_threads(1).use_current_thread())
                .map_err(|_| error)
        }
        built => built,
    };
    built.map(|(registry, _)| registry)
}
