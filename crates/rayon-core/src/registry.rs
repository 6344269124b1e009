//! What the threads of a pool share, and which pool a thread belongs to.

use std::cell::Cell;
use std::mem;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};

use heist::engine::{self, Engine};

use crate::builder::ThreadPoolBuilder;
use crate::error::{ErrorKind, ThreadPoolBuildError};
use crate::fifo::{self, Fifo};
use crate::global::global;
use crate::log;
use crate::thread::{ThreadBuilder, ThreadSpawn};
use crate::unwind::{Payload, abort, catch};

/// Told of a panic that nobody waits for.
pub(crate) type PanicHandler = dyn Fn(Payload) + Send + Sync;

/// Called by a thread with its index when it starts, or ends.
pub(crate) type ThreadHandler = dyn Fn(usize) + Send + Sync;

/// An engine, and what Rayon adds to it. There until the last thread has ended.
pub(crate) struct Registry {
    pub(crate) engine: Engine,
    panic_handler: Option<Box<PanicHandler>>,
    start_handler: Option<Box<ThreadHandler>>,
    exit_handler: Option<Box<ThreadHandler>>,
    /// Each thread's, for what it spawns in that order.
    fifos: Box<[Fifo]>,
    /// Everything that is spawned goes that way.
    breadth_first: bool,
}

/// Which thread of which pool. Only [`enter`] and [`leave`] write it.
#[derive(Clone, Copy)]
struct Place {
    registry: NonNull<Registry>,
    index: usize,
}

thread_local! {
    static PLACE: Cell<Option<Place>> = const { Cell::new(None) };
}

/// The pool that this thread belongs to, and its number there.
#[derive(Clone, Copy)]
pub(crate) struct Here<'a> {
    pub(crate) registry: &'a Registry,
    pub(crate) index: usize,
}

/// Calls `f` with the place of this thread, if it belongs to a pool.
#[inline]
pub(crate) fn with_here<R>(f: impl FnOnce(Option<Here<'_>>) -> R) -> R {
    let here = PLACE.get().map(|Place { registry, index }| {
        // SAFETY: a thread that has entered holds the registry until it leaves, and it does not leave within
        // this call: it does so when it has nothing more to run.
        let registry = unsafe { registry.as_ref() };
        Here { registry, index }
    });
    f(here)
}

/// Calls `f` with the pool that this thread belongs to, or else the global one.
#[inline]
pub(crate) fn with_current<R>(f: impl FnOnce(&Registry) -> R) -> R {
    with_here(|here| f(here.map_or_else(|| &**global(), |here| here.registry)))
}

/// Calls `f` on a thread of the pool that this thread belongs to, or else of the global one.
#[inline]
pub(crate) fn run_inside<R: Send>(f: impl FnOnce(&Registry) -> R + Send) -> R {
    with_here(|here| match here {
        Some(here) => f(here.registry),
        None => {
            let registry = &**global();
            registry.engine.run(move |_| f(registry))
        }
    })
}

/// Calls the user's code. Its panic goes to the panic handler of the pool that this thread belongs to.
#[inline]
pub(crate) fn contain(code: impl FnOnce()) {
    if let Err(payload) = catch(code) {
        with_here(|here| here.expect("on a thread of a pool").registry.report(payload));
    }
}

/// The calling thread belongs to a pool from now on.
///
/// # Safety
///
/// The registry is there until it [leaves](leave).
pub(crate) unsafe fn enter(registry: *const Registry, index: usize) {
    let registry = NonNull::new(registry.cast_mut()).expect("a registry has an address");
    PLACE.set(Some(Place { registry, index }));
}

/// The calling thread belongs to no pool any more.
pub(crate) fn leave() {
    PLACE.set(None);
}

impl Registry {
    /// With its threads under way, or none of them. All of them are up when the receiver is cut off.
    pub(crate) fn build<S: ThreadSpawn>(
        mut builder: ThreadPoolBuilder<S>,
    ) -> Result<(Arc<Self>, Receiver<()>), ThreadPoolBuildError> {
        let threads = builder.threads();
        let (engine, workers) = Engine::new(threads, builder.use_current_thread);
        let registry = Arc::new(Self {
            engine,
            panic_handler: builder.panic_handler.take(),
            start_handler: builder.start_handler.take(),
            exit_handler: builder.exit_handler.take(),
            fifos: Fifo::for_each(threads),
            breadth_first: builder.breadth_first,
        });
        let close = CloseOnDrop(&registry);
        let (up, all_up) = mpsc::channel();
        let mut log = log::path();
        let mut mine = None;
        for worker in workers {
            let name = builder.name_of(worker.index());
            let (registry, up) = (Arc::clone(&registry), up.clone());
            let thread =
                ThreadBuilder::new(name, builder.stack_size, registry, worker, up, log.take());
            if thread.index() > 0 || !builder.use_current_thread {
                let spawned = builder.spawn_handler.spawn(thread);
                spawned.map_err(|error| ThreadPoolBuildError::new(ErrorKind::IOError(error)))?;
            } else if engine::is_inside() {
                return Err(ThreadPoolBuildError::new(ErrorKind::CurrentThreadAlreadyInPool));
            } else {
                mine = Some(thread);
            }
        }
        // Last, so that this thread belongs to no pool if there is none.
        if let Some(thread) = mine {
            thread.attach();
        }
        mem::forget(close);
        Ok((registry, all_up))
    }

    pub(crate) fn threads(&self) -> usize {
        self.engine.threads()
    }

    /// Of this thread, if it is one of these.
    pub(crate) fn index_here(&self) -> Option<usize> {
        with_here(|here| here.filter(|here| ptr::eq(here.registry, self)).map(|here| here.index))
    }

    /// Calls `job` on one of the threads: here next, if this is one.
    ///
    /// # Safety
    ///
    /// It does not panic, and what it borrows is there until it has run.
    pub(crate) unsafe fn submit(&self, job: impl FnOnce() + Send) {
        if self.breadth_first {
            // SAFETY: as the caller says.
            unsafe { self.submit_fifo(job) };
        } else {
            // SAFETY: as the caller says.
            unsafe { self.engine.spawn(job) };
        }
    }

    /// Calls `job` on one of the threads: if this is one, after what it has given in this way before.
    ///
    /// # Safety
    ///
    /// As for [`submit`](Self::submit).
    pub(crate) unsafe fn submit_fifo(&self, job: impl FnOnce() + Send) {
        let Some(index) = self.index_here() else {
            // SAFETY: as the caller says.
            unsafe { self.engine.spawn(job) };
            return;
        };
        // SAFETY: called when its turn has come, which the caller waits for.
        let job = unsafe { fifo::boxed(job) };
        self.fifos[index].push(job);
        let stand_in = move || {
            let job = with_here(|here| {
                let here = here.expect("a job runs on a thread of its pool");
                here.registry.fifos[index].pop()
            });
            job();
        };
        // SAFETY: it borrows nothing.
        unsafe { self.engine.spawn(stand_in) };
    }

    pub(crate) fn call_start_handler(&self, index: usize) {
        if let Some(handler) = &self.start_handler {
            contain(|| handler(index));
        }
    }

    pub(crate) fn call_exit_handler(&self, index: usize) {
        if let Some(handler) = &self.exit_handler {
            contain(|| handler(index));
        }
    }

    /// Passes a panic on to whom it may concern, or ends the process: a panic must not pass unseen.
    #[cold]
    #[inline(never)]
    fn report(&self, payload: Payload) {
        match &self.panic_handler {
            None => abort("a panic that nobody waits for, and no panic handler"),
            Some(handler) => {
                if catch(|| handler(payload)).is_err() {
                    abort("the panic handler panicked");
                }
            }
        }
    }
}

/// Ends the threads of a pool that is not to be.
struct CloseOnDrop<'a>(&'a Registry);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.engine.close();
    }
}
