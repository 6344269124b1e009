//! The global pool.

use std::sync::{Arc, OnceLock};

use heist::engine;

use crate::builder::ThreadPoolBuilder;
use crate::error::{ErrorKind, ThreadPoolBuildError};
use crate::registry::Registry;
use crate::thread::ThreadSpawn;

/// Set once; to `None` if the pool could not be built.
static GLOBAL: OnceLock<Option<Arc<Registry>>> = OnceLock::new();

/// Returns the global pool, and builds it if there is none.
///
/// # Panics
///
/// Panics if it could not be built, now or before.
#[inline]
pub(crate) fn global() -> &'static Arc<Registry> {
    match GLOBAL.get() {
        Some(Some(registry)) => registry,
        _ => first_use(),
    }
}

/// Builds the global pool with the default settings, unless another thread was faster.
#[cold]
#[inline(never)]
fn first_use() -> &'static Arc<Registry> {
    let mut error = None;
    let global = GLOBAL.get_or_init(|| build_default().map_err(|reason| error = Some(reason)).ok());
    match (global, error) {
        (Some(registry), _) => registry,
        (None, Some(error)) => panic!("the global thread pool cannot be built: {error}"),
        (None, None) => {
            panic!(
                "the global thread pool could not be built earlier, and building it is not retried"
            )
        }
    }
}

/// Builds the global pool with the settings of a builder. Returns when all its threads have started.
pub(crate) fn build<S: ThreadSpawn>(
    builder: ThreadPoolBuilder<S>,
) -> Result<(), ThreadPoolBuildError> {
    let mut outcome = Err(ThreadPoolBuildError::new(ErrorKind::GlobalPoolAlreadyInitialized));
    GLOBAL.get_or_init(|| match Registry::build(builder) {
        Ok((registry, all_started)) => {
            outcome = Ok(all_started);
            Some(registry)
        }
        Err(error) => {
            outcome = Err(error);
            None
        }
    });
    // Nothing is ever sent. The iterator ends when each thread has started, or its `ThreadBuilder` was
    // dropped.
    outcome.map(|all_started| all_started.into_iter().for_each(|()| ()))
}

/// Builds a pool with the default settings. On a system without threads, the current thread is its only
/// thread.
fn build_default() -> Result<Arc<Registry>, ThreadPoolBuildError> {
    let built = match Registry::build(ThreadPoolBuilder::new()) {
        Err(error) if error.is_unsupported() && !engine::is_inside() => {
            Registry::build(ThreadPoolBuilder::new().num_threads(1).use_current_thread())
                .map_err(|_| error)
        }
        built => built,
    };
    built.map(|(registry, _)| registry)
}
