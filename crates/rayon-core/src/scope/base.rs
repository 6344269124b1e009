//! What both kinds of scope have in common: a count of the jobs that have not ended, and the first panic.

use std::fmt::DebugStruct;
use std::marker::PhantomData;
use std::panic::resume_unwind;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use heist::engine::Latch;

use crate::registry::Registry;
use crate::unwind::{Payload, catch};

/// The common part of [`Scope`](super::Scope) and [`ScopeFifo`](super::ScopeFifo).
pub(super) struct ScopeBase<'scope> {
    /// Alive as long as the scope. Not an `Arc`, because scopes may be small and many, and counting
    /// references costs.
    registry: SharedPtr<Registry>,
    /// Counts the closure of the scope and the spawned jobs.
    latch: Latch,
    /// The first panic, in a box of one word.
    panic: AtomicPtr<Payload>,
    /// Makes the scope invariant in the lifetime for which spawned closures may borrow.
    lifetime: PhantomData<fn(&'scope ()) -> &'scope ()>,
}

impl<'scope> ScopeBase<'scope> {
    /// Returns the base of a scope, which must be [completed](Self::complete).
    ///
    /// # Safety
    ///
    /// The registry outlives the result.
    pub(super) unsafe fn new(registry: &Registry) -> Self {
        // Later it would wait for what nobody runs.
        registry.engine.must_be_here();
        Self {
            registry: SharedPtr::new(registry),
            latch: Latch::new(),
            panic: AtomicPtr::default(),
            lifetime: PhantomData,
        }
    }

    pub(super) fn registry(&self) -> &Registry {
        // SAFETY: the caller of `new` guarantees that the registry outlives `self`.
        unsafe { self.registry.get() }
    }

    /// Turns a closure into a job that the scope waits for. The job must be run. It does not panic.
    pub(super) fn job<F>(&self, f: F) -> impl FnOnce() + Send + use<'scope, F>
    where
        F: FnOnce() + Send + 'scope,
    {
        self.latch.one_more();
        let base = SharedPtr::new(self);
        // SAFETY: the latch counts the job from now on, so the scope is alive until the job is counted as
        // done, which happens once.
        move || unsafe { Self::run(base, f) }
    }

    /// Calls a closure that `make` returns on each thread of the pool.
    pub(super) fn broadcast<F>(&self, mut make: impl FnMut() -> F)
    where
        F: FnOnce() + Send + 'scope,
    {
        let registry = self.registry();
        let jobs = (0..registry.threads()).map(|_| self.job(make()));
        // SAFETY: what the jobs borrow outlives the scope, which waits for them before it ends. Panics are
        // caught.
        unsafe { registry.engine.broadcast(jobs) };
    }

    /// Calls the closure of the scope, and waits for all spawned jobs.
    pub(super) fn complete<R>(&self, f: impl FnOnce() -> R) -> R {
        let result = self.catch(f);
        self.latch.wait();
        self.resume_panic();
        result.expect("if the closure did not return, its panic was kept")
    }

    /// Continues the first panic, if there was one.
    #[inline(never)]
    fn resume_panic(&self) {
        // Ordering: acquire, to see the payload that `keep` has written before its release.
        let first = self.panic.swap(ptr::null_mut(), Ordering::Acquire);
        if !first.is_null() {
            // SAFETY: `keep` made it from a box, and it is taken here once.
            resume_unwind(*unsafe { Box::from_raw(first) });
        }
    }

    /// Calls `f`, keeps its panic, and counts the job as done. The scope may be freed before this returns.
    ///
    /// # Safety
    ///
    /// The latch of the scope counts the job, and this is called once for it.
    unsafe fn run(base: SharedPtr<Self>, f: impl FnOnce()) {
        // SAFETY: the scope is alive while the latch counts the job.
        unsafe { base.get() }.catch(f);
        // SAFETY: the scope is alive while the latch counts the job.
        let latch = unsafe { &raw const (*base.0).latch };
        // SAFETY: the caller guarantees that the latch counts the job, and it is counted as done once.
        unsafe { Latch::done(latch) };
    }

    /// Calls `f`. If it panics, keeps the panic and returns `None`.
    fn catch<R>(&self, f: impl FnOnce() -> R) -> Option<R> {
        match catch(f) {
            Ok(value) => Some(value),
            Err(payload) => {
                self.keep(payload);
                None
            }
        }
    }

    /// Keeps the first panic, and drops the others.
    #[cold]
    fn keep(&self, payload: Payload) {
        let payload = Box::into_raw(Box::new(payload));
        let none = ptr::null_mut();
        // Ordering: release, so that `resume_panic` sees the payload. Nothing is read if another one was first.
        let kept = self.panic.compare_exchange(none, payload, Ordering::Release, Ordering::Relaxed);
        if kept.is_err() {
            // SAFETY: made from a box above, and not kept.
            drop_payload(*unsafe { Box::from_raw(payload) });
        }
    }

    /// Adds the fields to the `Debug` output of a scope.
    pub(super) fn fields<'a, 'b, 'c>(
        &self,
        debug: &'c mut DebugStruct<'a, 'b>,
    ) -> &'c mut DebugStruct<'a, 'b> {
        debug
            .field("pool_id", &self.registry().engine.id())
            .field("panic", &self.panic)
            .field("job_completed_latch", &self.latch)
    }
}

/// Drops the payload of a panic. If that panics in turn, the second payload is leaked, because the scope
/// already propagates a panic.
fn drop_payload(payload: Payload) {
    if let Err(next) = catch(|| drop(payload)) {
        std::mem::forget(next);
    }
}

/// A pointer to shared data that can be sent to other threads. The code that dereferences it guarantees
/// that the data is alive.
pub(super) struct SharedPtr<T>(*const T);

impl<T> Clone for SharedPtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SharedPtr<T> {}

// SAFETY: it is used like a `&T`, which is `Send` for `T: Sync`.
unsafe impl<T: Sync> Send for SharedPtr<T> {}
// SAFETY: it is used like a `&T`, which is `Sync` for `T: Sync`.
unsafe impl<T: Sync> Sync for SharedPtr<T> {}

impl<T> SharedPtr<T> {
    pub(super) fn new(target: &T) -> Self {
        Self(&raw const *target)
    }

    /// Returns a reference to the data.
    ///
    /// # Safety
    ///
    /// The data is alive for as long as the reference is used.
    pub(super) unsafe fn get<'a>(self) -> &'a T {
        // SAFETY: the caller guarantees that the data is alive.
        unsafe { &*self.0 }
    }
}
