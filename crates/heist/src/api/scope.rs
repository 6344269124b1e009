//! `scope`: many closures that may borrow, all of which have ended when the scope returns.

use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;

use crate::api::global;
use crate::api::panics::Panics;
use crate::api::task::TaskBuilder;
use crate::fork::latch::CountLatch;
use crate::fork::{job, purse};
use crate::panic::{PanicHook, Stopped, contain};
use crate::sync::{Arc, Mutex, Padded, lock};
use crate::task::{Awaited, DetachedTask, End, Refusal, Reminder, Task, TaskHandle};
use crate::worker::current::{AnyPool, current_pool, with_worker};

/// Runs a closure that may spawn others which borrow, and waits for all of them.
///
/// It uses the pool that the calling thread belongs to, or else the [global](crate::Pool::global) one. In both cases the
/// closure runs on the calling thread, which then runs spawned closures as well until all of them have ended. For two closures, [`join`](crate::join) costs less.
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
/// Panics with the panic of the closure, or else with that of one of the spawned closures, after all of them have
/// ended. A panic that [`ScopedJoinHandle::join`](crate::ScopedJoinHandle::join) has returned is not passed on.
pub fn scope<'scope, F, R>(f: F) -> R
where
    F: FnOnce(&Scope<'scope>) -> R + Send,
    R: Send,
{
    job::enter(|| if job::is_open() { open(f) } else { global::scope_outside(f) })
}

/// Runs a scope on a thread of a pool.
pub(crate) fn open<'scope, F, R>(f: F) -> R
where
    F: FnOnce(&Scope<'scope>) -> R,
{
    // Credit of the scope around this one, if there is one (C5).
    let _outer = purse::set_aside();
    let (scope, end) = Scope::new();
    // SAFETY: the latch was made with a count of `ADVANCE`. One is for the closure of the scope.
    unsafe { purse::fill(&scope.latch, purse::ADVANCE - 1) };
    let result = catch_unwind(AssertUnwindSafe(|| f(&scope)));
    // The closure of the scope was counted from the beginning, and is counted down only here, with what is left in the
    // purse (C6).
    let count = 1 + purse::take_all(&scope.latch);
    // SAFETY: the latch is alive: the scope lies in this frame until its end was taken. The count is this thread's.
    unsafe { CountLatch::done(NonNull::from(&*scope.latch), count) };
    if !end.is_done() {
        with_worker(|worker| worker.wait_for_job(&end, None));
    }
    // Taking the outcome makes everything visible that the parts have done.
    end.take().expect("the last one keeps the promise");
    let panics = lock(&scope.panics).take();
    let panic = panics.and_then(|panics| panics.into_first());
    match (result, panic) {
        (Ok(value), None) => value,
        (Ok(value), Some(payload)) => {
            contain(|| drop(value));
            resume_unwind(payload)
        }
        // A panic says more than that the closure has ended early.
        (Err(payload), Some(other)) if payload.is::<Stopped>() && !other.is::<Stopped>() => {
            resume_unwind(other)
        }
        (Err(payload), other) => {
            contain(|| drop(other));
            resume_unwind(payload)
        }
    }
}

/// A scope in which closures that borrow are spawned: see [`scope`].
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
    /// Counts the parts. Padded, because threads that have nothing more to do write to it, and all others read the rest.
    pub(super) latch: Padded<CountLatch>,
    /// Wakes the thread that waits for the end when there is one more part.
    reminder: Reminder,
    /// The panics of spawned closures. In a box, because there are none as a rule.
    panics: Mutex<Option<Box<Panics>>>,
    /// The pool, for spawns from other threads. It is valid because the scope lies in a frame of one of the pool's
    /// worker threads, which keeps the pool alive.
    any_pool: NonNull<dyn AnyPool>,
    pub(super) pool: usize,
    /// The root of the scope's parts: see [`job::root`].
    pub(super) root: usize,
    /// The place of the thread that has opened the scope.
    place: usize,
    /// Invariant: what is spawned may borrow for exactly this lifetime.
    lifetime: PhantomData<fn(&'scope ()) -> &'scope ()>,
}

// SAFETY: the latch, the mutex and `AnyPool` are `Sync`, and what is spawned is `Send`.
unsafe impl Sync for Scope<'_> {}

impl<'scope> Scope<'scope> {
    /// Returns a scope on a thread of a pool, and the handle to its end. Inlined, so that the scope is made in its place.
    #[inline(always)]
    fn new() -> (Self, TaskHandle<Vec<()>>) {
        let (latch, end) = CountLatch::new(purse::ADVANCE);
        let (reminder, latch) = (latch.reminder(), Padded(latch));
        let any_pool = with_worker(|worker| worker.any_pool()).expect("on a thread of a pool");
        let (pool, root, place) = (current_pool(), job::root(), job::worker());
        let panics = Mutex::new(None);
        (Self { latch, reminder, panics, any_pool, pool, root, place, lifetime: PhantomData }, end)
    }

    /// Spawns a closure on the pool of the scope. It has ended before the scope returns. It may borrow whatever
    /// outlives the scope, and may spawn further closures.
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
        let is_inside = self.count_part();
        let part = Part { scope: NonNull::from(self), f: Some(f) };
        // SAFETY: what the closure borrows outlives the scope, and the scope, which the part also refers to, waits
        // for it.
        let job = unsafe { Task::detached_borrowing(part) };
        if is_inside {
            let mut job = Some(job);
            with_worker(|worker| {
                let job = job.take().expect("once");
                if job::worker() == self.place {
                    worker.push_part(job)
                } else {
                    worker.push_job(job)
                }
            });
            debug_assert!(
                job.is_none(),
                "a thread of the pool that runs something is a worker thread"
            );
        } else {
            // SAFETY: the scope lies in a frame of a worker thread of that pool, which keeps the pool alive.
            unsafe { self.any_pool.as_ref() }.push_job(job);
        }
        // SAFETY: the promise is not fulfilled before the caller has ended, who is counted, or runs while a counted
        // part has not ended.
        unsafe { self.reminder.send() };
    }

    /// Returns a builder for a part of this scope, with a priority, a name, or a token that cancels it: see
    /// [`TaskBuilder::spawn_in`].
    ///
    /// ```
    /// use heist::CancelToken;
    ///
    /// let (text, token) = (String::from("borrowed"), CancelToken::new());
    /// let length = heist::scope(|scope| {
    ///     let part = scope.task().name("measure").cancel_on(&token).spawn_in(scope, |_| text.len());
    ///     part.join().unwrap()
    /// });
    /// assert_eq!(length, 8);
    /// ```
    pub fn task(&self) -> TaskBuilder<'_> {
        // SAFETY: the scope lies in a frame of a worker thread of that pool, which keeps the pool alive.
        TaskBuilder::new(unsafe { self.any_pool.as_ref() })
    }

    /// Counts a part that the calling thread is about to push. Returns whether that thread is one of the pool's.
    #[inline(always)]
    pub(super) fn count_part(&self) -> bool {
        let is_inside = current_pool() == self.pool;
        if is_inside {
            // A part of the scope, or of a fork in it, has the root of the scope.
            purse::spend(&self.latch, || job::root() == self.root);
        } else {
            // A thread that is none of the pool's keeps no credit: nothing would have it return that.
            self.latch.more(1);
        }
        is_inside
    }

    /// Pushes a part that was counted, to where every thread of the pool can take it: the worker that it is near first, if any.
    pub(super) fn push_shared(&self, part: Task, is_inside: bool, near: Option<usize>) {
        let mut part = Some(part);
        if let Some(worker) = near {
            // SAFETY: the scope lies in a frame of a worker thread of that pool, which keeps the pool alive.
            let pool = unsafe { self.any_pool.as_ref() };
            part = part.and_then(|part| pool.push_part_near(worker, part).err());
        }
        if let Some(part) = part {
            self.push_anywhere(part, is_inside);
        }
        // SAFETY: the promise is not fulfilled before the caller has ended, who is counted, or runs while a counted
        // part has not ended.
        unsafe { self.reminder.send() };
    }

    fn push_anywhere(&self, part: Task, is_inside: bool) {
        let mut part = Some(part);
        let mut next = || part.take().expect("once");
        if !is_inside || with_worker(|worker| worker.push_job(next())).is_none() {
            // SAFETY: the scope lies in a frame of a worker thread of that pool, which keeps the pool alive.
            unsafe { self.any_pool.as_ref() }.push_job(next());
        }
    }

    /// Calls `f` with the panics of parts.
    pub(super) fn with_panics<R>(&self, f: impl FnOnce(&mut Panics) -> R) -> R {
        f(lock(&self.panics).get_or_insert_default())
    }
}

impl fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").finish_non_exhaustive()
    }
}

/// A closure that was spawned in a scope.
struct Part<'scope, F> {
    scope: NonNull<Scope<'scope>>,
    f: Option<F>,
}

// SAFETY: the closure is `Send`, and the scope is `Sync`.
unsafe impl<F: Send> Send for Part<'_, F> {}

impl<'scope, F> DetachedTask for Part<'scope, F>
where
    F: FnOnce(&Scope<'scope>) + Send + 'scope,
{
    const JOB: bool = true;
    const CREDITED: bool = true;

    fn name() -> &'static str {
        type_name::<F>()
    }

    fn group(&self) -> usize {
        // SAFETY: the scope waits for this part.
        unsafe { self.scope.as_ref() }.root
    }

    fn run(&mut self, _: &Arc<PanicHook>) -> End {
        // SAFETY: the scope waits for this part.
        let scope = unsafe { self.scope.as_ref() };
        purse::flush_unless(&scope.latch);
        let f = self.f.take().expect("run once");
        if let Some(payload) = job::stopped() {
            contain(|| drop(f));
            let other = scope.with_panics(|panics| panics.keep(payload));
            contain(|| drop(other));
            return End::Refused;
        }
        match catch_unwind(AssertUnwindSafe(|| f(scope))) {
            Ok(()) => End::Completed,
            Err(payload) => {
                let end = End::unwound(&*payload);
                let other = scope.with_panics(|panics| panics.keep(payload));
                contain(|| drop(other));
                end
            }
        }
    }

    fn refuse(&mut self, _: Refusal) -> u64 {
        // The closure stays for `finish`, which tells by that whether the part has run.
        1
    }

    fn finish(self) {
        // SAFETY: the scope waits for this part.
        let latch = NonNull::from(unsafe { &*self.scope.as_ref().latch });
        if let Some(refused) = self.f {
            contain(|| drop(refused));
            // SAFETY: the latch is alive, because the scope waits for this part. The part was counted by `spawn`, and
            // `finish` is called once. A part is refused where its task is dropped, which may be anywhere: no credit is
            // kept there.
            unsafe { CountLatch::done(latch, 1) };
        } else {
            // SAFETY: alive and counted, for the same reasons. The thread that has run the part calls `flush`.
            unsafe { purse::keep(latch) };
        }
    }
}
