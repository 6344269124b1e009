//! Jobs that a thread keeps to itself: the second halves of its joins, until somebody wants them.
//!
//! A list through the stack frames of the joins, newest first; nobody else reads it, so it takes no
//! atomic operation. The oldest, which is the largest as a rule, leaves at the far end when it is
//! published.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr;

use crate::demand::Demand;
use crate::sync::per_thread;
use crate::task::Task;

/// The second half of a join, in its stack frame.
pub(crate) struct Job {
    /// Towards the end of the list; null once this is published. It changes when an older one is
    /// published: read it again.
    older: Cell<*const Job>,
    /// Not there while this is the newest.
    newer: Cell<MaybeUninit<*const Job>>,
    publish: unsafe fn(*const Job) -> Task,
}

impl Job {
    /// `publish` makes a task of it. It is called at most once, by the thread that the job belongs to,
    /// with a job that is not in a list any more.
    #[inline(always)]
    pub(crate) const fn new(publish: unsafe fn(*const Self) -> Task) -> Self {
        Self { older: Cell::new(ptr::null()), newer: Cell::new(MaybeUninit::uninit()), publish }
    }
}

/// What a thread has of its own for forks.
pub(crate) struct Jobs {
    /// Null on a thread that belongs to no pool.
    newest: Cell<*const Job>,
    /// Of the seat that the thread has. Null on a thread that belongs to no pool.
    demand: Cell<*const Demand>,
    /// Are waits to run nothing else?
    isolated: Cell<bool>,
    /// Beyond the oldest.
    end: Job,
}

per_thread! {
    static JOBS: Jobs = Jobs::new();
}

impl Jobs {
    const fn new() -> Self {
        Self {
            newest: Cell::new(ptr::null()),
            demand: Cell::new(ptr::null()),
            isolated: Cell::new(false),
            end: Job::new(end_is_no_job),
        }
    }
}

unsafe fn end_is_no_job(_: *const Job) -> Task {
    unreachable!("the end of the list is never published")
}

/// This thread belongs to a pool from now on.
///
/// # Safety
///
/// The demand is there until [`close`], or until another takes its place.
pub(crate) unsafe fn open(demand: &Demand) {
    JOBS.with(|jobs| {
        jobs.newest.set(&raw const jobs.end);
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
        debug_assert!(ptr::eq(jobs.newest.get(), &raw const jobs.end), "a join has not ended");
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
    // SAFETY: as in `is_demanded`.
    unsafe { &*demand }.seat
}

/// Adds the newest.
///
/// # Safety
///
/// The thread belongs to a pool. The job stays where it is until it is popped or published, and
/// jobs are popped in the opposite order of these calls.
#[inline(always)]
pub(crate) unsafe fn push(job: *const Job) {
    JOBS.with(|jobs| {
        let newest = jobs.newest.get();
        // SAFETY: the caller's.
        unsafe { (*job).older.set(newest) };
        // SAFETY: in the list, so it is there.
        unsafe { (*newest).newer.set(MaybeUninit::new(job)) };
        jobs.newest.set(job);
    });
}

/// Takes back the newest, if that is it; if not, it was published.
///
/// # Safety
///
/// It was pushed by this thread, and everything that was pushed after it has been popped.
#[inline(always)]
pub(crate) unsafe fn pop(job: *const Job) -> bool {
    // SAFETY: the caller's.
    let older = unsafe { (*job).older.get() };
    if older.is_null() {
        return false;
    }
    JOBS.with(|jobs| {
        debug_assert!(ptr::eq(jobs.newest.get(), job), "joins nest");
        jobs.newest.set(older);
    });
    true
}

/// Has this thread private jobs?
pub(crate) fn any() -> bool {
    JOBS.with(|jobs| !ptr::eq(jobs.newest.get(), &raw const jobs.end))
}

/// Takes the oldest out of the list and makes a task of it.
pub(crate) fn publish_oldest() -> Option<Task> {
    JOBS.with(|jobs| {
        let end = &raw const jobs.end;
        let newest = jobs.newest.get();
        if ptr::eq(newest, end) {
            return None;
        }
        // SAFETY: the list is not empty, so the end was linked to the oldest.
        let oldest = unsafe { jobs.end.newer.get().assume_init() };
        if ptr::eq(oldest, newest) {
            jobs.newest.set(end);
        } else {
            // SAFETY: in the list, so it is there.
            let newer = unsafe { (*oldest).newer.get() };
            // SAFETY: it is not the newest, so it was linked to the next one.
            let newer = unsafe { newer.assume_init() };
            jobs.end.newer.set(MaybeUninit::new(newer));
            // SAFETY: in the list, so it is there.
            unsafe { (*newer).older.set(end) };
        }
        // SAFETY: in the list until now.
        unsafe { (*oldest).older.set(ptr::null()) };
        // SAFETY: likewise.
        let publish = unsafe { (*oldest).publish };
        // SAFETY: of this thread, out of the list, and so never again.
        Some(unsafe { publish(oldest) })
    })
}

/// Are waits of this thread to run nothing else?
pub(crate) fn is_isolated() -> bool {
    JOBS.with(|jobs| jobs.isolated.get())
}

/// Says whether they are, while `f` runs.
pub(crate) fn with_isolation<R>(isolated: bool, f: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            JOBS.with(|jobs| jobs.isolated.set(self.0));
        }
    }
    let _restore = Restore(JOBS.with(|jobs| jobs.isolated.replace(isolated)));
    f()
}
