//! Parts of a scope that return values, and their handles.
//!
//! Such a part is a task that a handle can claim, as that which starts a batch is, and its result goes to a promise. When the
//! part has ended, the promise is kept first, and the scope is told afterwards: if there is no handle any more, the result is
//! dropped at that moment, and what it borrows is still valid then. A handle that is leaked keeps nothing alive and nobody
//! waiting.
//!
//! A part with a handle is found where other parts of the scope are, by those who wait for the scope, but it is the root of
//! what it forks, as a task is. So a wait within it runs no other part of the scope on top of it: that part might wait for
//! this one, by its handle, and would wait for ever. `worker/README.md` has the argument.

use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;

use crate::api::handle::JoinHandle;
use crate::api::near::count_run;
use crate::api::panics::PartPanic;
use crate::api::scope::Scope;
use crate::api::task::{TaskBuilder, current_priority};
use crate::error::JoinError;
use crate::fork::job;
use crate::fork::latch::CountLatch;
use crate::panic::{Panic, PanicHook, contain};
use crate::sync::Arc;
use crate::task::{Control, DetachedTask, End, Failure, Promise, Refusal, Task};
use crate::trace::rename;

/// What a part with a handle leaves there.
type Ended<T> = Result<T, Arc<PartPanic>>;

impl<'scope> Scope<'scope> {
    /// Spawns a closure on the pool of the scope, as [`spawn`](Self::spawn) does, and returns a handle to its result.
    ///
    /// The closure has ended before the scope returns, whether the handle is joined, kept or dropped. If it panics, its
    /// panic is returned by [`ScopedJoinHandle::join`]. If nobody has joined the handle when the scope ends, the scope
    /// panics, as it does for [`spawn`](Self::spawn).
    ///
    /// ```
    /// let numbers = [1, 2, 3, 4];
    /// let sum = heist::scope(|scope| {
    ///     let (left, right) = numbers.split_at(2);
    ///     let left = scope.spawn_handle(|_| left.iter().sum::<i32>());
    ///     let right = scope.spawn_handle(|_| right.iter().sum::<i32>());
    ///     left.join().unwrap() + right.join().unwrap()
    /// });
    /// assert_eq!(sum, 10);
    /// ```
    ///
    /// For two closures, [`join`](crate::join()) costs less, and for a loop [`parallel::map`](crate::parallel::map) does.
    pub fn spawn_handle<F, T>(&self, f: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce(&Scope<'scope>) -> T + Send + 'scope,
        T: Send + 'scope,
    {
        self.spawn_part(None, None, f)
    }

    /// Spawns a closure with that control and that name in traces, if they are not `None`, and returns a handle to its result.
    pub(super) fn spawn_part<F, T>(
        &self,
        control: Option<Control>,
        name: Option<&'static str>,
        f: F,
    ) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce(&Scope<'scope>) -> T + Send + 'scope,
        T: Send + 'scope,
    {
        let (promise, handle) = Promise::new();
        let near = control.as_ref().and_then(|control| control.near);
        let work = Box::new(Work { outer: self.root, control, name, f: Some(f), ended: None });
        let root = work.root(&promise);
        let is_inside = self.count_part();
        let part = HandledPart { scope: NonNull::from(self), promise, work };
        // SAFETY: what the closure borrows, and what its result borrows, outlives the scope. The scope, to which the part
        // refers as well, waits for it: the part was counted.
        let (job, claim) = unsafe { Task::claimable_part(part) };
        self.push_shared(job, is_inside, near);
        let handle = JoinHandle::of_parts(handle, root, claim, self.pool);
        ScopedJoinHandle { handle, scope: PhantomData }
    }
}

impl TaskBuilder<'_> {
    /// Spawns a closure in a scope, as [`Scope::spawn_handle`] does, with the settings of the builder. It runs on the pool of
    /// the scope, whichever pool the builder is for.
    ///
    /// * If the token is cancelled before the closure has started, the closure is dropped, and the handle returns
    ///   [`JoinError::Cancelled`]. The scope goes on. While the closure runs, [`is_cancelled`](crate::is_cancelled) asks the token
    ///   and whatever else can cancel the code around the scope.
    /// * The priority is that of what the closure spawns. The closure itself is a part of something that has started, and parts
    ///   come before tasks of any priority.
    /// * [`near`](Self::near) and [`near_key`](Self::near_key) count workers of the pool of the scope, and have an effect whatever
    ///   the priority is: the closure is in the inbox of that worker, and a thread that waits for the scope takes it from there
    ///   when it has found no other part for some microseconds. A loop over the same data is best a scope whose parts have keys.
    /// * [`Builder::max_queued`](crate::Builder::max_queued) does not count parts.
    ///
    /// ```
    /// use heist::{CancelToken, JoinError};
    ///
    /// let token = CancelToken::new();
    /// token.cancel();
    /// let mut numbers = vec![3, 1, 2];
    /// let sorted = heist::scope(|scope| {
    ///     scope.task().cancel_on(&token).spawn_in(scope, |_| numbers.sort()).join()
    /// });
    /// assert!(matches!(sorted, Err(JoinError::Cancelled)));
    /// assert_eq!(numbers, [3, 1, 2]);
    /// ```
    pub fn spawn_in<'scope, F, T>(self, scope: &Scope<'scope>, f: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce(&Scope<'scope>) -> T + Send + 'scope,
        T: Send + 'scope,
    {
        let priority = self.priority.unwrap_or_else(current_priority);
        // That of the scope, which need not be the pool of the builder.
        let near = self.near.and_then(|near| scope.task().pool.near_worker(near));
        let control = Control::of_part(priority, self.token, scope.root).near(near);
        scope.spawn_part(Some(control), self.name, f)
    }
}

/// A handle to the result of a closure that was spawned in a scope: see [`Scope::spawn_handle`].
///
/// Dropping the handle detaches the closure, for which the scope waits all the same. A handle may also be passed to another
/// part of the scope, or be kept until the scope has ended.
///
/// ```
/// let text = String::from("borrowed");
/// let handle = heist::scope(|scope| scope.spawn_handle(|_| text.len()));
/// assert!(handle.is_finished());
/// assert_eq!(handle.join().unwrap(), 8);
/// ```
pub struct ScopedJoinHandle<'scope, T> {
    handle: JoinHandle<Vec<Ended<T>>>,
    scope: PhantomData<&'scope ()>,
}

impl<T> ScopedJoinHandle<'_, T> {
    /// Waits for the closure and returns its result.
    ///
    /// On a worker of the pool, a closure that has not started runs right there. If it is running on another worker,
    /// another thread goes on with this worker's other tasks meanwhile.
    ///
    /// ```
    /// let lengths = heist::scope(|scope| {
    ///     let words = ["a", "few", "words"];
    ///     let handles = words.map(|word| scope.spawn_handle(move |_| word.len()));
    ///     handles.map(|handle| handle.join().unwrap())
    /// });
    /// assert_eq!(lengths, [1, 3, 5]);
    ///
    /// // The panic was handled, so the scope does not panic.
    /// let message = heist::scope(|scope| {
    ///     match scope.spawn_handle(|_| panic!("handled")).join() {
    ///         Err(heist::JoinError::Panicked(panic)) => panic.message().to_owned(),
    ///         _ => unreachable!(),
    ///     }
    /// });
    /// assert_eq!(message, "handled");
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`JoinError::Panicked`] if the closure panicked, and [`JoinError::Cancelled`] if it has ended early in a
    /// [`CancelToken::run`](crate::CancelToken::run) that the caller is not a part of; a caller that is ends as well. If the scope has ended before this call, it has panicked with
    /// that panic, and only the message is left.
    pub fn join(self) -> Result<T, JoinError> {
        let ended = self.handle.join()?.pop().expect("a part leaves one result");
        ended.map_err(|panic| match panic.handle().into_stopped() {
            Err(panic) => JoinError::Panicked(panic),
            // The part has ended early, and so does the caller if it is a part of the same call.
            Ok(stopped) if job::is_within(&stopped) => resume_unwind(stopped),
            Ok(_) => JoinError::Cancelled,
        })
    }

    /// Returns whether the closure has ended, so that [`join`](Self::join) would not wait.
    ///
    /// ```
    /// let handle = heist::scope(|scope| scope.spawn_handle(|_| ()));
    /// assert!(handle.is_finished());
    /// ```
    pub fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }
}

impl<T> fmt::Debug for ScopedJoinHandle<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedJoinHandle")
            .field("finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}

/// A closure that was spawned in a scope, and the promise of its result.
struct HandledPart<'scope, F, T> {
    scope: NonNull<Scope<'scope>>,
    promise: Promise<Ended<T>>,
    /// In a box, so that the part has the same size whatever its closure is; and so that it stays in its place until the part
    /// has ended, because its root may be the address of a word in there.
    work: Box<Work<F, T>>,
}

/// The closure of a part, and then what it has left; and the root of its scope.
struct Work<F, T> {
    outer: usize,
    /// The part's own control, if it has one.
    control: Option<Control>,
    /// Its name in traces, if it is not that of the closure's type.
    name: Option<&'static str>,
    /// `None` once it runs.
    f: Option<F>,
    /// What the closure has left. Nothing before it has run, and if it does not run.
    ended: Option<Ended<T>>,
}

impl<F, T: Send> Work<F, T> {
    /// Returns whether the part's own token was cancelled.
    fn is_cancelled(&self) -> bool {
        self.control.as_ref().is_some_and(Control::is_token_cancelled)
    }

    /// Returns the root of what the closure forks: a number that is that of no other root while the part is there. It is that
    /// of the part's own control. If there is none, and the scope is a part of a task with a control, it is the root that is
    /// nested in that of the scope.
    fn root(&self, promise: &Promise<Ended<T>>) -> usize {
        match &self.control {
            Some(control) => job::root_of(control),
            None if job::has_flag(self.outer) => job::nested_in(&self.outer),
            None => promise.id(),
        }
    }
}

// SAFETY: the closure and its result are `Send`, and the scope is `Sync`.
unsafe impl<F: Send, T: Send> Send for HandledPart<'_, F, T> {}

impl<'scope, F, T> DetachedTask for HandledPart<'scope, F, T>
where
    F: FnOnce(&Scope<'scope>) -> T + Send + 'scope,
    T: Send + 'scope,
{
    const JOB: bool = true;

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
        if self.work.is_cancelled() {
            // `finish` drops the closure.
            return End::Refused;
        }
        if let Some(name) = self.work.name {
            rename(|| name);
        }
        if let Some(control) = &self.work.control {
            count_run(control);
        }
        let f = self.work.f.take().expect("a closure is run once");
        // Who waits for the handle runs parts of this root meanwhile.
        let root = self.work.root(&self.promise);
        let run = || match job::stopped() {
            None => catch_unwind(AssertUnwindSafe(|| f(scope))),
            Some(payload) => {
                contain(|| drop(f));
                Err(payload)
            }
        };
        let (ended, end) = match job::in_root(root, run) {
            Ok(value) => (Ok(value), End::Completed),
            Err(payload) => {
                let end = End::unwound(&*payload);
                let panic = Panic::new(payload);
                (Err(scope.with_panics(|panics| panics.share(panic))), end)
            }
        };
        self.work.ended = Some(ended);
        end
    }

    fn refuse(&mut self, _: Refusal) -> u64 {
        // The closure stays for `finish`.
        1
    }

    fn finish(self) {
        let Self { scope, promise, mut work } = self;
        match work.ended.take() {
            // If there is no handle, the result is dropped here.
            Some(ended) => promise.fulfil(Ok(vec![ended]), None),
            None => {
                contain(|| drop(work.f.take()));
                if work.is_cancelled() {
                    promise.fulfil(Err(Failure::Refused(Refusal::Cancelled)), None);
                } else {
                    drop(promise);
                }
            }
        }
        drop(work);
        // SAFETY: the scope waits for this part.
        let latch = NonNull::from(unsafe { &*scope.as_ref().latch });
        // SAFETY: the latch is alive, because the scope waits for this part. The part was counted by `spawn_handle`, and
        // `finish` is called once. No credit is kept: a part that was claimed ends after its thread has returned credit.
        unsafe { CountLatch::done(latch, 1) };
    }
}
