//! Unstable internals for API shims such as rayon-core. Not for programs: everything here may change in any
//! version.
//!
//! An [`Engine`] is a pool whose threads belong to the caller: exactly one for each worker, and each keeps its
//! core. So a thread that waits does not hand its core to another one, as in a [`Pool`](crate::Pool): it runs any
//! other task on top of the one that waits. A thread runs its own tasks newest first. Tasks from outside run in the
//! order in which they came, when there is nothing else. Every task that is given to an engine runs, provided that the
//! engine's threads are started.
//!
//! Other threads can take a thread's private jobs at any time (`fork::raid`): the second half of a join can be
//! stolen while the first half waits for it, or takes long. What `heist` promises about waits elsewhere does not
//! hold here: `isolate` has no effect, and if the first half of a `heist::join` panics, whatever runs while it
//! waits for the second half sees `std::thread::panicking`; the [`join`](join()) of this module catches the panic
//! before.
//!
//! A closure that is given to an engine must not panic, unless its function says otherwise: a panic aborts the
//! process.

use std::any::type_name;
use std::cell::Cell;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use crate::api::join::fork_with_migrated;
use crate::error::JoinError;
use crate::fork::job;
use crate::fork::latch::CountLatch;
use crate::idle::MAX_WORKERS;
use crate::panic::{AbortOnUnwind, PanicHook, contain};
use crate::queues::Single;
use crate::sync::{Arc, Mutex, copies, lock, note_built, per_thread};
use crate::task::{Awaited, DetachedTask, End, JobKind, Refusal, Task, TaskHandle};
use crate::trace::{self, EventKind, record};
use crate::worker::config::Config;
use crate::worker::core;
use crate::worker::current::{
    AnyPool, AnyWorker, clear_current, enter, set_current, with_worker, with_worker_thread,
};
use crate::worker::outside;
use crate::worker::shared::Shared;
use crate::worker::table::Place;
use crate::worker::thread::WorkerThread;

/// The largest number of threads that an engine can have.
pub const MAX_THREADS: usize = MAX_WORKERS;

/// The version of this crate, for shims that report it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The root of all tasks of an engine. Nothing depends on it.
const ROOT: usize = 0;

/// A pool whose threads belong to the caller.
#[derive(Clone)]
pub struct Engine(Arc<Shared<Single>>);

impl Engine {
    /// Returns an engine for that many threads, from one to [`MAX_THREADS`], and a [`Worker`] for each of them, in
    /// the order of their numbers. With `attached`, the first one is for a thread that continues with its own work
    /// ([`Worker::attach`]), and that shutdown does not wait for.
    pub fn new(threads: usize, attached: bool) -> (Self, Vec<Worker>) {
        assert!((1..=MAX_THREADS).contains(&threads), "an engine cannot have {threads} threads");
        let config = Config {
            attached: usize::from(attached),
            stack_size: usize::MAX,
            trace: trace::of_pool("rayon-core", threads, None),
            ..Config::plain(threads, threads)
        };
        let engine = Self(Arc::new(Shared::new(config)));
        note_built(engine.id());
        #[cfg(feature = "futures")]
        engine.0.know(&engine.0);
        // The workers count as missing until their threads start.
        engine.0.idle.add_missing(threads - usize::from(attached));
        let core = |index| {
            let core = core::Core::new(index, engine.0.ledger.of_worker(index));
            // Places are filled in order, so that each worker has the place with its own number.
            let place = engine.0.enter().expect("as many places as workers");
            Worker {
                core: Some((Box::new(core), place)),
                engine: engine.clone(),
                attached: attached && index == 0,
            }
        };
        let cores = (0..threads).map(core).collect();
        (engine, cores)
    }

    /// Returns a number that tells the engine from all others that are alive.
    pub fn id(&self) -> usize {
        self.0.id()
    }

    /// Returns the number of threads.
    pub fn threads(&self) -> usize {
        self.0.config.workers
    }

    fn here<R>(&self, f: impl FnOnce(&WorkerThread<Single>) -> R) -> Option<R> {
        with_worker_thread(&*self.0, f)
    }

    /// Returns whether the calling thread is one of the engine's.
    pub fn is_here(&self) -> bool {
        self.here(|_| ()).is_some()
    }

    /// Returns whether the calling thread has a task or job of its own, if it is one of the engine's.
    pub fn has_pending(&self) -> Option<bool> {
        self.here(WorkerThread::has_pending)
    }

    /// Spawns `f` on the engine. If the calling thread is one of the engine's, `f` is the next thing that it runs,
    /// unless another thread steals it.
    ///
    /// # Safety
    ///
    /// What `f` borrows is valid until it has run.
    pub unsafe fn spawn<F: FnOnce() + Send>(&self, f: F) {
        // SAFETY: the caller's promise.
        let mut task = Some(unsafe { Task::detached_borrowing(Chore(Some(f))) });
        let mut next = || task.take().expect("once");
        if self.here(|thread| AnyWorker::push_job(thread, next())).is_none() {
            self.0.push_job(next());
        }
    }

    /// Broadcasts to all threads: the thread with number `n` calls the closure with that number. There are as many
    /// closures as threads. A thread calls its closure after it has run its own tasks, and runs several broadcasts in
    /// the order of these calls.
    ///
    /// # Safety
    ///
    /// What they borrow is valid until they have run.
    pub unsafe fn broadcast<F: FnOnce() + Send>(&self, each: impl ExactSizeIterator<Item = F>) {
        self.0.must_be_here();
        assert_eq!(each.len(), self.threads(), "one for each thread");
        // SAFETY: the caller's promise.
        let task = |f| unsafe { Task::detached_borrowing(Chore(Some(f))) };
        // Collected first: the iterator is user code, and pushing takes a lock.
        let tasks: Vec<_> = each.map(task).collect();
        self.0.broadcast(tasks);
    }

    /// Calls `f` on a thread of the engine, and returns its result or panics as it does. If the calling thread is
    /// one of the engine's, `f` runs on it. The argument of `f` says whether it was moved to another thread. A thread of
    /// no pool looks for the result for some microseconds before it sleeps.
    pub fn run<F, R>(&self, f: F) -> R
    where
        F: FnOnce(bool) -> R + Send,
        R: Send,
    {
        if self.is_here() {
            return f(false);
        }
        self.0.must_be_here();
        let guard = AbortOnUnwind;
        // SAFETY: what `f` and its result borrow outlives this call. The call does not return before the task is
        // done, and it does not unwind: the guard would abort.
        let (task, handle) = unsafe { Task::job(ROOT, JobKind::Half, || f(true)) };
        self.0.push_job(task);
        if with_worker(|worker| worker.wait(&handle, self.id())).is_none() {
            outside::watch_outside(&handle);
        }
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

    /// Runs one task on the calling thread: one of its own, or else one of another thread's or from outside. Returns
    /// whether there was one, and `None` on a thread that is not the engine's. A call may miss the private jobs of the
    /// other threads; a loop of calls does not.
    pub fn yield_now(&self) -> Option<bool> {
        self.here(WorkerThread::run_one)
    }

    /// Runs one of the calling thread's own tasks. Returns whether there was one, and `None` on a thread that is not
    /// the engine's.
    pub fn yield_local(&self) -> Option<bool> {
        self.here(WorkerThread::run_one_local)
    }

    /// Shuts the engine down: its threads end when nothing is left to do, whether all of them have started or not.
    /// Running tasks may still spawn, and what they have handed to other threads may come back. The caller ensures
    /// that nothing else comes from outside any more.
    pub fn close(&self) {
        if self.0.copy == copies() {
            self.0.close();
        }
    }

    /// Panics if this process is a child of `fork()`, and the engine was made in the parent, whose threads are not here.
    pub fn must_be_here(&self) {
        self.0.must_be_here();
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("threads", &self.threads()).finish_non_exhaustive()
    }
}

/// The right to be one of an engine's threads. If it is dropped unused, this worker never starts.
pub struct Worker {
    /// `None` once it was used.
    core: Option<(Box<core::Core>, Place<Single>)>,
    engine: Engine,
    attached: bool,
}

impl Worker {
    /// Returns the worker's number, from zero.
    pub fn index(&self) -> usize {
        self.core.as_ref().expect("not taken yet").0.index
    }

    /// Runs the worker on the calling thread until the engine shuts down. `start` and `stop` are called on the thread
    /// before and after that, and it counts as one of the engine's threads during both calls.
    ///
    /// # Panics
    ///
    /// Panics if the thread belongs to a pool.
    pub fn run(mut self, start: impl FnOnce(), stop: impl FnOnce()) {
        assert!(!is_inside(), "the thread already belongs to a pool");
        assert!(!self.attached, "an attached worker must use `attach`");
        let (thread, core) = self.take();
        let shared = &*thread.shared;
        // A panic here would lose a thread, which would keep the engine from shutting down and tasks from running.
        let guard = AbortOnUnwind;
        let work = || {
            shared.idle.arrive();
            thread.acquire_core(core);
            thread.be_raided();
            thread.in_service.set(true);
            start();
            thread.run_until_shutdown();
            stop();
            // Runs what `stop` has spawned.
            while let Some(task) = thread.next_local() {
                thread.run(task);
            }
            thread.release_core();
        };
        // SAFETY: `thread` is a worker thread of that engine, and the demand is one of the engine's.
        unsafe { enter(shared.id(), &*thread, &shared.demand_when_idle, work) };
        clear_current();
        std::mem::forget(guard);
    }

    /// Makes the calling thread one of the engine's until the thread ends. The thread continues with its own work:
    /// it runs tasks when it waits, and other threads take what it spawns. Only for the first worker of an engine
    /// that was made with `attached`.
    ///
    /// # Panics
    ///
    /// Panics if the thread belongs to a pool.
    pub fn attach(mut self) {
        // Touched before anything is leaked: on a thread whose thread-locals are being destroyed this panics. The
        // order in which they are destroyed does not matter, because `Departure` uses only those without a
        // destructor.
        DEPARTURE.with(|_| ());
        assert!(!is_inside(), "the thread already belongs to a pool");
        assert!(self.attached, "only an attached worker can use `attach`");
        let (thread, core) = self.take();
        let place = NonNull::from(Box::leak(thread));
        // SAFETY: valid until the thread's end, when `Departure` frees it.
        let thread = unsafe { place.as_ref() };
        thread.in_service.set(true);
        // SAFETY: `thread` is a worker thread of that engine, and the demand is one of the engine's; both are valid
        // until the thread's end.
        unsafe { set_current(thread.shared.id(), thread, &thread.shared.demand_when_idle) };
        thread.acquire_core(core);
        thread.be_raided();
        DEPARTURE.with(|departure| departure.set(Some(Departure(place))));
    }

    fn take(&mut self) -> (Box<WorkerThread<Single>>, Box<core::Core>) {
        let (core, place) = self.core.take().expect("taken once");
        (Box::new(WorkerThread::new(Arc::clone(&self.engine.0), place)), core)
    }
}

per_thread! {
    /// Removes an attached thread from its engine, as a destructor of this thread-local.
    static DEPARTURE: Cell<Option<Departure>> = Cell::new(None);
}

/// Removes an attached thread from its engine when the thread ends. Other threads must not look at its jobs any
/// more.
struct Departure(NonNull<WorkerThread<Single>>);

impl Drop for Departure {
    fn drop(&mut self) {
        job::close();
        clear_current();
        // SAFETY: made from a box by `attach`, and nothing refers to it any more: `job::close` and `clear_current`
        // have removed the pointers to it and to its demands, and the thread's frames have ended.
        let thread = unsafe { Box::from_raw(self.0.as_ptr()) };
        // The core is dropped before the pool whose counters it writes.
        if thread.set_core(None).is_some() {
            record(EventKind::WorkerEnd);
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some((core, _)) = self.core.take() {
            self.engine.0.abandon_worker(core.index);
        }
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("engine", &self.engine).finish_non_exhaustive()
    }
}

/// A closure without a handle. If a thread waits for it, the closure itself notifies that thread.
struct Chore<F>(Option<F>);

impl<F: FnOnce() + Send> DetachedTask for Chore<F> {
    const JOB: bool = true;

    fn name() -> &'static str {
        type_name::<F>()
    }

    fn group(&self) -> usize {
        ROOT
    }

    fn run(&mut self, _: &Arc<PanicHook>) -> End {
        let guard = AbortOnUnwind;
        self.0.take().expect("run once")();
        std::mem::forget(guard);
        End::Completed
    }

    /// Drops the closure, because the thread that should have called it was never started.
    fn refuse(&mut self, _: Refusal) -> u64 {
        let f = self.0.take();
        contain(|| drop(f));
        1
    }

    fn finish(self) {}
}

/// Returns whether this thread belongs to a pool or to an engine.
#[inline]
pub fn is_inside() -> bool {
    job::is_open()
}

/// Runs both closures, possibly in parallel, and returns both results. The argument of each says whether it was
/// moved to another thread. On a thread of no pool, both run on `home`.
///
/// If a closure panics, this panics as well, after both have ended. If both panic, the panic of the first one is
/// passed on.
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

/// Counts unfinished work that its owner waits for. The owner itself is counted first.
pub struct Latch {
    latch: CountLatch,
    end: Mutex<Option<TaskHandle<Vec<()>>>>,
}

// SAFETY: the latch inside is made for sharing.
unsafe impl Sync for Latch {}

impl Latch {
    /// Returns a latch with a count of one, for its owner.
    pub fn new() -> Self {
        let (latch, end) = CountLatch::new(1);
        Self { latch, end: Mutex::new(Some(end)) }
    }

    /// Counts one more. The caller is counted itself.
    pub fn one_more(&self) {
        self.latch.more(1);
    }

    /// Counts one down. The latch may be gone when this returns.
    ///
    /// # Safety
    ///
    /// The latch is alive, and the caller is counted and calls this once.
    pub unsafe fn done(latch: *const Self) {
        // SAFETY: alive, by the caller's promise.
        let latch = NonNull::from(unsafe { &(*latch).latch });
        // SAFETY: the caller's promise.
        unsafe { CountLatch::done(latch, 1) };
    }

    /// Counts the owner down and waits for the others. Is called once. On a thread of an engine it runs other tasks
    /// meanwhile. Its frame is small, because it stays on the stack below them.
    pub fn wait(&self) {
        let end = self.count_owner_down();
        if !end.is_done() && with_worker(|worker| worker.wait_for_job(&end, None)).is_none() {
            wait_outside(&end);
        }
        see(end);
    }

    #[inline(never)]
    fn count_owner_down(&self) -> TaskHandle<Vec<()>> {
        let end = lock(&self.end).take().expect("waits once");
        // SAFETY: alive; the owner was counted from the beginning, and counts itself down here.
        unsafe { Self::done(self) };
        end
    }
}

#[cold]
#[inline(never)]
fn wait_outside(end: &TaskHandle<Vec<()>>) {
    outside::watch_outside(end);
}

/// Takes the outcome of a latch, which makes everything visible that was done before.
#[inline(never)]
fn see(end: TaskHandle<Vec<()>>) {
    end.take().expect("the last one keeps the promise");
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
