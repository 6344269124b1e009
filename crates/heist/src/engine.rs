//! The engine without its face, for crates that put another face on it. Not for programs: it promises nothing from
//! one version to the next.
//!
//! An [`Engine`] is a pool whose threads are the caller's: as many as there are cores, never more, and each keeps its core.
//! So a thread that waits does not step aside for another, as in a [`Pool`](crate::Pool): it runs whatever there is, on top
//! of what waits. What a thread spawns it runs newest first; what comes from elsewhere is run in the order in which it came,
//! when there is nothing else. Everything that is given to an engine is run, if its threads come.
//!
//! A thread's private jobs are within reach of the others at all times (`raid`): the second half of a join can be stolen
//! while the first one waits for it, or is long. What `heist` promises elsewhere about waits does not hold here: `isolate`
//! isolates nothing, and if the first half of a `heist::join` panics, whatever is run while it waits for the second sees
//! that the thread panics; [`join`](join()) catches that before.
//!
//! No closure that is given to an engine may panic, unless it says so: the process would be aborted.

use std::cell::Cell;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use crate::api::join::fork_with_migrated;
use crate::api::scope::State;
use crate::error::JoinError;
use crate::fork::job;
use crate::idle::MAX_WORKERS;
use crate::panic::{AbortOnUnwind, PanicHook, contain};
use crate::queues::Single;
use crate::sync::{Arc, Mutex, lock, per_thread};
use crate::task::{Awaited, DetachedTask, End, Refusal, Task, TaskHandle};
use crate::trace::{self, EventKind, record};
use crate::worker::core;
use crate::worker::current::{
    AnyPool, AnyWorker, clear_current, enter, set_current, with_worker, with_worker_thread,
};
use crate::worker::shared::{Config, Shared};
use crate::worker::thread::WorkerThread;
use crate::worker::wait;

/// The most threads that an engine can have.
pub const MAX_THREADS: usize = MAX_WORKERS;

/// Of this crate, for a face that says what it stands on.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What the tasks of an engine descend from: nobody asks.
const ROOT: usize = 0;

/// A pool whose threads are the caller's.
#[derive(Clone)]
pub struct Engine(Arc<Shared<Single>>);

impl Engine {
    /// For so many threads, from one to [`MAX_THREADS`], and a core for each of them, in the order of their numbers. With
    /// `external`, the first is for a thread that has something else to do ([`Worker::attach`]), and for which the end does not wait.
    pub fn new(threads: usize, attached: bool) -> (Self, Vec<Worker>) {
        assert!((1..=MAX_THREADS).contains(&threads), "an engine for {threads} threads");
        let config = Config {
            workers: threads,
            attached: usize::from(attached),
            stack_size: usize::MAX,
            thread_name: Box::new(|_| String::new()),
            on_thread_start: Box::new(|_| ()),
            on_thread_stop: Box::new(|_| ()),
            on_panic: Arc::default(),
            trace: trace::of_pool("rayon-shared", threads, None),
        };
        let (shared, own) = Shared::new(config);
        let engine = Self(Arc::new(shared));
        // Until they come.
        engine.0.idle.add_missing(threads - usize::from(attached));
        let core = |(index, own)| {
            let core = core::Core::new(index, own, engine.0.ledger.of_worker(index));
            Worker {
                core: Some(Box::new(core)),
                engine: engine.clone(),
                attached: attached && index == 0,
            }
        };
        let cores = own.into_iter().enumerate().map(core).collect();
        (engine, cores)
    }

    /// By which it is told from others that are alive.
    pub fn id(&self) -> usize {
        self.0.id()
    }

    /// How many there are.
    pub fn threads(&self) -> usize {
        self.0.config.workers
    }

    fn here<R>(&self, f: impl FnOnce(&WorkerThread<Single>) -> R) -> Option<R> {
        with_worker_thread(&*self.0, f)
    }

    /// Is this thread one of the engine's?
    pub fn is_here(&self) -> bool {
        self.here(|_| ()).is_some()
    }

    /// Has this thread something to do next, if it is one of the engine's?
    pub fn has_pending(&self) -> Option<bool> {
        self.here(WorkerThread::has_pending)
    }

    /// Calls `f` on a thread of the engine some time: if this is one, as the next thing this one does; it may be stolen.
    ///
    /// # Safety
    ///
    /// What it borrows is there until it has run.
    pub unsafe fn spawn<F: FnOnce() + Send>(&self, f: F) {
        // SAFETY: as the caller says.
        let mut task = Some(unsafe { Task::detached_borrowing(Chore(Some(f))) });
        let mut next = || task.take().expect("once");
        if self.here(|thread| AnyWorker::push_job(thread, next())).is_none() {
            self.0.push_job(next());
        }
    }

    /// Calls one of these on each thread, in the order of their numbers; there are as many as threads.
    /// Each thread does so when it has run what it has spawned itself, in the order of these calls.
    ///
    /// # Safety
    ///
    /// What they borrow is there until they have run.
    pub unsafe fn broadcast<F: FnOnce() + Send>(&self, each: impl ExactSizeIterator<Item = F>) {
        assert_eq!(each.len(), self.threads(), "one for each thread");
        // SAFETY: as the caller says.
        let task = |f| unsafe { Task::detached_borrowing(Chore(Some(f))) };
        // Before any of them is posted, under a lock.
        let tasks: Vec<_> = each.map(task).collect();
        self.0.broadcast(tasks);
    }

    /// Calls `f` on a thread of the engine, this one if it is, and returns what it returns, or panics as it does. `f` is told
    /// whether it has come from elsewhere.
    pub fn run<F, R>(&self, f: F) -> R
    where
        F: FnOnce(bool) -> R + Send,
        R: Send,
    {
        if self.is_here() {
            return f(false);
        }
        let guard = AbortOnUnwind;
        // SAFETY: what it borrows outlives this call, which does not return before the task is done, and does not
        // unwind: the guard would see to that.
        let (task, handle) = unsafe { Task::job(ROOT, || f(true)) };
        self.0.push_job(task);
        wait::wait(&handle, self.id());
        let outcome = handle.take();
        std::mem::forget(guard);
        match outcome {
            Ok(value) => value,
            Err(JoinError::Panicked(panic)) => panic.resume(),
            Err(JoinError::Cancelled | JoinError::Stopped) => {
                unreachable!("what is given to an engine is run")
            }
        }
    }

    /// Runs one thing here that is at hand, or else one of another thread's or from elsewhere. Was there any? `None` on a
    /// thread that is not the engine's.
    pub fn yield_now(&self) -> Option<bool> {
        self.here(|thread| {
            let task = thread.next_local().or_else(|| thread.next_from_others());
            task.map(|task| thread.run(task)).is_some()
        })
    }

    /// Likewise, of what is at hand only.
    pub fn yield_local(&self) -> Option<bool> {
        self.here(|thread| thread.next_local().map(|task| thread.run(task)).is_some())
    }

    /// The threads end when nothing is left to do, whether all of them have come or not. What is running may spawn, and
    /// what it has handed to other threads may come back; otherwise nothing comes from elsewhere any more, as the caller
    /// knows.
    pub fn close(&self) {
        self.0.close();
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("threads", &self.threads()).finish_non_exhaustive()
    }
}

/// The right, and the duty, to be one of an engine's threads. If it is dropped, that thread will never come.
pub struct Worker {
    /// `None` when it is taken.
    core: Option<Box<core::Core<Single>>>,
    engine: Engine,
    attached: bool,
}

impl Worker {
    /// From zero.
    pub fn index(&self) -> usize {
        self.core.as_ref().expect("not taken yet").index
    }

    /// The calling thread serves until the engine's end. `start` and `stop` are called on it before and after,
    /// while it counts as the engine's already and still.
    ///
    /// # Panics
    ///
    /// If the thread belongs to a pool.
    pub fn run(mut self, start: impl FnOnce(), stop: impl FnOnce()) {
        assert!(!is_inside(), "a thread of a pool serves in another");
        assert!(!self.attached, "a attached does not serve");
        let (thread, core) = self.take();
        let shared = &*thread.shared;
        // A thread that is lost keeps the engine from ending, and tasks from running.
        let guard = AbortOnUnwind;
        let work = || {
            shared.idle.arrive();
            thread.acquire_core(core);
            thread.in_service.set(true);
            start();
            thread.run_until_shutdown();
            stop();
            // Of what was called last.
            while let Some(task) = thread.next_local() {
                thread.run(task);
            }
            thread.release_core();
        };
        // SAFETY: the worker thread is of that engine, and so is the demand.
        unsafe { enter(shared.id(), &*thread, &shared.demand_when_idle, work) };
        clear_current();
        std::mem::forget(guard);
    }

    /// The calling thread is the engine's from now on, for good, and goes on with its own life: it runs things when it waits,
    /// and others take what it spawns. The first core of an engine that was made for a attached thread.
    ///
    /// # Panics
    ///
    /// If the thread belongs to a pool.
    pub fn attach(mut self) {
        // The first thread-local of the engine's that this thread has, so that it is the first to go.
        DEPARTURE.with(|_| ());
        assert!(!is_inside(), "a thread of a pool is no attached in another");
        assert!(self.attached, "made for a attached");
        let (thread, core) = self.take();
        let place = NonNull::from(Box::leak(thread));
        // SAFETY: there until the thread's departure.
        let thread = unsafe { place.as_ref() };
        thread.in_service.set(true);
        // SAFETY: the worker thread is of that engine, and so is the demand; both are there until the thread's departure.
        unsafe { set_current(thread.shared.id(), thread, &thread.shared.demand_when_idle) };
        thread.acquire_core(core);
        DEPARTURE.with(|departure| departure.set(Some(Departure(place))));
    }

    fn take(&mut self) -> (Box<WorkerThread<Single>>, Box<core::Core<Single>>) {
        let core = self.core.take().expect("taken once");
        (Box::new(WorkerThread::new(Arc::clone(&self.engine.0))), core)
    }
}

per_thread! {
    /// Of a attached thread.
    static DEPARTURE: Cell<Option<Departure>> = Cell::new(None);
}

/// The end of a attached thread's thread, and what it has been: others must not look at what it has of its own any more.
struct Departure(NonNull<WorkerThread<Single>>);

impl Drop for Departure {
    fn drop(&mut self) {
        job::close();
        clear_current();
        // SAFETY: made of a box by `attach`, and nobody knows it any more.
        let thread = unsafe { Box::from_raw(self.0.as_ptr()) };
        // Before what it counts in.
        if thread.core.take().is_some() {
            record(EventKind::WorkerEnd);
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(core) = self.core.take() {
            self.engine.0.abandon_worker(core.index);
        }
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("engine", &self.engine).finish_non_exhaustive()
    }
}

/// Something to run that nobody waits for, or whoever does is told by itself.
struct Chore<F>(Option<F>);

impl<F: FnOnce() + Send> DetachedTask for Chore<F> {
    const JOB: bool = true;

    fn root(&self) -> usize {
        ROOT
    }

    fn run(&mut self, _: &Arc<PanicHook>) -> End {
        let guard = AbortOnUnwind;
        self.0.take().expect("run once")();
        std::mem::forget(guard);
        End::Completed
    }

    /// Its thread has never come.
    fn refuse(&mut self, _: Refusal) -> u64 {
        let f = self.0.take();
        contain(|| drop(f));
        1
    }

    fn finish(self) {}
}

/// Does this thread belong to a pool, or to an engine?
#[inline]
pub fn is_inside() -> bool {
    job::is_open()
}

/// Calls both, perhaps at once, and returns what they return. Each is told whether it is on another thread than this call.
/// On a thread of no pool, both are on `home`.
///
/// If one panics, so does this, after both have ended; if both do, with the panic of the first.
#[inline]
pub fn join<A, B, RA, RB>(a: A, b: B, home: impl FnOnce() -> &'static Engine) -> (RA, RB)
where
    A: FnOnce(bool) -> RA + Send,
    B: FnOnce(bool) -> RB + Send,
    RA: Send,
    RB: Send,
{
    fork_with_migrated(a, ManuallyDrop::new(b), |a, b| join_on(home(), a, b))
}

#[cold]
#[inline(never)]
fn join_on<A, B, RA, RB>(home: &'static Engine, a: A, b: B) -> (RA, RB)
where
    A: FnOnce(bool) -> RA + Send,
    B: FnOnce(bool) -> RB + Send,
    RA: Send,
    RB: Send,
{
    let (a, b) = (|_| a(true), |_| b(true));
    home.run(|_| {
        fork_with_migrated(a, ManuallyDrop::new(b), |_, _| unreachable!("a thread of the engine"))
    })
}

/// Counts what is not done, and is waited for: first of all its owner.
pub struct Latch {
    state: State,
    end: Mutex<Option<TaskHandle<Vec<()>>>>,
}

// SAFETY: the state is made for it.
unsafe impl Sync for Latch {}

impl Latch {
    /// With the owner to be counted down.
    pub fn new() -> Self {
        let (state, end) = State::new();
        Self { state, end: Mutex::new(Some(end)) }
    }

    /// One more, by somebody who is counted.
    pub fn one_more(&self) {
        self.state.one_more();
    }

    /// One less. The latch may be gone when this returns.
    ///
    /// # Safety
    ///
    /// The latch is there, and the caller is one of those that are counted, and says this once.
    pub unsafe fn done(latch: *const Self) {
        // SAFETY: there, as the caller says.
        let state = NonNull::from(unsafe { &(*latch).state });
        // SAFETY: as the caller says.
        unsafe { State::done(state) };
    }

    /// The owner is done, and waits for the others: once. On a thread of an engine it runs whatever there is meanwhile.
    pub fn wait(&self) {
        let end = lock(&self.end).take().expect("waits once");
        // SAFETY: there; the owner was counted from the beginning, and says so here.
        unsafe { Self::done(self) };
        if !end.is_done() && with_worker(|worker| worker.wait_for_job(&end, None)).is_none() {
            wait::watch_outside(&end);
        }
        // To take it is to see what was done before it.
        end.take().expect("the last one keeps the promise");
    }
}

impl Default for Latch {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Latch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Latch").finish_non_exhaustive()
    }
}
