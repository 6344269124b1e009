//! `join`: two closures, perhaps in parallel, for about the cost of two calls.
//!
//! The second closure stays in the stack frame of the join, as a private job. If no worker wants it by the time
//! that the first one has returned, it is simply called: no atomic operation, no allocation; the join has only stored
//! the address of its frame. If a worker wants jobs, the oldest private job becomes a task.

use std::marker::PhantomData;
use std::mem::{self, ManuallyDrop, MaybeUninit};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;

use crate::api::call::{Call, OfLoop, WithMigrated, WithoutMigrated};
use crate::api::global;
use crate::error::JoinError;
use crate::fork::job::{self, Job, Jobs};
use crate::panic::contain;
use crate::sync::{AtomicUsize, Ordering, UnsafeCell};
use crate::task::{Task, TaskHandle};
use crate::worker::current::with_worker;

/// Runs two closures, possibly in parallel, and returns both results.
///
/// A join whose second half is not stolen costs about as much as two calls, so that no sequential cutoff is
/// needed. It uses the pool that the calling thread belongs to, or else the [global](crate::Pool::global) one. In the latter
/// case as well the first closure runs on the calling thread.
///
/// ```
/// fn sum(numbers: &[u64]) -> u64 {
///     match numbers {
///         [] => 0,
///         [one] => *one,
///         many => {
///             let (left, right) = many.split_at(many.len() / 2);
///             let (left, right) = heist::join(|| sum(left), || sum(right));
///             left + right
///         }
///     }
/// }
/// assert_eq!(sum(&[1, 2, 3, 4, 5]), 15);
/// ```
///
/// Both closures run, but not necessarily in parallel: halves that wait for each other may deadlock. While the second
/// closure runs on another thread, the calling thread runs other parts of the same task on top of the wait. If it
/// holds a lock meanwhile, see [`isolate`](crate::isolate).
///
/// # Panics
///
/// Panics with the panic of a closure, after both have ended. If both panic, the panic of the first one is passed on.
#[inline]
pub fn join<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    fork::<WithoutMigrated, _, _, _, _>(a, ManuallyDrop::new(b))
}

/// Runs both halves of a loop, as [`join`] does.
#[inline]
pub(crate) fn fork_loop<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    fork::<OfLoop, _, _, _, _>(a, ManuallyDrop::new(b))
}

/// Runs both closures.
///
/// Not inlined: in the caller's frame its landing pad would make every call of the caller, including the leaves of
/// its recursion, save all registers.
#[inline(never)]
pub(crate) fn fork<C, A, B, RA, RB>(a: A, b: ManuallyDrop<B>) -> (RA, RB)
where
    C: Call<B, Result = RB>,
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    let fork = Fork::<C, B, RB>::new(&b);
    // SAFETY: `fork` is not moved until it has been popped, below or by the guard. Joins nest, so what is pushed later
    // is popped first.
    if !unsafe { fork.push() } {
        // SAFETY: the fork is not in the chain, and the closure is taken only here.
        return global::join_outside(a, unsafe { fork.take_closure() });
    }
    let guard = OnUnwind(&fork);
    let left = a();
    mem::forget(guard);
    // SAFETY: pushed above, and the joins in `a` have ended.
    (left, unsafe { fork.finish() })
}

/// Runs both closures, with the argument `migrated`, on a thread that keeps its core while it waits. If the first
/// closure panics, the panic is caught, so that the second one does not run in the middle of unwinding. On a thread of
/// no pool, `outside` is called instead.
#[inline(never)]
pub(crate) fn fork_with_migrated<A, B, RA, RB>(
    a: A,
    b: ManuallyDrop<B>,
    outside: impl FnOnce(A, B) -> (RA, RB),
) -> (RA, RB)
where
    A: FnOnce(bool) -> RA + Send,
    B: FnOnce(bool) -> RB + Send,
    RA: Send,
    RB: Send,
{
    let fork = Fork::<WithMigrated, B, RB>::new(&b);
    // SAFETY: `fork` is not moved until it has been popped, below. Joins nest, so what is pushed later is popped
    // first.
    if !unsafe { fork.push() } {
        // SAFETY: the fork is not in the chain, and the closure is taken only here.
        return outside(a, unsafe { fork.take_closure() });
    }
    match catch_unwind(AssertUnwindSafe(|| a(false))) {
        // SAFETY: pushed above, and the joins in `a` have ended.
        Ok(left) => (left, unsafe { fork.finish() }),
        Err(payload) => {
            // SAFETY: pushed above, and the joins in `a` have ended.
            unsafe { fork.finish_and_discard() };
            resume_unwind(payload)
        }
    }
}

/// The part of a join's stack frame that other code knows.
///
/// `repr(C)`, so that the address of the job is the address of the fork.
#[repr(C)]
struct Fork<C, B, R> {
    job: Job,
    call: PhantomData<C>,
    /// The second closure, if it fits into a word: then it came in a register. If not, the address where the caller
    /// has put it: copying it would wait for stores that are still under way. Initialized until it is taken, by
    /// this thread.
    closure: UnsafeCell<MaybeUninit<*const B>>,
    /// Initialized once the job was published. Touched by this thread alone, except for the thief's number.
    ///
    /// It could share the place of the closure, but must not: the processor forwards what the beginning of the join
    /// stored there to its end. If another store comes in between, all joins take a tenth longer for a while
    /// (measured, on a Zen 4).
    published: UnsafeCell<MaybeUninit<Published<R>>>,
}

/// What a join keeps of its published job.
struct Published<R> {
    handle: TaskHandle<R>,
    /// The number of the worker that runs the job, a hint which worker to help. Before that, the number of the
    /// join's worker.
    thief: AtomicUsize,
}

impl<C, B, R> Fork<C, B, R>
where
    C: Call<B, Result = R>,
    B: Send,
    R: Send,
{
    #[inline(always)]
    fn new(closure: &ManuallyDrop<B>) -> Self {
        let mut place = MaybeUninit::<*const B>::uninit();
        let closure = &raw const **closure;
        if Self::FITS {
            // SAFETY: the caller's closure, which the caller does not use again.
            let closure = unsafe { closure.read() };
            // SAFETY: the place is large enough and aligned, by `FITS`.
            unsafe { place.as_mut_ptr().cast::<B>().write(closure) };
        } else {
            place.write(closure);
        }
        Self {
            job: Job::new(Self::publish),
            call: PhantomData,
            closure: UnsafeCell::new(place),
            published: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    const FITS: bool =
        size_of::<B>() <= size_of::<*const B>() && align_of::<B>() <= align_of::<*const B>();

    /// Is the closure moved into the task that is made of the job? A constant, so that only one of the two kinds of tasks is
    /// compiled.
    const FITS_TASK: bool = size_of::<B>() <= Task::ROOM_FOR_JOB - size_of::<ThiefCell>();

    /// Moves the closure out of the fork.
    ///
    /// # Safety
    ///
    /// The closure was not taken before, and only the caller may take it: the join if the job was not published, else
    /// the code that publishes the job, or the task that was made of it.
    #[inline(always)]
    unsafe fn take_closure(&self) -> B {
        self.closure.with(|place| {
            let closure = if Self::FITS {
                place.cast::<B>()
            } else {
                // SAFETY: written when the fork was made.
                unsafe { place.cast::<*const B>().read() }
            };
            // SAFETY: initialized, because it was not taken before, and not used again, because only the caller
            // takes it.
            unsafe { closure.read() }
        })
    }

    /// Adds the second closure to the thread's chain of jobs. Returns `false`, without effect, on a thread of no pool.
    ///
    /// # Safety
    ///
    /// The fork is not moved until it [is finished](Self::finish) or its guard is dropped. What is pushed later is
    /// finished before.
    #[inline(always)]
    unsafe fn push(&self) -> bool {
        // SAFETY: the caller's promise.
        let pushed = unsafe { job::push((&raw const *self).cast()) };
        if pushed && job::is_demanded() {
            C::offer();
        }
        pushed
    }

    /// Runs the second closure or waits for it, after the first one has returned, and returns its result.
    ///
    /// # Safety
    ///
    /// The fork was pushed, and everything that was pushed after it has been popped. This is called once.
    #[inline(always)]
    unsafe fn finish(&self) -> R {
        // SAFETY: the caller's promise.
        if unsafe { job::pop((&raw const *self).cast(), C::offer_others) } {
            // SAFETY: the job was not published, and the closure is taken only here.
            let closure = unsafe { self.take_closure() };
            return C::call(closure, false);
        }
        // SAFETY: `pop` has returned `false`, so the job was published and has just been popped. This is called once.
        unsafe { self.wait_published() }
    }

    /// Runs the second closure or waits for it, after the first one has panicked and the panic was caught. The result
    /// is dropped, and a panic of the second closure ends here.
    ///
    /// # Safety
    ///
    /// As for [`finish`](Self::finish).
    #[cold]
    #[inline(never)]
    unsafe fn finish_and_discard(&self) {
        // SAFETY: the caller's promise.
        contain(|| drop(unsafe { self.finish() }));
    }

    /// Makes a task of the job: see [`Job::new`].
    ///
    /// # Safety
    ///
    /// The job is that of a fork of this type which was pushed and whose join has not ended, and is published once.
    unsafe fn publish(job: *const Job, jobs: &Jobs, worker: usize) -> Option<Task> {
        // SAFETY: the job is the first field of a fork, which is alive until the join has waited for the task.
        let fork = unsafe { &*job.cast::<Self>() };
        // SAFETY: the job was private and is published once, so the closure was not taken, and only the task that is
        // made here may take it. The join sees that its job was published, and waits for the task.
        Some(unsafe { fork.make_task(jobs.root_of_oldest(), worker) })
    }

    /// Makes a task of the closure. The closure is moved into the task if there is room; otherwise it stays where the
    /// caller has put it. `owner` is the number of the join's worker.
    ///
    /// # Safety
    ///
    /// The closure was not taken, only the caller may take it, and the join waits for the task.
    unsafe fn make_task(&self, root: usize, owner: usize) -> Task {
        let published = self.published.with_mut(|published| published.cast::<Published<R>>());
        // SAFETY: a field of the fork, which is alive. Only its address is taken.
        let thief = ThiefCell(unsafe { &raw const (*published).thief });
        let (task, handle) = if Self::FITS_TASK {
            // SAFETY: not taken before, and only the caller may take it, by the caller's promise.
            let closure = unsafe { self.take_closure() };
            // SAFETY: what the closure and its result borrow outlives the join, and the join waits for the task.
            unsafe { Task::job(root, C::KIND, move || C::call(closure, thief.sign())) }
        } else {
            let fork = NonNull::from(self);
            let place = ClosurePtr(fork);
            // SAFETY: what the closure and its result borrow outlives the join. The join waits for the task, so the
            // fork itself is valid until then.
            unsafe { Task::job(root, C::KIND, move || C::call(place.take(), thief.sign())) }
        };
        let thief = AtomicUsize::new(owner);
        // SAFETY: the publishing thread has it to itself until the owner sees that the job is not private any more.
        unsafe { published.write(Published { handle, thief }) };
        task
    }

    /// Makes sure that the second closure runs although the first one has panicked. It may have started already, and
    /// whether it runs should not be a matter of luck. Its result is dropped, and its own panic ends here. If it has
    /// not started, another thread runs it: on this one `std::thread::panicking` is true, and guards would take it
    /// for the code that panics.
    ///
    /// # Safety
    ///
    /// The fork was pushed, and everything that was pushed after it has been popped. This is called once.
    #[cold]
    #[inline(never)]
    unsafe fn run_despite_panic(&self) {
        // SAFETY: the caller's promise.
        if unsafe { job::pop((&raw const *self).cast(), || ()) } {
            // SAFETY: the job was private to the end, so the closure was not taken, and only the task that is made
            // here may take it. The task is waited for below.
            let task = unsafe { self.make_task(job::root(), job::worker()) };
            with_worker(|worker| worker.push_job(task));
        } else {
            // SAFETY: `pop` has returned `false`.
            unsafe { job::move_border_back((&raw const *self).cast()) };
        }
        // SAFETY: the job was published, here or before, and this is the only call.
        let outcome = unsafe { self.wait() };
        contain(|| drop(outcome));
    }

    /// Waits for the published job and returns its result, or panics as it did.
    ///
    /// # Safety
    ///
    /// The job was published and has just been popped. This is called once.
    #[cold]
    #[inline(never)]
    unsafe fn wait_published(&self) -> R {
        // SAFETY: `pop` has returned `false`, by the caller's promise.
        unsafe { job::move_border_back((&raw const *self).cast()) };
        // SAFETY: the caller's promise.
        match unsafe { self.wait() } {
            Ok(result) => result,
            Err(JoinError::Panicked(panic)) => panic.resume(),
            Err(JoinError::Cancelled | JoinError::Stopped) => {
                unreachable!("a job is never refused")
            }
        }
    }

    /// Waits for the published job and returns its outcome.
    ///
    /// # Safety
    ///
    /// The job was published, and this is called once.
    unsafe fn wait(&self) -> Result<R, JoinError> {
        let published = self.published.with(|published| published.cast::<Published<R>>());
        {
            // SAFETY: initialized when the job was published.
            let published = unsafe { &*published };
            with_worker(|worker| worker.wait_for_job(&published.handle, Some(&published.thief)));
        }
        // SAFETY: initialized when the job was published, and not used again.
        unsafe { published.read() }.handle.take()
    }
}

/// Where the thread that runs a job stores its worker's number, for the join.
struct ThiefCell(*const AtomicUsize);

// SAFETY: it points to an atomic, which any thread may access.
unsafe impl Send for ThiefCell {}

impl ThiefCell {
    /// Stores the number of the worker that runs the job, and returns whether that is another worker than the join's.
    /// Called by the job, once.
    fn sign(&self) -> bool {
        // SAFETY: in the frame of the join, which waits for the job. Initialized before the job got into a queue.
        let thief = unsafe { &*self.0 };
        let here = job::worker();
        // Ordering: relaxed. It was written before the job was published, and for the join it is a hint.
        let owner = thief.load(Ordering::Relaxed);
        thief.store(here, Ordering::Relaxed);
        here != owner
    }
}

/// The address of a closure that is too large for a slot.
struct ClosurePtr<C, B, R>(NonNull<Fork<C, B, R>>);

// SAFETY: only the closure is reached through it, and that is `Send`.
unsafe impl<C, B: Send, R> Send for ClosurePtr<C, B, R> {}

impl<C, B, R> ClosurePtr<C, B, R>
where
    C: Call<B, Result = R>,
    B: Send,
    R: Send,
{
    /// Moves the closure out. Called by the job, once; the join waits for it.
    fn take(self) -> B {
        // SAFETY: the join waits for the job, so the fork is alive.
        let fork = unsafe { self.0.as_ref() };
        // SAFETY: `make_task` has left the closure in its place for this task, which runs once. The join does not
        // take the closure of a job that was published.
        unsafe { fork.take_closure() }
    }
}

/// Makes sure that the second closure runs if the first one panics.
struct OnUnwind<'f, C: Call<B, Result = R>, B: Send, R: Send>(&'f Fork<C, B, R>);

impl<C: Call<B, Result = R>, B: Send, R: Send> Drop for OnUnwind<'_, C, B, R> {
    // Inlined, because the guard then needs no place in the frame.
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: pushed before this guard was made; the joins in `a` have ended; and the unwinding code does
        // nothing else with the fork.
        unsafe { self.0.run_despite_panic() };
    }
}
