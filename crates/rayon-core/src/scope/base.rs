//! What both kinds of scope are made of: a count of what is not done, and the first panic.

use std::fmt::DebugStruct;
use std::marker::PhantomData;
use std::panic::resume_unwind;
use std::sync::Mutex;

use heist::engine::Latch;

use crate::fifo::lock;
use crate::registry::Registry;
use crate::unwind::{Payload, catch};

pub(super) struct Base<'scope> {
    /// There as long as the scope is. No count of references: scopes may be small, and many.
    registry: Pointer<Registry>,
    /// Counts the closure of the scope, and what was spawned.
    latch: Latch,
    /// The first.
    panic: Mutex<Option<Payload>>,
    /// Neither longer nor shorter: what is spawned may borrow for that long.
    lifetime: PhantomData<fn(&'scope ()) -> &'scope ()>,
}

impl<'scope> Base<'scope> {
    /// Of a scope that is to be [completed](Self::complete).
    ///
    /// # Safety
    ///
    /// The registry outlives it.
    pub(super) unsafe fn new(registry: &Registry) -> Self {
        Self {
            registry: Pointer::new(registry),
            latch: Latch::new(),
            panic: Mutex::new(None),
            lifetime: PhantomData,
        }
    }

    pub(super) fn registry(&self) -> &Registry {
        // SAFETY: it outlives this.
        unsafe { self.registry.get() }
    }

    /// Makes a closure something that the scope waits for: it must be run. It does not panic.
    pub(super) fn job<F>(&self, f: F) -> impl FnOnce() + Send + use<'scope, F>
    where
        F: FnOnce() + Send + 'scope,
    {
        self.latch.one_more();
        let base = Pointer::new(self);
        // SAFETY: counted just now, and so there until it says that it is done, which it does once.
        move || unsafe { Self::run(base, f) }
    }

    /// Calls what `make` makes on each thread of the pool.
    pub(super) fn broadcast<F>(&self, mut make: impl FnMut() -> F)
    where
        F: FnOnce() + Send + 'scope,
    {
        let registry = self.registry();
        let jobs = (0..registry.threads()).map(|_| self.job(make()));
        // SAFETY: what they borrow outlives the scope, whose end waits for them; panics are caught.
        unsafe { registry.engine.broadcast(jobs) };
    }

    /// Calls the closure of the scope, and waits for everything that was spawned.
    pub(super) fn complete<R>(&self, f: impl FnOnce() -> R) -> R {
        let result = self.catch(f);
        self.latch.wait();
        let panic = lock(&self.panic).take();
        match (result, panic) {
            (Some(value), None) => value,
            (_, Some(payload)) => resume_unwind(payload),
            (None, None) => unreachable!("a closure that does not return has left its panic"),
        }
    }

    /// # Safety
    ///
    /// The caller is counted, and calls this once. The scope may be gone when it returns.
    unsafe fn run(base: Pointer<Self>, f: impl FnOnce()) {
        // SAFETY: there while the caller is counted.
        unsafe { base.get() }.catch(f);
        // SAFETY: there while the caller is counted.
        let latch = unsafe { &raw const (*base.0).latch };
        // SAFETY: as the caller says.
        unsafe { Latch::done(latch) };
    }

    fn catch<R>(&self, f: impl FnOnce() -> R) -> Option<R> {
        match catch(f) {
            Ok(value) => Some(value),
            Err(payload) => {
                self.keep(payload);
                None
            }
        }
    }

    /// If it is the first; others are dropped.
    #[cold]
    fn keep(&self, payload: Payload) {
        let mut first = lock(&self.panic);
        if first.is_none() {
            *first = Some(payload);
        } else {
            drop(first);
            drop_payload(payload);
        }
    }

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

/// If that panics in turn, the rest is leaked: one panic is passed on already.
fn drop_payload(payload: Payload) {
    if let Err(next) = catch(|| drop(payload)) {
        std::mem::forget(next);
    }
}

/// To something that is shared, and that is there when it matters.
pub(super) struct Pointer<T>(*const T);

impl<T> Clone for Pointer<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Pointer<T> {}

// SAFETY: it stands for a `&T`.
unsafe impl<T: Sync> Send for Pointer<T> {}
// SAFETY: likewise.
unsafe impl<T: Sync> Sync for Pointer<T> {}

impl<T> Pointer<T> {
    pub(super) fn new(target: &T) -> Self {
        Self(&raw const *target)
    }

    /// # Safety
    ///
    /// It is there for as long as the result is used.
    pub(super) unsafe fn get<'a>(self) -> &'a T {
        // SAFETY: as the caller says.
        unsafe { &*self.0 }
    }
}
