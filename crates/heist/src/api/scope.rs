//! Many closures that borrow, and an end that waits for all of them.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;

use crate::api::global;
use crate::fork::job;
use crate::order;
use crate::panic::{PanicHook, contain};
use crate::sync::{Arc, AtomicUsize, Mutex, Ordering, UnsafeCell, lock};
use crate::task::{Awaited, DetachedTask, End, Promise, Refusal, Task, TaskHandle};
use crate::worker::current::{AnyPool, current_pool, with_worker};

/// Runs a closure that may spawn others which borrow, and waits for all of them.
///
/// It uses the pool that this thread belongs to, or else the [global](crate::Pool::global) one. Where two
/// closures are enough, [`join`](crate::join) costs less.
///
/// ```
/// let mut numbers = [1, 2, 3, 4];
/// heist::scope(|scope| {
///     for number in &mut numbers {
///         scope.spawn(move |_| *number *= 10);
///     }
/// });
/// assert_eq!(numbers, [10, 20, 30, 40]);
/// ```
///
/// # Panics
///
/// With the panic of the closure, or else with one of those that it has spawned, after all of them have
/// ended.
pub fn scope<'scope, F, R>(f: F) -> R
where
    F: FnOnce(&Scope<'scope>) -> R + Send,
    R: Send,
{
    if job::is_open() { open(f) } else { global::scope_outside(f) }
}

/// On a thread of a pool.
pub(crate) fn open<'scope, F, R>(f: F) -> R
where
    F: FnOnce(&Scope<'scope>) -> R,
{
    let (scope, end) = Scope::new();
    let result = catch_unwind(AssertUnwindSafe(|| f(&scope)));
    // SAFETY: counted from the beginning.
    unsafe { State::done(NonNull::from(&scope.state)) };
    if !end.is_done() {
        with_worker(|worker| worker.wait_for_job(&end, None));
    }
    // To take it is to see what was done before it.
    end.take().expect("the last one keeps the promise");
    let panic = lock(&scope.panic).take();
    match (result, panic) {
        (Ok(value), None) => value,
        (Ok(value), Some(payload)) => {
            contain(|| drop(value));
            resume_unwind(payload)
        }
        (Err(payload), other) => {
            contain(|| drop(other));
            resume_unwind(payload)
        }
    }
}

/// Where closures that borrow are spawned: see [`scope`].
///
/// ```
/// let total = std::sync::atomic::AtomicU32::new(0);
/// heist::scope(|scope| {
///     scope.spawn(|scope| {
///         total.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
///         scope.spawn(|_| {
///             total.fetch_add(2, std::sync::atomic::Ordering::Relaxed);
///         });
///     });
/// });
/// assert_eq!(total.into_inner(), 3);
/// ```
pub struct Scope<'scope> {
    state: State,
    /// The first of what was spawned.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    /// The pool, for spawns from other threads. The scope lies in the frame of one of its tasks.
    any_pool: NonNull<dyn AnyPool>,
    pool: usize,
    /// See [`job::root`].
    root: usize,
    /// Neither longer nor shorter: what is spawned may borrow for that long.
    lifetime: PhantomData<fn(&'scope ()) -> &'scope ()>,
}

// SAFETY: the state is made for it, the intake is `Sync`, and what is spawned is `Send`.
unsafe impl Sync for Scope<'_> {}

pub(crate) struct State {
    /// The closure of the scope, and what it has spawned, less what has ended.
    left: AtomicUsize,
    /// Taken by the last to end.
    end: UnsafeCell<Option<Promise<()>>>,
}

impl<'scope> Scope<'scope> {
    /// On a thread of a pool: a scope, and its end.
    fn new() -> (Self, TaskHandle<Vec<()>>) {
        let (state, end) = State::new();
        let any_pool = with_worker(|worker| worker.any_pool()).expect("on a thread of a pool");
        let (pool, root) = (current_pool(), job::root());
        let panic = Mutex::new(None);
        (Self { state, panic, any_pool, pool, root, lifetime: PhantomData }, end)
    }

    /// Runs a closure on the pool of the scope, at the latest before the scope ends. It may borrow
    /// whatever outlives the scope, and may itself spawn.
    ///
    /// ```
    /// let text = String::from("borrowed");
    /// let mut length = 0;
    /// heist::scope(|scope| scope.spawn(|_| length = text.len()));
    /// assert_eq!(length, 8);
    /// ```
    pub fn spawn<F>(&self, f: F)
    where
        F: FnOnce(&Scope<'scope>) + Send + 'scope,
    {
        self.state.one_more();
        let part = Part { scope: NonNull::from(self), f: Some(f) };
        // SAFETY: what it borrows outlives the scope, whose end waits for it, and so does the scope.
        let job = unsafe { Task::detached_borrowing(part) };
        if current_pool() == self.pool {
            let mut job = Some(job);
            with_worker(|worker| worker.push_job(job.take().expect("once")));
            debug_assert!(job.is_none(), "a thread of the pool that runs something has a worker");
        } else {
            // SAFETY: the scope lies in a frame of a task of that pool.
            unsafe { self.any_pool.as_ref() }.push_job(job);
        }
    }
}

// SAFETY: the counter is made for it, and only the last one to count down touches the promise, which is `Send`.
unsafe impl Sync for State {}

impl State {
    /// Of a scope whose closure is yet to run, and its end.
    pub(crate) fn new() -> (Self, TaskHandle<Vec<()>>) {
        let (promise, end) = Promise::new();
        (Self { left: AtomicUsize::new(1), end: UnsafeCell::new(Some(promise)) }, end)
    }

    pub(crate) fn one_more(&self) {
        // Ordering: relaxed. Whoever spawns has not ended, so it does not go from zero.
        self.left.fetch_add(1, Ordering::Relaxed);
    }

    /// One has ended. The last of all says so; then the scope may be gone before this returns: hence a
    /// pointer, and no `&self`.
    ///
    /// # Safety
    ///
    /// The caller is one of those that are counted, and says this once.
    pub(crate) unsafe fn done(state: NonNull<Self>) {
        // SAFETY: there while the caller is counted.
        let left = unsafe { &(*state.as_ptr()).left };
        if left.fetch_sub(1, order::scope_done()) != 1 {
            return;
        }
        // SAFETY: there until the promise is kept.
        let end = unsafe { &(*state.as_ptr()).end };
        let promise = end.with_mut(|end| {
            // SAFETY: the last one has it to itself.
            unsafe { (*end).take() }
        });
        promise.expect("there is one last").keep(Ok(Vec::new()), None);
    }
}

impl fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Ordering: relaxed. A number to look at.
        let left = self.state.left.load(Ordering::Relaxed);
        f.debug_struct("Scope").field("left", &left).finish_non_exhaustive()
    }
}

/// A closure that was spawned in a scope.
struct Part<'scope, F> {
    scope: NonNull<Scope<'scope>>,
    f: Option<F>,
}

// SAFETY: the closure is `Send`, and the scope `Sync`.
unsafe impl<F: Send> Send for Part<'_, F> {}

impl<'scope, F> DetachedTask for Part<'scope, F>
where
    F: FnOnce(&Scope<'scope>) + Send + 'scope,
{
    const JOB: bool = true;

    fn root(&self) -> usize {
        // SAFETY: the scope waits for this.
        unsafe { self.scope.as_ref() }.root
    }

    fn run(&mut self, _: &Arc<PanicHook>) -> End {
        // SAFETY: the scope waits for this.
        let scope = unsafe { self.scope.as_ref() };
        let f = self.f.take().expect("run once");
        match catch_unwind(AssertUnwindSafe(|| f(scope))) {
            Ok(()) => End::Completed,
            Err(payload) => {
                let mut first = lock(&scope.panic);
                let other = if first.is_none() { first.replace(payload) } else { Some(payload) };
                drop(first);
                contain(|| drop(other));
                End::Panicked
            }
        }
    }

    fn refuse(&mut self, _: Refusal) -> u64 {
        let f = self.f.take();
        contain(|| drop(f));
        1
    }

    fn finish(self) {
        // SAFETY: the scope waits for this.
        let state = NonNull::from(unsafe { &self.scope.as_ref().state });
        // SAFETY: counted by `spawn`.
        unsafe { State::done(state) };
    }
}
