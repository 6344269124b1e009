//! Two closures, perhaps at once: the fork that costs next to nothing.
//!
//! The second closure stays in the frame of the join, as a private job. If nobody wants it by the time
//! that the first has returned, it is simply called: no atomic operation, no allocation, and the
//! frame's address is all that was written down. If somebody does, the oldest private job becomes a task.

use std::mem::{self, ManuallyDrop, MaybeUninit};

use crate::demand::NO_SEAT;
use crate::error::JoinError;
use crate::global;
use crate::job::{self, Job};
use crate::member::with_host;
use crate::panic::contain;
use crate::sync::{AtomicUsize, Ordering, UnsafeCell};
use crate::task::{Receipt, Task};

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
    let fork = Fork::new(&b);
    // SAFETY: `fork` stays where it is until it has been popped, below or by the guard; joins nest, so
    // what comes later goes first.
    if !unsafe { job::push((&raw const fork).cast()) } {
        // SAFETY: it is not in the chain, and this is the only one to take it.
        return global::join_outside(a, unsafe { fork.take_closure() });
    }
    let guard = OnUnwind(&fork);
    if job::is_demanded() {
        answer();
    }
    let left = a();
    mem::forget(guard);
    // SAFETY: pushed above, and the joins in `a` have ended.
    if unsafe { job::pop((&raw const fork).cast()) } {
        if job::is_demanded() {
            answer();
        }
        // SAFETY: it was not published, and this is the only one to take it.
        let b = unsafe { fork.take_closure() };
        return (left, b());
    }
    // SAFETY: it was published.
    (left, unsafe { fork.settle() })
}

/// Somebody wants a job.
#[cold]
#[inline(never)]
fn answer() {
    with_host(|host| host.answer_demand());
}

/// The frame of a join.
///
/// `repr(C)`, so that the job's address is its own.
#[repr(C)]
struct Fork<B, R> {
    job: Job,
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
    receipt: Receipt<R>,
    /// The seat of the thread that runs it: a hint whom to help.
    thief: AtomicUsize,
}

impl<B, R> Fork<B, R>
where
    B: FnOnce() -> R + Send,
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

    /// See [`Job::new`].
    unsafe fn publish(job: *const Job) -> Option<Task> {
        // SAFETY: a job of this type is the first field of a fork, which is there until it is settled.
        let fork = unsafe { &*job.cast::<Self>() };
        // SAFETY: it was private, and is published once, so nobody has taken it or will.
        Some(unsafe { fork.make_task(job::root_of_oldest()) })
    }

    /// Of the closure, which goes with it.
    ///
    /// # Safety
    ///
    /// The closure is there, and the join waits for the task.
    unsafe fn make_task(&self, root: usize) -> Task {
        // SAFETY: as the caller says.
        let closure = unsafe { self.take_closure() };
        let published = self.published.with_mut(|published| published.cast::<Published<R>>());
        // SAFETY: within the fork.
        let thief = ThiefsPlace(unsafe { &raw const (*published).thief });
        let run = move || {
            // SAFETY: the join waits for this.
            unsafe { thief.sign() };
            closure()
        };
        // SAFETY: what it borrows outlives the join, and the join waits for it.
        let (task, receipt) = unsafe { Task::job(root, run) };
        let thief = AtomicUsize::new(NO_SEAT);
        // SAFETY: of this thread alone.
        unsafe { published.write(Published { receipt, thief }) };
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
    unsafe fn run_all_the_same(&self) {
        // SAFETY: as the caller says.
        if unsafe { job::pop((&raw const *self).cast()) } {
            // SAFETY: it was private, so the closure is there; waited for below.
            let task = unsafe { self.make_task(job::root()) };
            with_host(|host| host.submit_job(task));
        }
        // SAFETY: it was published, there or before.
        let outcome = unsafe { self.wait() };
        contain(|| drop(outcome));
    }

    /// What has become of a job that was published; with its panic, if it has.
    ///
    /// # Safety
    ///
    /// As for [`wait`](Self::wait).
    #[cold]
    #[inline(never)]
    unsafe fn settle(&self) -> R {
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
            with_host(|host| host.wait_for_job(&published.receipt, Some(&published.thief)));
        }
        // SAFETY: likewise, and not used again.
        unsafe { published.read() }.receipt.take()
    }
}

/// Where a thief leaves its number.
struct ThiefsPlace(*const AtomicUsize);

// SAFETY: it points to an atomic.
unsafe impl Send for ThiefsPlace {}

impl ThiefsPlace {
    /// # Safety
    ///
    /// The frame is there.
    unsafe fn sign(&self) {
        // SAFETY: there, as the caller says.
        let place = unsafe { &*self.0 };
        // Ordering: relaxed. A hint.
        place.store(job::seat(), Ordering::Relaxed);
    }
}

/// Sees to the second closure if the first one panics.
struct OnUnwind<'f, B: FnOnce() -> R + Send, R: Send>(&'f Fork<B, R>);

impl<B: FnOnce() -> R + Send, R: Send> Drop for OnUnwind<'_, B, R> {
    // The guard itself needs no place in the frame if this is not a call.
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: pushed before this guard was made, the joins in `a` have ended, and who unwinds does
        // nothing else with the fork.
        unsafe { self.0.run_all_the_same() };
    }
}
