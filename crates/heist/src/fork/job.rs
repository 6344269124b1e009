//! Private jobs: the second halves of a thread's joins, until another worker wants them.
//!
//! The jobs form a chain through the stack frames of the joins, from the oldest to the newest. Linking and unlinking
//! takes only plain loads and stores: no other thread looks at the chain, and a thief that must look pays for both
//! sides (`raid`). The oldest job, which is as a rule the largest, is published first. So the published jobs are a
//! prefix of the chain, and one pointer, the *border*, separates them from the private ones.
//!
//! The fields of a frame that the end of a join reads are not written again between the beginning and the end of
//! that join, by this thread or another: the loads find the values of the stores, as the processor expects.

mod control;
mod part;

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr;

use crate::cluster::NO_PLACE;
use crate::fork::demand::Demand;
use crate::fork::private::PrivateTasks;
use crate::fork::raid::Guard;
use crate::order;
use crate::sync::{AtomicPtr, AtomicUsize, Ordering, const_fn, light_fence, per_thread};
use crate::task::Task;
pub(crate) use control::{
    caught, control, controlled, enter, find_control, has_flag, is_controlled, is_within, isolated,
    isolated_as, nested_in, root_of, stop_point, stopped, under, within,
};
pub(crate) use part::{begin_visit, close, end_visit, leave_place, open, use_demand_of};

/// The second half of a join, in its stack frame.
pub(crate) struct Job {
    /// The next older job, once this one is in the chain. It is kept here rather than returned: every call saves
    /// what the compiler keeps in registers.
    older: Cell<MaybeUninit<*const Job>>,
    /// The next newer job. Uninitialized while this one is the newest.
    newer: Cell<MaybeUninit<*const Job>>,
    publish: Publish,
}

/// Returns the next older job.
///
/// # Safety
///
/// The job is alive, and it was pushed or is the base of a chain.
#[inline(always)]
unsafe fn older(job: *const Job) -> *const Job {
    // SAFETY: alive, by the caller's promise.
    let older = unsafe { (*job).older.get() };
    // SAFETY: set by `push`, or from the beginning for a base.
    unsafe { older.assume_init() }
}

/// Makes a task of a job of that chain, which belongs to the worker with that number. Returns `None` for a mark, which
/// is no job. Requires: the job's frame stays alive during the call, and this is called once for it.
type Publish = unsafe fn(*const Job, &Jobs, usize) -> Option<Task>;

impl Job {
    /// Returns a job that is not in the chain. `publish` is called at most once, before the frame of the job
    /// ends; from then on the job is not private.
    #[inline(always)]
    pub(crate) const fn new(publish: Publish) -> Self {
        Self {
            older: Cell::new(MaybeUninit::uninit()),
            newer: Cell::new(MaybeUninit::uninit()),
            publish,
        }
    }
}

/// A thread's chain of jobs. If thieves may look at it (`raid`), the border moves only under the chain's lock.
pub(crate) struct Jobs {
    /// Null on a thread that belongs to no pool. Written by this thread alone.
    newest: AtomicPtr<Job>,
    /// The newest published job. All older ones are published as well.
    border: AtomicPtr<Job>,
    /// The demand of the worker that this thread is. Null on a thread that belongs to no pool.
    demand: Cell<*const Demand>,
    /// The demand of the place that this thread has as a guest, whether it visits or not; else null.
    place: Cell<*const Demand>,
    /// The root of the newest job: the task that this thread runs, or the innermost `isolate` call. `control` says what
    /// the number means.
    root: Cell<usize>,
    /// The root of the oldest private job. Ordering: relaxed; it moves together with the border.
    border_root: AtomicUsize,
    /// Precedes the oldest job, and counts as published.
    base: Job,
}

per_thread! {
    static JOBS: Jobs = Jobs::new();
}

/// Calls `f` with the jobs of this thread. (`LocalKey::with` is not inlined where a program is built without any link-time
/// optimization, unlike `try_with`.)
#[inline(always)]
fn with_jobs<R>(f: impl FnOnce(&Jobs) -> R) -> R {
    JOBS.try_with(f).unwrap_or_else(|_| unreachable!("it has no destructor"))
}

impl Jobs {
    const_fn! {
        fn new() -> Self {
            Self {
                newest: AtomicPtr::new(ptr::null_mut()),
                border: AtomicPtr::new(ptr::null_mut()),
                demand: Cell::new(ptr::null()),
                place: Cell::new(ptr::null()),
                root: Cell::new(0),
                border_root: AtomicUsize::new(0),
                base: Job {
                    older: Cell::new(MaybeUninit::new(ptr::null())),
                    ..Job::new(base_is_no_job)
                },
            }
        }
    }

    /// Returns the newest job of this thread's own chain.
    #[inline(always)]
    fn newest(&self) -> *const Job {
        // Ordering: relaxed. Written by this thread.
        self.newest.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn border(&self) -> *const Job {
        // Ordering: relaxed. If another thread has moved it, this thread has held the lock since, or will find the
        // announcement of that raid in its demand.
        self.border.load(Ordering::Relaxed)
    }

    fn set_border(&self, border: *const Job) {
        self.border.store(border.cast_mut(), Ordering::Relaxed);
    }

    fn base(&self) -> *const Job {
        &raw const self.base
    }

    #[inline(always)]
    fn demand(&self) -> Option<&Demand> {
        // SAFETY: valid from `open` or `use_demand_of` until `close`, by the promise made to them; else null.
        unsafe { self.demand.get().as_ref() }
    }

    /// Locks the chain, if it can be raided.
    fn guard(&self) -> Option<Guard<'_>> {
        self.demand().and_then(Demand::guard)
    }

    /// Locks the chain, if it can be raided, when a raid that is under way has ended; and removes its announcement.
    fn guard_after_raid(&self) -> Option<Guard<'_>> {
        self.demand().and_then(Demand::guard_after_raid)
    }

    /// Returns the root of a job that is being published.
    pub(crate) fn root_of_oldest(&self) -> usize {
        self.border_root.load(Ordering::Relaxed)
    }

    /// Moves the border past the oldest private job, and returns that job.
    ///
    /// # Safety
    ///
    /// There is a private job, and no other thread moves the border.
    unsafe fn pass_border(&self) -> *const Job {
        // SAFETY: the border is in the chain, or is its base, so it is alive.
        let oldest = unsafe { (*self.border()).newer.get() };
        // SAFETY: the border is not the newest, so it was linked to the next one.
        let oldest = unsafe { oldest.assume_init() };
        self.set_border(oldest);
        oldest
    }

    /// For another thread that holds the lock of the chain: returns whether there seem to be private jobs.
    pub(crate) fn seem_private(&self) -> bool {
        let newest = self.newest.load(order::newest_read()).cast_const();
        let border = self.border();
        // SAFETY: it was pushed or is the base, and its frame stays alive until its owner has held the lock.
        let before = unsafe { older(border) };
        // The owner takes the border itself out of the chain before it gets the lock to move the border.
        !ptr::eq(newest, border) && !ptr::eq(newest, before)
    }

    /// For another thread: makes a task of the oldest private job.
    ///
    /// # Safety
    ///
    /// The caller holds the lock of the chain and has announced the raid. `worker` is the number of the worker whose
    /// thread these jobs belong to.
    pub(crate) unsafe fn publish_of_another(&self, worker: usize) -> Option<Task> {
        while self.seem_private() {
            // SAFETY: after the announcement, what seems private is; under the lock no other thread moves the border.
            let oldest = unsafe { self.pass_border() };
            // SAFETY: alive: it was in the chain, and its owner waits for the lock before the frame ends.
            let publish = unsafe { (*oldest).publish };
            // SAFETY: alive for the same reason; and it is not private any more, so this is not called again for it.
            if let Some(task) = unsafe { publish(oldest, self, worker) } {
                return Some(task);
            }
        }
        None
    }
}

unsafe fn base_is_no_job(_: *const Job, _: &Jobs, _: usize) -> Option<Task> {
    unreachable!("it counts as published")
}

/// Returns whether this thread is part of a pool.
#[inline(always)]
pub(crate) fn is_open() -> bool {
    with_jobs(|jobs| !jobs.newest().is_null())
}

/// Returns whether jobs of this thread are wanted. Only for a thread of a pool.
#[inline(always)]
pub(crate) fn is_demanded() -> bool {
    let demand = with_jobs(|jobs| jobs.demand.get());
    // SAFETY: valid, as in `Jobs::demand`, and not null: only a thread that is part of a pool calls this.
    unsafe { &*demand }.is_raised()
}

/// Calls `f` with the private tasks of this thread and its demand, if it is a thread of a pool that keeps tasks private.
#[inline(always)]
pub(crate) fn with_tasks<R>(f: impl FnOnce(&PrivateTasks, &Demand) -> Option<R>) -> Option<R> {
    with_jobs(|jobs| {
        let demand = jobs.demand()?;
        f(demand.tasks.as_deref()?, demand)
    })
}

/// Returns the number of the worker that this thread is, or [`NO_PLACE`].
pub(crate) fn worker() -> usize {
    with_jobs(|jobs| jobs.demand().map_or(NO_PLACE, |demand| demand.worker))
}

/// Adds a job to the chain as the newest, and returns `true`; the caller then checks [`is_demanded`]. On a thread of
/// no pool it has no effect and returns `false`.
///
/// # Safety
///
/// The job is not moved until it is popped, and jobs are popped in the opposite order of these calls.
#[inline(always)]
pub(crate) unsafe fn push(job: *const Job) -> bool {
    with_jobs(|jobs| {
        let older = jobs.newest();
        if older.is_null() {
            return false;
        }
        // SAFETY: in the chain, so it is alive.
        unsafe { (*older).newer.set(MaybeUninit::new(job)) };
        // SAFETY: the caller's job, which is alive.
        unsafe { (*job).older.set(MaybeUninit::new(older)) };
        jobs.newest.store(job.cast_mut(), order::newest_publish());
        light_fence(order::CHAIN);
        true
    })
}

/// Takes the newest job out of the chain, and returns whether it was still private. If it was, and jobs are wanted,
/// `answer` is called. If it was not, [`move_border_back`] must be called next.
///
/// # Safety
///
/// The job was pushed by this thread, and everything that was pushed after it has been popped.
#[inline(always)]
pub(crate) unsafe fn pop(job: *const Job, answer: fn()) -> bool {
    // SAFETY: the caller's promise.
    let older = unsafe { older(job) };
    // It is the newest job. Reading the pointer again saves a register for its address.
    let newest = with_jobs(Jobs::newest);
    debug_assert!(ptr::eq(newest, job), "joins nest");
    let published = with_jobs(|jobs| ptr::eq(newest, jobs.border()));
    with_jobs(|jobs| jobs.newest.store(older.cast_mut(), Ordering::Relaxed));
    light_fence(order::CHAIN);
    if published {
        return false;
    }
    // A raid that has moved the border since then has left its announcement in the demand.
    if is_demanded() { is_private(job, answer) } else { true }
}

/// Returns whether a job that was taken out of the chain was still private, when there may be a raid.
#[cold]
#[inline(never)]
fn is_private(job: *const Job, answer: fn()) -> bool {
    let private = with_jobs(|jobs| {
        if !jobs.demand().is_some_and(Demand::is_raided) {
            // No raid was announced before the job was taken out of the chain, and a later one does not find it there.
            return true;
        }
        let _guard = jobs.guard_after_raid();
        !ptr::eq(job, jobs.border())
    });
    if private {
        answer();
    }
    private
}

/// Moves the border to the next older job, after a published job was taken out of the chain: that one was the border.
///
/// # Safety
///
/// [`pop`] has returned `false` for this job.
pub(crate) unsafe fn move_border_back(job: *const Job) {
    // SAFETY: the caller's job, which was pushed.
    let older = unsafe { older(job) };
    with_jobs(|jobs| {
        let _guard = jobs.guard();
        jobs.set_border(older);
    });
}

/// Waits until a raid on this thread, if there is one, has ended, and removes its announcement.
pub(crate) fn forget_raid() {
    with_jobs(|jobs| {
        if jobs.demand().is_some_and(Demand::is_raided) {
            drop(jobs.guard_after_raid());
        }
    });
}

/// Returns whether this thread has private jobs.
pub(crate) fn any() -> bool {
    with_jobs(|jobs| !ptr::eq(jobs.newest(), jobs.border()))
}

/// Makes a task of this thread's oldest private job.
pub(crate) fn publish_oldest() -> Option<Task> {
    with_jobs(|jobs| {
        let _guard = jobs.guard();
        while !ptr::eq(jobs.newest(), jobs.border()) {
            // SAFETY: there is a private job, and no other thread moves the border: only under the lock, if at all.
            let oldest = unsafe { jobs.pass_border() };
            // SAFETY: in the chain, so it is alive.
            let publish = unsafe { (*oldest).publish };
            // SAFETY: alive, of this thread's chain, and not private any more, so this is not called again for it.
            if let Some(task) = unsafe { publish(oldest, jobs, worker()) } {
                return Some(task);
            }
        }
        None
    })
}

/// Returns the root of what this thread runs: the address of a task that is running, or of an isolated part of one.
/// While a join waits, its thread runs jobs of the same root and nothing else.
#[inline(always)]
pub(crate) fn root() -> usize {
    with_jobs(|jobs| jobs.root.get())
}

/// Sets the root of the code on this thread, which has no jobs, and returns the one before.
fn replace(root: usize) -> usize {
    with_jobs(|jobs| jobs.root.replace(root))
}

/// Sets the root of what is forked from now on. Nothing runs on this thread yet.
#[inline(always)]
pub(crate) fn begin(root: usize) {
    with_jobs(|jobs| {
        jobs.root.set(root);
        jobs.border_root.store(root, Ordering::Relaxed);
    });
}

/// Ends what [`begin`] has begun. If that was a part of a task with a control, the control may be gone.
#[inline(always)]
pub(crate) fn end(root: usize) {
    if has_flag(root) {
        begin(0);
    }
}

/// Calls `f`, with this root for what it forks. The root outlives `f` and what `f` forks. `f` does not panic.
#[inline(always)]
pub(crate) fn in_root<R>(root: usize, f: impl FnOnce() -> R) -> R {
    let is_first = with_jobs(|jobs| ptr::eq(jobs.newest(), jobs.base()));
    if is_first {
        // A task may be running on this thread although it has no job: one that has not forked.
        let outer = with_jobs(|jobs| (jobs.root.replace(root), jobs.root_of_oldest()));
        with_jobs(|jobs| jobs.border_root.store(root, Ordering::Relaxed));
        let result = f();
        with_jobs(|jobs| {
            jobs.root.set(outer.0);
            jobs.border_root.store(outer.1, Ordering::Relaxed);
        });
        result
    } else if self::root() == root {
        f()
    } else {
        in_another_root(root, f)
    }
}

#[cold]
#[inline(never)]
fn in_another_root<R>(root: usize, f: impl FnOnce() -> R) -> R {
    let mark = Mark { job: Job::new(pass_mark), root, outer: self::root() };
    // SAFETY: the mark is not moved until the guard pops it, and joins nest.
    let open = unsafe { push((&raw const mark).cast()) };
    debug_assert!(open, "only a thread of a pool has jobs");
    // If jobs are wanted now, the next fork will see it.
    with_jobs(|jobs| jobs.root.set(root));
    let _pop = PopMarkOnDrop(&mark);
    f()
}

/// Separates jobs of different roots in the chain.
#[repr(C)]
struct Mark {
    job: Job,
    /// The root of the newer jobs.
    root: usize,
    /// The root of the older jobs.
    outer: usize,
}

/// The [`Publish`] function of a mark: the next jobs have another root.
unsafe fn pass_mark(job: *const Job, jobs: &Jobs, _: usize) -> Option<Task> {
    // SAFETY: alive, by the caller's promise, and the first field of a mark: only marks have this function.
    let root = unsafe { (*job.cast::<Mark>()).root };
    jobs.border_root.store(root, Ordering::Relaxed);
    None
}

/// Takes a mark out of the chain, also on unwinding.
struct PopMarkOnDrop<'m>(&'m Mark);

impl Drop for PopMarkOnDrop<'_> {
    fn drop(&mut self) {
        // SAFETY: pushed before this guard was made, and the joins since then have ended.
        let private = unsafe { pop((&raw const *self.0).cast(), || ()) };
        with_jobs(|jobs| jobs.root.set(self.0.outer));
        if !private {
            // SAFETY: `pop` has returned `false`.
            unsafe { move_border_back((&raw const *self.0).cast()) };
            with_jobs(|jobs| jobs.border_root.store(self.0.outer, Ordering::Relaxed));
        }
    }
}
