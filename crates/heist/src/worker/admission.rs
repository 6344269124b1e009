//! What a pool does at a spawn besides pushing the task: it keeps its bound and captures the context.
//!
//! Most pools do neither. They have no [`Admission`], which is all that a spawn looks at.

use std::any::type_name;

use crate::sync::Arc;
use crate::trace::rename;
use crate::worker::context::{Captured, ContextHook};
use crate::worker::limit::{Limit, Permit, Room};

/// The bound and the hook of a pool.
pub(crate) struct Admission {
    limit: Option<Arc<Limit>>,
    context: Option<ContextHook>,
}

/// A closure that was admitted.
pub(crate) struct Admitted<F> {
    /// Released first, whether the closure runs or is dropped. `None` without a bound, and in a pool that refuses it.
    permit: Option<Permit>,
    context: Option<Captured>,
    closure: F,
}

impl<F> Admitted<F> {
    pub(crate) fn run<T>(self) -> T
    where
        F: FnOnce() -> T,
    {
        let Self { permit, context, closure } = self;
        drop(permit);
        match context {
            None => closure(),
            Some(captured) => captured.around(closure),
        }
    }
}

impl Admission {
    /// Returns what a pool with this bound and this hook needs; `None` if it has neither.
    pub(crate) fn new(bound: Option<usize>, context: Option<ContextHook>) -> Option<Box<Self>> {
        let limit = bound.map(|bound| Arc::new(Limit::new(bound)));
        let any = limit.is_some() || context.is_some();
        any.then(|| Box::new(Self { limit, context }))
    }

    /// Captures the context of the calling thread, if there is a hook for that.
    pub(crate) fn capture(&self) -> Option<Captured> {
        self.context.as_ref().map(ContextHook::capture)
    }

    /// Admits a closure to the pool with that id. Waits until there is room.
    pub(crate) fn admit<F>(&self, pool: usize, closure: F) -> Admitted<F> {
        // The hook is user code, and may spawn: before there is a permit, for which that might have to wait.
        let context = self.capture();
        let permit = self.limit.as_ref().and_then(|limit| Limit::acquire(limit, pool));
        Admitted { permit, context, closure }
    }

    /// Like [`admit`](Self::admit), but returns the closure if there is no room.
    pub(crate) fn try_admit<F>(&self, pool: usize, closure: F) -> Result<Admitted<F>, F> {
        let context = self.capture();
        let permit = match &self.limit {
            None => None,
            Some(limit) => match Limit::try_acquire(limit, pool) {
                Ok(permit) => permit,
                Err(()) => return Err(closure),
            },
        };
        Ok(Admitted { permit, context, closure })
    }

    /// Returns the closures of a batch, to be collected at once. Waits until there is room for one task; the others exceed the
    /// bound.
    pub(crate) fn batch<F, T>(
        &self,
        pool: usize,
        closures: impl Iterator<Item = F>,
    ) -> impl Iterator<Item = impl FnOnce() -> T + Send + 'static>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        // Collected first: the iterator and the hook are user code, and may spawn. They would wait for the permit of this batch.
        let closures: Vec<_> = closures.map(|closure| (self.capture(), closure)).collect();
        let limit = self.limit.as_ref().filter(|_| !closures.is_empty());
        let first = limit.and_then(|limit| Limit::acquire(limit, pool));
        closures.into_iter().map(move |(context, closure)| {
            let permit = first.as_ref().map(Permit::another);
            let admitted = Admitted { permit, context, closure };
            move || {
                // The task is named for this closure, but the user knows the inner one.
                rename(type_name::<F>);
                admitted.run()
            }
        })
    }

    /// Calls [`Limit::close`].
    pub(crate) fn close(&self) {
        if let Some(limit) = &self.limit {
            limit.close();
        }
    }

    /// Returns [`Limit::room`], if there is a bound.
    pub(crate) fn room(&self) -> Option<Option<Room>> {
        self.limit.as_deref().map(Limit::room)
    }
}
