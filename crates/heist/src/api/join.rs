//! Two closures, perhaps at once: the fork that costs next to nothing.
//!
//! The second closure stays in the frame of the join, as a private job. If nobody wants it by the time
//! that the first has returned, it is simply called: no atomic operation, no allocation, and the
//! frame's address is all that was written down. If somebody does, the oldest private job becomes a task.

use std::marker::PhantomData;
use std::mem::{self, ManuallyDrop, MaybeUninit};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;

use crate::api::global;
use crate::error::JoinError;
use crate::fork::job::{self, Job, Jobs};
use crate::panic::contain;
use crate::sync::{AtomicUsize, Ordering, UnsafeCell};
use crate::task::{Task, TaskHandle};
use crate::worker::current::with_worker;

/// Calls both closures, perhaps at once, and returns what they return.
///
/// A join that nobody takes part in costs about as much as two calls, so there is no need for a
/// size below which one does not fork. It uses the pool that this thread belongs to, or else the
/// [global](crate::Pool::global) one.
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
/// Both run, but not necessarily at once: halves that wait for each other may wait for ever. While the second
/// closure runs on another thread, this one runs other parts of the same task on top of the wait. If you hold a
/// lock meanwhile, see [`isolate`](crate::isolate).
///
/// # Panics
///
/// With the panic of a closure, after both have ended. If both panic, the first closure's is passed on.
#[inline]
pub fn join<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    fork(a, ManuallyDrop::new(b))
}

/// How the second closure of a join is called.
pub(crate) trait Call<B> {
    type Result;

    /// Is it on another thread than the first?
    fn call(closure: B, elsewhere: bool) -> Self::Result;
}

/// With nothing.
pub(crate) struct WithoutMigrated;

impl<B: FnOnce() -> R, R> Call<B> for WithoutMigrated {
    type Result = R;

    #[inline(always)]
    fn call(closure: B, _: bool) -> R {
        closure()
    }
}

/// With whether it is on another thread.
pub(crate) struct WithMigrated;

impl<B: FnOnce(bool) -> R, R> Call<B> for WithMigrated {
    type Result = R;

    #[inline(always)]
    fn call(closure: B, elsewhere: bool) -> R {
        closure(elsewhere)
    }
}

/// Not inlined: in the caller's frame its way of unwinding would make every call of the caller's, the
/// leaves of its recursion as well, save all registers.
#[inline(never)]
pub(crate) fn fork<A, B, RA, RB>(a: A, b: ManuallyDrop<B>) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    let fork = Fork::<WithoutMigrated, B, RB>::new(&b);
    // SAFETY: `fork` stays where it is until it has been popped, below or by the guard; joins nest, so
    // what comes later goes first.
    if !unsafe { fork.push() } {
        // SAFETY: it is not in the chain, and this is the only one to take it.
        return global::join_outside(a, unsafe { fork.take_closure() });
    }
    let guard = OnUnwind(&fork);
    let left = a();
    mem::forget(guard);
    // SAFETY: pushed above, and the joins in `a` have ended.
    (left, unsafe { fork.finish() })
}

/// Likewise for closures that are told whether they are on another thread, and on a thread that does not step aside: if
/// the first one panics, that is caught, so that the second does not run in the middle of it. On a thread of no pool,
/// `outside` is called.
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
    // SAFETY: `fork` stays where it is until it has been popped, below; joins nest, so what comes later goes first.
    if !unsafe { fork.push() } {
        // SAFETY: it is not in the chain, and this is the only one to take it.
        return outside(a, unsafe { fork.take_closure() });
    }
    match catch_unwind(AssertUnwindSafe(|| a(false))) {
        // SAFETY: pushed above, and the joins in `a` have ended.
        Ok(left) => (left, unsafe { fork.finish() }),
        Err(payload) => {
            // SAFETY: likewise.
            unsafe { fork.finish_and_discard() };
            resume_unwind(payload)
        }
    }
}

/// Somebody wants a job.
#[cold]
#[inline(never)]
fn answer() {
    with_worker(|worker| worker.answer_demand());
}

/// The frame of a join.
///
/// `repr(C)`, so that the job's address is its own.
#[repr(C)]
struct Fork<C, B, R> {
    job: Job,
    call: PhantomData<C>,
    /// The closure, if it fits: it has come in a register. If not, where the caller has put it: to copy it
    /// would be to wait for what was written just before. There until it is taken, by this thread.
    closure: UnsafeCell<MaybeUninit<*const B>>,
    /// There once the job was published. Touched by this thread alone, but for the thief's number.
    ///
    /// Not in the place of the closure, which would do: the processor, which has left the way in with
    /// what it wrote there, does not expect another to write there before the way out, and all joins
    /// take a tenth longer from then on (measured, on a Zen 4).
    published: UnsafeCell<MaybeUninit<Published<R>>>,
}

/// What a join keeps of a job that was published.
struct Published<R> {
    handle: TaskHandle<R>,
    /// The core of the thread that runs it, a hint whom to help; until there is one, that of the thread of the join.
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
            // SAFETY: of the caller's, who has given it up.
            let closure = unsafe { closure.read() };
            // SAFETY: large enough, and aligned.
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

    /// # Safety
    ///
    /// The closure is there: it was neither published nor taken.
    #[inline(always)]
    unsafe fn take_closure(&self) -> B {
        self.closure.with(|place| {
            let closure = if Self::FITS {
                place.cast::<B>()
            } else {
                // SAFETY: written when the fork was made.
                unsafe { place.cast::<*const B>().read() }
            };
            // SAFETY: there, as the caller says, and not used again.
            unsafe { closure.read() }
        })
    }

    /// Makes the second closure known. Not on a thread of no pool.
    ///
    /// # Safety
    ///
    /// The fork stays where it is until it [is finished](Self::finish), or its guard is dropped; what is pushed later is
    /// finished before.
    #[inline(always)]
    unsafe fn push(&self) -> bool {
        // SAFETY: as the caller says.
        let pushed = unsafe { job::push((&raw const *self).cast()) };
        if pushed && job::is_demanded() {
            answer();
        }
        pushed
    }

    /// What the second closure returns, when the first one has returned.
    ///
    /// # Safety
    ///
    /// It was pushed, and everything that was pushed after it has been popped. This is called once.
    #[inline(always)]
    unsafe fn finish(&self) -> R {
        // SAFETY: as the caller says.
        if unsafe { job::pop((&raw const *self).cast(), answer) } {
            // SAFETY: it was not published, and this is the only one to take it.
            let closure = unsafe { self.take_closure() };
            return C::call(closure, false);
        }
        // SAFETY: it was published, and popped.
        unsafe { self.wait_published() }
    }

    /// Likewise, when the first one has panicked and that was caught: what the second returns is dropped, and its own
    /// panic ends here.
    ///
    /// # Safety
    ///
    /// As for [`finish`](Self::finish).
    #[cold]
    #[inline(never)]
    unsafe fn finish_and_discard(&self) {
        // SAFETY: as the caller says.
        contain(|| drop(unsafe { self.finish() }));
    }

    /// See [`Job::new`].
    unsafe fn publish(job: *const Job, jobs: &Jobs, worker: usize) -> Option<Task> {
        // SAFETY: a job of this type is the first field of a fork, which is there until it is settled.
        let fork = unsafe { &*job.cast::<Self>() };
        // SAFETY: it was private, and is published once, so nobody has taken it or will.
        Some(unsafe { fork.make_task(jobs.root_of_oldest(), worker) })
    }

    /// Of the closure, which goes with it, if there is room; else it stays where the caller has put it. `owner` is the
    /// core of the thread of the join.
    ///
    /// # Safety
    ///
    /// The closure is there, and the join waits for the task.
    unsafe fn make_task(&self, root: usize, owner: usize) -> Task {
        let published = self.published.with_mut(|published| published.cast::<Published<R>>());
        // SAFETY: within the fork.
        let thief = ThiefCell(unsafe { &raw const (*published).thief });
        let (task, handle) = if size_of::<B>() <= Task::ROOM_FOR_JOB - size_of::<ThiefCell>() {
            // SAFETY: as the caller says.
            let closure = unsafe { self.take_closure() };
            // SAFETY: what it borrows outlives the join, and the join waits for it.
            unsafe { Task::job(root, move || C::call(closure, thief.sign())) }
        } else {
            let fork = NonNull::from(self);
            let place = ClosurePtr(fork);
            // SAFETY: likewise, and so does the fork.
            unsafe { Task::job(root, move || C::call(place.take(), thief.sign())) }
        };
        let thief = AtomicUsize::new(owner);
        // SAFETY: of whoever publishes it, until the owner sees that it is not private any more.
        unsafe { published.write(Published { handle, thief }) };
        task
    }

    /// After a panic of the first closure: it may have been started, and whether it runs should not be a
    /// matter of luck. What it returns is dropped, and its own panic ends here. If it has not started, it
    /// is run by another thread, because on this one every guard would take it for what panics.
    ///
    /// # Safety
    ///
    /// It was pushed, and everything that was pushed after it has been popped. This is called once.
    #[cold]
    #[inline(never)]
    unsafe fn run_despite_panic(&self) {
        // SAFETY: as the caller says.
        if unsafe { job::pop((&raw const *self).cast(), || ()) } {
            // SAFETY: it was private, so the closure is there; waited for below.
            let task = unsafe { self.make_task(job::root(), job::worker()) };
            with_worker(|worker| worker.push_job(task));
        } else {
            // SAFETY: not private.
            unsafe { job::move_border_back((&raw const *self).cast()) };
        }
        // SAFETY: it was published, there or before.
        let outcome = unsafe { self.wait() };
        contain(|| drop(outcome));
    }

    /// What has become of a job that was published; with its panic, if it has.
    ///
    /// # Safety
    ///
    /// As for [`wait`](Self::wait); and it has just been popped.
    #[cold]
    #[inline(never)]
    unsafe fn wait_published(&self) -> R {
        // SAFETY: as the caller says.
        unsafe { job::move_border_back((&raw const *self).cast()) };
        // SAFETY: as the caller says.
        match unsafe { self.wait() } {
            Ok(result) => result,
            Err(JoinError::Panicked(panic)) => panic.resume(),
            Err(JoinError::Cancelled | JoinError::Stopped) => {
                unreachable!("a job is never refused")
            }
        }
    }

    /// Waits for a job that was published.
    ///
    /// # Safety
    ///
    /// It was, and this is called once.
    unsafe fn wait(&self) -> Result<R, JoinError> {
        let published = self.published.with(|published| published.cast::<Published<R>>());
        {
            // SAFETY: it was published, as the caller says.
            let published = unsafe { &*published };
            with_worker(|worker| worker.wait_for_job(&published.handle, Some(&published.thief)));
        }
        // SAFETY: likewise, and not used again.
        unsafe { published.read() }.handle.take()
    }
}

/// Where a thief leaves its number.
struct ThiefCell(*const AtomicUsize);

// SAFETY: it points to an atomic.
unsafe impl Send for ThiefCell {}

impl ThiefCell {
    /// Is this another thread than that of the join? Called by the job, once.
    fn sign(&self) -> bool {
        // SAFETY: in the frame of the join, which waits for this.
        let thief = unsafe { &*self.0 };
        let here = job::worker();
        // Ordering: relaxed. Written before the job was published; and for the join it is a hint.
        let owner = thief.load(Ordering::Relaxed);
        thief.store(here, Ordering::Relaxed);
        here != owner
    }
}

/// Where a closure is that is too large for a slot.
struct ClosurePtr<C, B, R>(NonNull<Fork<C, B, R>>);

// SAFETY: what it leads to is the closure, which is `Send`.
unsafe impl<C, B: Send, R> Send for ClosurePtr<C, B, R> {}

impl<C, B, R> ClosurePtr<C, B, R>
where
    C: Call<B, Result = R>,
    B: Send,
    R: Send,
{
    /// Called by the job, once; the join waits for it.
    fn take(self) -> B {
        // SAFETY: the join waits for this.
        let fork = unsafe { self.0.as_ref() };
        // SAFETY: nobody else takes it: the job is run once, and the join does not look at it since it was published.
        unsafe { fork.take_closure() }
    }
}

/// Sees to the second closure if the first one panics.
struct OnUnwind<'f, C: Call<B, Result = R>, B: Send, R: Send>(&'f Fork<C, B, R>);

impl<C: Call<B, Result = R>, B: Send, R: Send> Drop for OnUnwind<'_, C, B, R> {
    // The guard itself needs no place in the frame if this is not a call.
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: pushed before this guard was made, the joins in `a` have ended, and who unwinds does
        // nothing else with the fork.
        unsafe { self.0.run_despite_panic() };
    }
}
