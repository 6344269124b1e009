//! How the workers of a pool poll futures.
//!
//! A future is a task of `async-task`, which sees to it that a future that was woken is scheduled once, and polled by one
//! thread at a time. To schedule it is to push a task of the pool, a *run*, which polls it once. A run always goes to the
//! injector, or to the inbox of the worker that the future is near, behind what is queued there. While it is queued, it owns the
//! `Runnable`.
//!
//! A run has a handle, which is left in the future's state (`task/latest.rs`). A thread of the pool that joins the future takes
//! it when it begins to wait, and claims the run if that has not started, as it does with every task. It does so once in a
//! wait. The polls after that take their turns, so that a future which always wakes itself keeps nothing from starting.
//!
//! The outcome is left in the future's [`FutureState`] by the last poll. The run delivers it by a promise, after the run was
//! counted, as other tasks do. A future that is dropped without an outcome refuses the promise.
//!
//! A future that is not queued is known only to its wakers. So its state keeps one, by which a cancellation and the end
//! of the pool reach it. The waker is dropped together with the future, which is always: when it has ended, when it was
//! cancelled, or when the pool has ended, after which to schedule a future is to drop it.

use std::any::{Any, type_name};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use async_task::{Builder, Runnable};

use crate::api::near::count_run;
use crate::api::poll_context::PollContext;
use crate::cancel::{CancelToken, Follower};
use crate::fork::job;
use crate::panic::{PanicHook, contain};
use crate::priority::Priority;
use crate::sync::{Arc, AtomicBool, Mutex, Ordering, lock, thread_local, unsize_arc};
use crate::task::{
    Control, DetachedTask, End, Failure, Latest, Promise, Refusal, Task, TaskHandle,
};
use crate::trace::rename;
use crate::worker::current::AnyPool;
use crate::worker::inbox::Affinity;

/// The handle of a future's promise, which has one result, and its state.
pub(super) type Parts<T> = (TaskHandle<Vec<T>>, Arc<FutureState<T>>);

/// What a future has that was spawned by a builder, or by a task with a control.
pub(super) struct Settings {
    pub(super) control: Arc<Control>,
    pub(super) token: Option<CancelToken>,
    /// The name of its polls in traces, if it is not that of the future's type.
    pub(super) name: Option<&'static str>,
}

/// Spawns a future on that pool.
pub(super) fn start<F>(
    pool: Arc<dyn AnyPool>,
    settings: Option<Settings>,
    future: F,
) -> Parts<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    // User code, which may panic: before there is anything else.
    let context = PollContext::capture(&pool);
    let (promise, handle) = Promise::new();
    let name = settings.as_ref().and_then(|settings| settings.name).unwrap_or(type_name::<F>());
    let token = settings.as_ref().and_then(|settings| settings.token.clone());
    let control = settings.map(|settings| settings.control);
    let priority = control.as_ref().map_or(Priority::Normal, |control| control.priority);
    let near = control.as_ref().and_then(|control| control.near);
    let state = Arc::new(FutureState::new(promise.id(), control, name));
    let canceller = token.is_some().then(|| Arc::new(Canceller(Arc::clone(&state))));
    let body = Body {
        future: Some(future),
        promise: Some(promise),
        is_polled: false,
        state: Arc::clone(&state),
        context,
        _canceller: canceller.clone(),
    };
    let woken = {
        let pool = Arc::clone(&pool);
        let state = Arc::clone(&state);
        move |runnable| {
            // If that worker has retired, another one.
            let near = near.and_then(|worker| pool.near_worker(Affinity::Worker(worker)));
            state.push_run(runnable, |run| pool.push_continued(priority, near, run));
        }
    };
    let builder = Builder::new().metadata(Arc::clone(&state));
    let (runnable, task) = builder.spawn(move |_| body, woken);
    // The promise stands for it.
    task.detach();
    *lock(&state.waker) = Some(runnable.waker());
    // Before the first run is pushed: if the pool has ended, one of the two notices.
    let follower: Arc<dyn Follower> = unsize_arc!(Arc::clone(&state));
    pool.follow_end(&follower);
    if let (Some(token), Some(canceller)) = (token, canceller) {
        // Before the first poll as well, which may cancel the token. If it was cancelled before, the future is not polled.
        let follower: Arc<dyn Follower> = unsize_arc!(canceller);
        token.follow(&follower);
    }
    state.push_run(runnable, |run| {
        match (near, priority) {
            (Some(worker), _) => pool.submit_near(worker, run),
            (None, Priority::Normal) => pool.push_remote_if_open(run),
            (None, other) => pool.submit(other, run, 1),
        }
        Ok(())
    });
    (handle, state)
}

/// Cancels a future when its token is cancelled. The future keeps it.
struct Canceller<T>(Arc<FutureState<T>>);

impl<T: Send> Follower for Canceller<T> {
    fn cancel(&self) {
        self.0.cancel();
    }
}

/// What the future, its runs and its handle share.
pub(super) struct FutureState<T> {
    /// The root of what the polls fork: that of the promise, so that a thread that waits for the future runs parts of it.
    root: usize,
    /// What it has that was spawned by a builder. Its address is the root then.
    control: Option<Arc<Control>>,
    /// The name of its polls in traces.
    name: &'static str,
    /// The latest run, for a thread that waits for the future.
    pub(super) latest: Latest,
    /// Wakes the future. `None` once the future is dropped.
    waker: Mutex<Option<Waker>>,
    /// Is the future to be dropped instead of being polled again?
    ///
    /// Ordering: relaxed. Where a poll must see it, a wake-up or the future's own queue passes it on.
    is_cancelled: AtomicBool,
    /// What the last poll has left, until a run takes it.
    left: Mutex<Option<Box<Left<T>>>>,
}

/// The outcome of a future, and the promise of it.
struct Left<T> {
    promise: Promise<T>,
    outcome: Ended<T>,
}

enum Ended<T> {
    Value(T),
    Panic(Box<dyn Any + Send>),
    Cancelled,
}

impl<T> FutureState<T> {
    fn new(id: usize, control: Option<Arc<Control>>, name: &'static str) -> Self {
        Self {
            root: control.as_deref().map_or(id, job::root_of),
            control,
            name,
            latest: Latest::new(),
            waker: Mutex::new(None),
            is_cancelled: AtomicBool::new(false),
            left: Mutex::new(None),
        }
    }

    /// Has a worker drop the future.
    pub(super) fn cancel(&self) {
        if let Some(control) = &self.control {
            control.cancel();
        }
        self.request_cancel();
        self.wake();
    }

    fn request_cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    /// Wakes the future, if it was not dropped.
    fn wake(&self) {
        // A statement of its own: if the pool has ended, the wake-up drops the future, which takes the lock.
        let waker = lock(&self.waker).clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Notified when the pool has ended.
impl<T: Send> Follower for FutureState<T> {
    fn cancel(&self) {
        self.wake();
    }
}

/// A future on a pool, with what is to be done when it has ended.
struct Body<F: Future<Output: Send>> {
    /// Pinned together with the body. `None` once it has ended.
    future: Option<F>,
    /// `None` once an outcome was left.
    promise: Option<Promise<F::Output>>,
    is_polled: bool,
    state: Arc<FutureState<F::Output>>,
    /// `None` if the pool has no hook for contexts.
    context: Option<PollContext>,
    /// The token knows it only as long as it is kept.
    _canceller: Option<Arc<Canceller<F::Output>>>,
}

impl<F: Future<Output: Send>> Body<F> {
    /// Polls the future, or drops it if it was cancelled. Returns the outcome, if there is one.
    fn advance(
        mut future: Pin<&mut Option<F>>,
        is_cancelled: bool,
        around: Option<&mut PollContext>,
        context: &mut Context<'_>,
    ) -> Option<Ended<F::Output>> {
        if is_cancelled {
            contain(|| future.set(None));
            return Some(Ended::Cancelled);
        }
        let mut poll = || {
            let current = future.as_mut().as_pin_mut().expect("there until it has ended");
            let polled = current.poll(context);
            if polled.is_ready() {
                future.set(None);
            }
            polled
        };
        let polled = catch_unwind(AssertUnwindSafe(|| match around {
            None => poll(),
            Some(around) => around.around(&mut poll),
        }));
        match polled {
            Ok(Poll::Pending) => None,
            Ok(Poll::Ready(value)) => Some(Ended::Value(value)),
            Err(payload) => {
                contain(|| future.set(None));
                Some(Ended::Panic(payload))
            }
        }
    }
}

impl<F: Future<Output: Send>> Future for Body<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        // SAFETY: nothing is moved out of the future below.
        let this = unsafe { self.get_unchecked_mut() };
        this.is_polled = true;
        // SAFETY: the future stays in its place until it is dropped there, because the body is pinned.
        let future = unsafe { Pin::new_unchecked(&mut this.future) };
        let around = this.context.as_mut();
        let ended = Self::advance(future, this.state.is_cancelled(), around, context);
        let Some(outcome) = ended else { return Poll::Pending };
        let promise = this.promise.take().expect("an outcome is left once");
        *lock(&this.state.left) = Some(Box::new(Left { promise, outcome }));
        Poll::Ready(())
    }
}

/// Drops the future, in place, and refuses the promise of it if there is no outcome.
impl<F: Future<Output: Send>> Drop for Body<F> {
    fn drop(&mut self) {
        // SAFETY: the body was pinned, if it was polled, and nothing moves the future before it is dropped here.
        let mut future = unsafe { Pin::new_unchecked(&mut self.future) };
        // A panic that leaves this function would end the process.
        contain(|| future.set(None));
        contain(|| self.context = None);
        // A statement of its own, so that it is dropped without the lock.
        let waker = lock(&self.state.waker).take();
        drop(waker);
        if let Some(promise) = self.promise.take() {
            let was_accepted = self.is_polled || self.state.is_cancelled();
            let refusal = if was_accepted { Refusal::Cancelled } else { Refusal::Stopped };
            promise.fulfil(Err(Failure::Refused(refusal)), None);
        }
    }
}

/// A task of the pool that polls a future once.
struct Run<T: Send> {
    /// There until the run has begun.
    runnable: Option<Runnable<Arc<FutureState<T>>>>,
    /// The outcome, if this was the last run. In a box, so that every run has the same small size.
    outcome: Option<Box<Delivery<T>>>,
}

struct Delivery<T> {
    promise: Promise<T>,
    outcome: Result<Vec<T>, Failure>,
}

impl<T: Send + 'static> FutureState<T> {
    /// Pushes the next run of the future by `push`. From then on a thread that waits for the future can claim it. A run that comes
    /// after the end of the pool, which `push` gives back, is dropped, and nobody can claim it: it is not counted.
    fn push_run(&self, runnable: Runnable<Arc<Self>>, push: impl FnOnce(Task) -> Result<(), Task>) {
        let number = self.latest.next();
        let (task, handle) = Task::starter(Run { runnable: Some(runnable), outcome: None });
        match push(task) {
            Ok(()) => self.latest.leave(number, handle),
            Err(late) => {
                drop(handle);
                drop_late(late);
            }
        }
    }
}

impl<T: Send> DetachedTask for Run<T> {
    fn run(&mut self, hook: &Arc<PanicHook>) -> End {
        let runnable = self.runnable.take().expect("it is run or refused once");
        let state = Arc::clone(runnable.metadata());
        rename(|| state.name);
        // A future that was cancelled is only dropped.
        if let Some(control) = state.control.as_ref().filter(|_| !state.is_cancelled()) {
            count_run(control);
        }
        job::in_root(state.root, || runnable.run());
        // If the future was woken meanwhile, the next run may have left this already, and it is delivered here. Each outcome
        // is taken, and counted, once.
        let Some(left) = lock(&state.left).take() else { return End::Completed };
        let Left { promise, outcome } = *left;
        let (outcome, end) = match outcome {
            Ended::Value(value) => (Ok(vec![value]), End::Completed),
            Ended::Panic(payload) => (Err(Failure::panicked(payload, hook)), End::Panicked),
            Ended::Cancelled => (Err(Failure::Refused(Refusal::Cancelled)), End::Refused),
        };
        self.outcome = Some(Box::new(Delivery { promise, outcome }));
        end
    }

    fn refuse(&mut self, refusal: Refusal) -> u64 {
        if let (Refusal::Cancelled, Some(runnable)) = (refusal, &self.runnable) {
            runnable.metadata().request_cancel();
        }
        1
    }

    fn finish(self) {
        // A run that was refused: the future is dropped, and refuses its promise.
        drop(self.runnable);
        if let Some(delivery) = self.outcome {
            delivery.promise.fulfil(delivery.outcome, None);
        }
    }
}

thread_local! {
    /// Futures that came after the end of their pool, while this thread drops another one.
    static LATE: Cell<Option<Vec<Task>>> = Cell::default();
}

/// Drops a future that came after the end of its pool. That may wake others, which come here as well: they are dropped one after
/// the other, so that a long chain of futures needs no stack.
fn drop_late(task: Task) {
    let mut task = Some(task);
    let is_nested = LATE.try_with(|late| {
        let mut others = late.take();
        if let Some(others) = &mut others {
            others.extend(task.take());
        }
        let is_nested = others.is_some();
        late.set(Some(others.unwrap_or_default()));
        is_nested
    });
    if is_nested == Ok(true) {
        return;
    }
    while let Some(next) = task.take() {
        drop(next);
        let pop = |late: &Cell<Option<Vec<Task>>>| {
            let mut others = late.take();
            let next = others.as_mut().and_then(Vec::pop);
            late.set(others.filter(|_| next.is_some()));
            next
        };
        task = LATE.try_with(pop).ok().flatten();
    }
}
