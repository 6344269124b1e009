//! Jobs that a thread keeps to itself: the second halves of its joins, until somebody wants them.
//!
//! A chain through the stack frames of the joins, from the oldest to the newest. It takes no more than plain loads and stores:
//! nobody else looks at it, or if somebody must, that one pays for both (`raid`). The oldest, which is the largest as a rule, is published first: so the
//! published ones are a prefix of the chain, and a border between them and the private ones says
//! all. What the way out reads of a frame is not written again after the way in, by this thread or
//! another: the loads find what the stores have left, as the processor expects.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr;

use crate::fork::demand::{Demand, NO_WORKER};
use crate::fork::raid::{Chain, Guard};
use crate::order;
use crate::sync::{AtomicPtr, AtomicUsize, Ordering, const_fn, light_fence, per_thread};
use crate::task::Task;

/// The second half of a join, in its stack frame.
pub(crate) struct Job {
    /// The one before, once it is in the chain. Kept here rather than returned: what the compiler keeps in registers,
    /// every call saves.
    older: Cell<MaybeUninit<*const Job>>,
    /// The next one; not there while this is the newest.
    newer: Cell<MaybeUninit<*const Job>>,
    publish: Publish,
}

/// The one before a job that was pushed.
///
/// # Safety
///
/// The job is there, and was pushed, or is the base of a chain.
#[inline(always)]
unsafe fn older(job: *const Job) -> *const Job {
    // SAFETY: there.
    let older = unsafe { (*job).older.get() };
    // SAFETY: set by `push`, or from the beginning.
    unsafe { older.assume_init() }
}

/// Makes a task of a job, or of nothing, for the thread in that core, which has the jobs.
type Publish = unsafe fn(*const Job, &Jobs, usize) -> Option<Task>;

impl Job {
    /// `publish` is called at most once, while the job is in the chain; from then on it is not private.
    #[inline(always)]
    pub(crate) const fn new(publish: Publish) -> Self {
        Self {
            older: Cell::new(MaybeUninit::uninit()),
            newer: Cell::new(MaybeUninit::uninit()),
            publish,
        }
    }
}

/// What a thread has of its own for forks. Thieves may look at it as well (`raid`): then the border moves with the lock
/// of the chain.
pub(crate) struct Jobs {
    /// Null on a thread that belongs to no pool. Written by this thread alone.
    newest: AtomicPtr<Job>,
    /// The newest that was published. All that are older were published as well.
    border: AtomicPtr<Job>,
    /// Of the core that the thread has. Null on a thread that belongs to no pool.
    demand: Cell<*const Demand>,
    /// What the newest descends from: the task that this thread runs, or what it has isolated.
    root: Cell<usize>,
    /// What the oldest private one descends from. Ordering: relaxed; it moves with the border.
    border_root: AtomicUsize,
    /// Before the oldest; it counts as published.
    base: Job,
}

per_thread! {
    static JOBS: Jobs = Jobs::new();
}

impl Jobs {
    const_fn! {
        fn new() -> Self {
            Self {
                newest: AtomicPtr::new(ptr::null_mut()),
                border: AtomicPtr::new(ptr::null_mut()),
                demand: Cell::new(ptr::null()),
                root: Cell::new(0),
                border_root: AtomicUsize::new(0),
                base: Job {
                    older: Cell::new(MaybeUninit::new(ptr::null())),
                    ..Job::new(base_is_no_job)
                },
            }
        }
    }

    /// This thread's own.
    #[inline(always)]
    fn newest(&self) -> *const Job {
        // Ordering: relaxed. Written by this thread.
        self.newest.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn border(&self) -> *const Job {
        // Ordering: relaxed. If another has moved it, this thread has had the lock since, or will find the trace of that
        // raid in its demand.
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
        // SAFETY: there since `open`, or null.
        unsafe { self.demand.get().as_ref() }
    }

    fn guard(&self) -> Option<Guard<'_>> {
        self.demand().and_then(|demand| demand.chain.as_ref()).map(Chain::guard)
    }

    /// Likewise, when a raid, if there was one, is over: its trace is wiped out.
    fn guard_after_raid(&self) -> Option<Guard<'_>> {
        let guard = self.guard();
        if guard.is_some() {
            if let Some(demand) = self.demand() {
                demand.forget_raid();
            }
        }
        guard
    }

    /// What a job that is being published descends from.
    pub(crate) fn root_of_oldest(&self) -> usize {
        self.border_root.load(Ordering::Relaxed)
    }

    /// The oldest that is private is not so any more.
    ///
    /// # Safety
    ///
    /// There is one, and nobody else moves the border.
    unsafe fn pass_border(&self) -> *const Job {
        // SAFETY: in the chain, or its base, so it is there.
        let oldest = unsafe { (*self.border()).newer.get() };
        // SAFETY: it is not the newest, so it was linked to the next one.
        let oldest = unsafe { oldest.assume_init() };
        self.set_border(oldest);
        oldest
    }

    /// Are there private jobs, as another thread sees it, with the lock of the chain?
    pub(crate) fn seem_private(&self) -> bool {
        let newest = self.newest.load(order::newest_read()).cast_const();
        let border = self.border();
        // SAFETY: a frame that is the border stays until its owner has had the lock.
        let before = unsafe { older(border) };
        // The owner takes the border itself out of the chain before it has the lock to move it.
        !ptr::eq(newest, border) && !ptr::eq(newest, before)
    }

    /// For another thread: makes a task of the oldest that is private.
    ///
    /// # Safety
    ///
    /// With the lock of the chain, in a raid that was announced; `core` is that of the thread that these belong to.
    pub(crate) unsafe fn publish_of_another(&self, worker: usize) -> Option<Task> {
        while self.seem_private() {
            // SAFETY: there is one, and with the lock nobody else moves the border.
            let oldest = unsafe { self.pass_border() };
            // SAFETY: in the chain, and its owner waits for the lock before it takes it out.
            let publish = unsafe { (*oldest).publish };
            // SAFETY: likewise, and not private any more, so never again.
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

/// This thread belongs to a pool from now on.
///
/// # Safety
///
/// The demand is there until [`close`], or until another takes its place.
pub(crate) unsafe fn open(demand: &Demand) {
    JOBS.with(|jobs| {
        jobs.newest.store(jobs.base().cast_mut(), Ordering::Relaxed);
        jobs.set_border(jobs.base());
    });
    // SAFETY: as the caller says.
    unsafe { use_demand_of(demand) };
}

/// This thread has another core, or none.
///
/// # Safety
///
/// As for [`open`].
pub(crate) unsafe fn use_demand_of(demand: &Demand) {
    JOBS.with(|jobs| {
        stop_being_raided(jobs);
        jobs.demand.set(demand);
        if let Some(chain) = &demand.chain {
            chain.put(jobs);
        }
    });
}

/// Nobody raids this thread any more.
fn stop_being_raided(jobs: &Jobs) {
    if let Some(chain) = jobs.demand().and_then(|demand| demand.chain.as_ref()) {
        chain.remove();
    }
}

/// This thread belongs to no pool any more.
pub(crate) fn close() {
    JOBS.with(|jobs| {
        debug_assert!(ptr::eq(jobs.newest(), jobs.base()), "a join has not ended");
        stop_being_raided(jobs);
        jobs.newest.store(ptr::null_mut(), Ordering::Relaxed);
        jobs.demand.set(ptr::null());
    });
}

/// Does this thread belong to a pool?
#[inline(always)]
pub(crate) fn is_open() -> bool {
    JOBS.with(|jobs| !jobs.newest().is_null())
}

/// Does somebody want jobs of this thread?
#[inline(always)]
pub(crate) fn is_demanded() -> bool {
    let demand = JOBS.with(|jobs| jobs.demand.get());
    // SAFETY: there since `open`; only a thread that belongs to a pool asks.
    unsafe { &*demand }.is_raised()
}

/// Of this thread's core, if it has one.
pub(crate) fn worker() -> usize {
    JOBS.with(|jobs| jobs.demand().map_or(NO_WORKER, |demand| demand.worker))
}

/// Adds the newest, unless this thread belongs to no pool. Afterwards the caller looks whether it
/// [is demanded](is_demanded).
///
/// # Safety
///
/// The job stays where it is until it is popped, and jobs are popped in the opposite order of these calls.
#[inline(always)]
pub(crate) unsafe fn push(job: *const Job) -> bool {
    JOBS.with(|jobs| {
        let older = jobs.newest();
        if older.is_null() {
            return false;
        }
        // SAFETY: in the chain, so it is there.
        unsafe { (*older).newer.set(MaybeUninit::new(job)) };
        // SAFETY: the caller's.
        unsafe { (*job).older.set(MaybeUninit::new(older)) };
        jobs.newest.store(job.cast_mut(), order::newest_publish());
        light_fence(order::CHAIN);
        true
    })
}

/// Takes the newest out of the chain. Was it private to the end? If so, and if somebody wants jobs, `answer` is called. If
/// not, [`move_border_back`] is to be called next.
///
/// # Safety
///
/// It was pushed by this thread, and everything that was pushed after it has been popped.
#[inline(always)]
pub(crate) unsafe fn pop(job: *const Job, answer: fn()) -> bool {
    // SAFETY: the caller's.
    let older = unsafe { older(job) };
    // It is the newest; so its address, which would take a register, need not be asked for.
    let newest = JOBS.with(Jobs::newest);
    debug_assert!(ptr::eq(newest, job), "joins nest");
    let published = JOBS.with(|jobs| ptr::eq(newest, jobs.border()));
    JOBS.with(|jobs| jobs.newest.store(older.cast_mut(), Ordering::Relaxed));
    light_fence(order::CHAIN);
    if published {
        return false;
    }
    // A raid that has moved the border since then has left its trace there.
    if is_demanded() { is_private(job, answer) } else { true }
}

/// Was a job that is not in the chain any more private to the end? There may be a raid.
#[cold]
#[inline(never)]
fn is_private(job: *const Job, answer: fn()) -> bool {
    let private = JOBS.with(|jobs| {
        let _guard = jobs.guard_after_raid();
        !ptr::eq(job, jobs.border())
    });
    if private {
        answer();
    }
    private
}

/// A job that was published has been taken out of the chain: it was the border.
///
/// # Safety
///
/// As [`pop`] has said of the caller's job.
pub(crate) unsafe fn move_border_back(job: *const Job) {
    // SAFETY: the caller's.
    let older = unsafe { older(job) };
    JOBS.with(|jobs| {
        let _guard = jobs.guard();
        jobs.set_border(older);
    });
}

/// Lets a raid on this thread, if there is one, come to its end, and wipes out its trace.
pub(crate) fn forget_raid() {
    JOBS.with(|jobs| drop(jobs.guard_after_raid()));
}

/// Has this thread private jobs?
pub(crate) fn any() -> bool {
    JOBS.with(|jobs| !ptr::eq(jobs.newest(), jobs.border()))
}

/// Makes a task of the oldest that is private.
pub(crate) fn publish_oldest() -> Option<Task> {
    JOBS.with(|jobs| {
        let _guard = jobs.guard();
        while !ptr::eq(jobs.newest(), jobs.border()) {
            // SAFETY: there is one, and with the lock, if there is one, nobody else moves the border.
            let oldest = unsafe { jobs.pass_border() };
            // SAFETY: in the chain, so it is there.
            let publish = unsafe { (*oldest).publish };
            // SAFETY: of this thread, in the chain, and not private any more, so never again.
            if let Some(task) = unsafe { publish(oldest, jobs, worker()) } {
                return Some(task);
            }
        }
        None
    })
}

/// What descends from the same is run while one waits for it, and nothing else: it is the address of a
/// task that is running, or of an isolated part of one.
pub(crate) fn root() -> usize {
    JOBS.with(|jobs| jobs.root.get())
}

/// What is forked from now on descends from `root`. Nothing is running on this thread.
#[inline(always)]
pub(crate) fn begin(root: usize) {
    JOBS.with(|jobs| {
        jobs.root.set(root);
        jobs.border_root.store(root, Ordering::Relaxed);
    });
}

/// While `f` runs, what is forked descends from `root`. It is there for longer than `f` and what that forks.
/// `f` does not panic.
#[inline(always)]
pub(crate) fn in_root<R>(root: usize, f: impl FnOnce() -> R) -> R {
    let is_first = JOBS.with(|jobs| ptr::eq(jobs.newest(), jobs.base()));
    if is_first {
        // Something may be running all the same: a task that has not forked.
        let outer = JOBS.with(|jobs| (jobs.root.replace(root), jobs.root_of_oldest()));
        JOBS.with(|jobs| jobs.border_root.store(root, Ordering::Relaxed));
        let result = f();
        JOBS.with(|jobs| {
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
    let mark = Mark { job: Job::new(pass), root, outer: self::root() };
    // SAFETY: the mark stays where it is until the guard pops it, and joins nest.
    let open = unsafe { push((&raw const mark).cast()) };
    debug_assert!(open, "only a thread of a pool has jobs");
    // Who wants jobs now will be seen at the next fork.
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
unsafe fn pass(job: *const Job, jobs: &Jobs, _: usize) -> Option<Task> {
    // SAFETY: the job of a mark is its first field.
    let root = unsafe { (*job.cast::<Mark>()).root };
    jobs.border_root.store(root, Ordering::Relaxed);
    None
}

/// Takes a mark out of the chain.
struct Leave<'m>(&'m Mark);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        // SAFETY: pushed before, and the joins since then have ended.
        let private = unsafe { pop((&raw const *self.0).cast(), || ()) };
        JOBS.with(|jobs| jobs.root.set(self.0.outer));
        if !private {
            // SAFETY: not private, as said.
            unsafe { move_border_back((&raw const *self.0).cast()) };
            JOBS.with(|jobs| jobs.border_root.store(self.0.outer, Ordering::Relaxed));
        }
    }
}
