//! Jobs that a thread keeps to itself: the second halves of its joins, until somebody wants them.
//!
//! A chain through the stack frames of the joins, from the oldest to the newest; nobody else reads it,
//! so it takes no atomic operation. The oldest, which is the largest as a rule, is published first: so the
//! published ones are a prefix of the chain, and a border between them and the private ones says
//! all. What the way out reads of a frame is not written again after the way in, by this thread or
//! another: the loads find what the stores have left, as the processor expects.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr;

use crate::demand::{Demand, NO_SEAT};
use crate::sync::per_thread;
use crate::task::Task;

/// The second half of a join, in its stack frame.
pub(crate) struct Job {
    /// The one before. Kept here rather than returned: what the compiler keeps in registers, every
    /// call saves.
    older: Cell<*const Job>,
    /// The next one; not there while this is the newest.
    newer: Cell<MaybeUninit<*const Job>>,
    publish: unsafe fn(*const Job) -> Option<Task>,
}

impl Job {
    /// `publish` makes a task of it, or of nothing. It is called at most once, by the thread that the job belongs to,
    /// while the job is in the chain; from then on it is not private.
    #[inline(always)]
    pub(crate) const fn new(publish: unsafe fn(*const Self) -> Option<Task>) -> Self {
        Self { older: Cell::new(ptr::null()), newer: Cell::new(MaybeUninit::uninit()), publish }
    }
}

/// What a thread has of its own for forks.
pub(crate) struct Jobs {
    /// Null on a thread that belongs to no pool.
    newest: Cell<*const Job>,
    /// The newest that was published. All that are older were published as well.
    border: Cell<*const Job>,
    /// Of the seat that the thread has. Null on a thread that belongs to no pool.
    demand: Cell<*const Demand>,
    /// What the newest descends from: the task that this thread runs, or what it has isolated.
    root: Cell<usize>,
    /// What the oldest private one descends from.
    border_root: Cell<usize>,
    /// Before the oldest; it counts as published.
    base: Job,
}

per_thread! {
    static JOBS: Jobs = Jobs::new();
}

impl Jobs {
    const fn new() -> Self {
        Self {
            newest: Cell::new(ptr::null()),
            border: Cell::new(ptr::null()),
            demand: Cell::new(ptr::null()),
            root: Cell::new(0),
            border_root: Cell::new(0),
            base: Job::new(base_is_no_job),
        }
    }
}

unsafe fn base_is_no_job(_: *const Job) -> Option<Task> {
    unreachable!("it counts as published")
}

/// This thread belongs to a pool from now on.
///
/// # Safety
///
/// The demand is there until [`close`], or until another takes its place.
pub(crate) unsafe fn open(demand: &Demand) {
    JOBS.with(|jobs| {
        jobs.newest.set(&raw const jobs.base);
        jobs.border.set(&raw const jobs.base);
        jobs.demand.set(demand);
    });
}

/// This thread has another seat, or none.
///
/// # Safety
///
/// As for [`open`].
pub(crate) unsafe fn turn_to(demand: &Demand) {
    JOBS.with(|jobs| jobs.demand.set(demand));
}

/// This thread belongs to no pool any more.
pub(crate) fn close() {
    JOBS.with(|jobs| {
        debug_assert!(ptr::eq(jobs.newest.get(), &raw const jobs.base), "a join has not ended");
        jobs.newest.set(ptr::null());
        jobs.demand.set(ptr::null());
    });
}

/// Does this thread belong to a pool?
#[inline(always)]
pub(crate) fn is_open() -> bool {
    JOBS.with(|jobs| !jobs.newest.get().is_null())
}

/// Does somebody want jobs of this thread?
#[inline(always)]
pub(crate) fn is_demanded() -> bool {
    let demand = JOBS.with(|jobs| jobs.demand.get());
    // SAFETY: there since `open`; only a thread that belongs to a pool asks.
    unsafe { &*demand }.is_raised()
}

/// Of this thread's seat, if it has one.
pub(crate) fn seat() -> usize {
    let demand = JOBS.with(|jobs| jobs.demand.get());
    // SAFETY: there since `open`, or null.
    unsafe { demand.as_ref() }.map_or(NO_SEAT, |demand| demand.seat)
}

/// Adds the newest, unless this thread belongs to no pool.
///
/// # Safety
///
/// The job stays where it is until it is popped, and jobs are popped in the opposite order of these calls.
#[inline(always)]
pub(crate) unsafe fn push(job: *const Job) -> bool {
    JOBS.with(|jobs| {
        let older = jobs.newest.get();
        if older.is_null() {
            return false;
        }
        // SAFETY: in the chain, so it is there.
        unsafe { (*older).newer.set(MaybeUninit::new(job)) };
        // SAFETY: the caller's.
        unsafe { (*job).older.set(older) };
        jobs.newest.set(job);
        true
    })
}

/// Takes the newest out of the chain. Was it private to the end?
///
/// # Safety
///
/// It was pushed by this thread, and everything that was pushed after it has been popped.
#[inline(always)]
pub(crate) unsafe fn pop(job: *const Job) -> bool {
    JOBS.with(|jobs| {
        debug_assert!(ptr::eq(jobs.newest.get(), job), "joins nest");
        // It is the newest; so its address, which would take a register, need not be asked for.
        let private = !ptr::eq(jobs.newest.get(), jobs.border.get());
        // SAFETY: the caller's.
        let older = unsafe { (*job).older.get() };
        jobs.newest.set(older);
        if !private {
            jobs.border.set(older);
        }
        private
    })
}

/// Has this thread private jobs?
pub(crate) fn any() -> bool {
    JOBS.with(|jobs| !ptr::eq(jobs.newest.get(), jobs.border.get()))
}

/// Makes a task of the oldest that is private.
pub(crate) fn publish_oldest() -> Option<Task> {
    while any() {
        let oldest = JOBS.with(|jobs| {
            // SAFETY: in the chain, or its base, so it is there.
            let oldest = unsafe { (*jobs.border.get()).newer.get() };
            // SAFETY: it is not the newest, so it was linked to the next one.
            let oldest = unsafe { oldest.assume_init() };
            jobs.border.set(oldest);
            oldest
        });
        // SAFETY: in the chain, so it is there.
        let publish = unsafe { (*oldest).publish };
        // SAFETY: of this thread, in the chain, and not private any more, so never again.
        if let Some(task) = unsafe { publish(oldest) } {
            return Some(task);
        }
    }
    None
}

/// What descends from the same is run while one waits for it, and nothing else: it is the address of a
/// task that is running, or of an isolated part of one.
pub(crate) fn root() -> usize {
    JOBS.with(|jobs| jobs.root.get())
}

/// What a job that is being published descends from.
pub(crate) fn root_of_oldest() -> usize {
    JOBS.with(|jobs| jobs.border_root.get())
}

/// What is forked from now on descends from `root`. Nothing is running on this thread.
#[inline(always)]
pub(crate) fn begin(root: usize) {
    JOBS.with(|jobs| {
        jobs.root.set(root);
        jobs.border_root.set(root);
    });
}

/// While `f` runs, what is forked descends from `root`. It is there for longer than `f` and what that forks.
/// `f` does not panic.
#[inline(always)]
pub(crate) fn in_root<R>(root: usize, f: impl FnOnce() -> R) -> R {
    let is_first = JOBS.with(|jobs| ptr::eq(jobs.newest.get(), &raw const jobs.base));
    if is_first {
        // Something may be running all the same: a task that has not forked.
        let outer = JOBS.with(|jobs| (jobs.root.replace(root), jobs.border_root.replace(root)));
        let result = f();
        JOBS.with(|jobs| {
            jobs.root.set(outer.0);
            jobs.border_root.set(outer.1);
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
    let mark = Mark { job: Job::new(pass), root, outer: self::root() };
    // SAFETY: the mark stays where it is until the guard pops it, and joins nest.
    let open = unsafe { push((&raw const mark).cast()) };
    debug_assert!(open, "only a thread of a pool has jobs");
    JOBS.with(|jobs| jobs.root.set(root));
    let _leave = Leave(&mark);
    f()
}

/// Calls `f`, and what is forked inside descends from that call. On a thread of no pool it is just called.
pub(crate) fn isolated<R>(f: impl FnOnce() -> R) -> R {
    let place = 0_u8;
    if is_open() { in_another_root((&raw const place).addr(), f) } else { f() }
}

/// In the chain between jobs that descend from different roots.
#[repr(C)]
struct Mark {
    job: Job,
    root: usize,
    /// Of what is older.
    outer: usize,
}

/// See [`Job::new`]: what comes next descends from another root.
unsafe fn pass(job: *const Job) -> Option<Task> {
    // SAFETY: the job of a mark is its first field.
    let root = unsafe { (*job.cast::<Mark>()).root };
    JOBS.with(|jobs| jobs.border_root.set(root));
    None
}

/// Takes a mark out of the chain.
struct Leave<'m>(&'m Mark);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        // SAFETY: pushed before, and the joins since then have ended.
        let private = unsafe { pop((&raw const *self.0).cast()) };
        JOBS.with(|jobs| {
            jobs.root.set(self.0.outer);
            if !private {
                jobs.border_root.set(self.0.outer);
            }
        });
    }
}
