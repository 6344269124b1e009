//! How a thread becomes part of a pool and ceases to be: for good, or as a guest for one visit.

use std::ptr;

use super::{JOBS, Jobs, with_jobs};
use crate::fork::demand::Demand;
use crate::fork::purse;
use crate::sync::Ordering;

/// Makes the calling thread part of a pool, with that demand.
///
/// # Safety
///
/// The demand is valid until [`close`], or until another takes its place.
pub(crate) unsafe fn open(demand: &Demand) {
    // It may have been a guest of another pool.
    leave_place();
    with_jobs(|jobs| {
        jobs.newest.store(jobs.base().cast_mut(), Ordering::Relaxed);
        jobs.set_border(jobs.base());
    });
    // SAFETY: the caller's promise.
    unsafe { use_demand_of(demand) };
}

/// Sets the demand that the calling thread looks at, after it has acquired or released a core.
///
/// # Safety
///
/// The demand is valid until [`close`], or until another takes its place.
pub(crate) unsafe fn use_demand_of(demand: &Demand) {
    with_jobs(|jobs| {
        stop_being_raided(jobs);
        jobs.demand.set(demand);
        if let Some(chain) = &demand.chain {
            chain.put(jobs);
        }
    });
}

/// Withdraws this thread's jobs from raids.
fn stop_being_raided(jobs: &Jobs) {
    debug_assert!(
        jobs.demand().and_then(|demand| demand.tasks.as_deref()).is_none_or(|tasks| !tasks.any()),
        "a thread that nobody can raid has no private tasks"
    );
    if let Some(chain) = jobs.demand().and_then(|demand| demand.chain.as_ref()) {
        chain.remove();
    }
}

/// Makes the calling thread part of a pool as a guest, with that demand, until [`end_visit`]. Thieves go on to look at its jobs
/// between its visits, and find none: that costs less than to put them there for each visit.
///
/// # Safety
///
/// The demand is valid until [`leave_place`], which is called before the thread ends.
pub(crate) unsafe fn begin_visit(demand: &Demand) {
    with_jobs(|jobs| {
        debug_assert!(jobs.newest().is_null(), "it is part of no pool");
        if !ptr::eq(jobs.place.get(), demand) {
            leave_place();
            jobs.set_border(jobs.base());
            jobs.place.set(demand);
            if let Some(chain) = &demand.chain {
                chain.put(jobs);
            }
        }
        jobs.newest.store(jobs.base().cast_mut(), Ordering::Relaxed);
        jobs.demand.set(demand);
    });
}

/// Ends a visit of the calling thread.
pub(crate) fn end_visit() {
    purse::flush();
    with_jobs(|jobs| {
        debug_assert!(ptr::eq(jobs.newest(), jobs.base()), "a join has not ended");
        // A thief takes this for an empty chain, as in `seem_private`: what is older than the base is null as well.
        jobs.newest.store(ptr::null_mut(), Ordering::Relaxed);
        jobs.demand.set(ptr::null());
    });
}

/// Withdraws the jobs of the calling thread from the place that it has as a guest, if it has one.
pub(crate) fn leave_place() {
    let left = JOBS.try_with(|jobs| {
        // SAFETY: valid until this call, by the promise made to `begin_visit`; or null.
        let demand = unsafe { jobs.place.replace(ptr::null()).as_ref() };
        if let Some(chain) = demand.and_then(|demand| demand.chain.as_ref()) {
            chain.remove();
        }
    });
    // Under a checker, the jobs may be gone before the seat of a guest, which removes them itself.
    debug_assert!(left.is_ok() || cfg!(shuttle), "they have no destructor");
}

/// Ends the calling thread's part in its pool.
pub(crate) fn close() {
    purse::flush();
    with_jobs(|jobs| {
        debug_assert!(ptr::eq(jobs.newest(), jobs.base()), "a join has not ended");
        stop_being_raided(jobs);
        jobs.newest.store(ptr::null_mut(), Ordering::Relaxed);
        jobs.demand.set(ptr::null());
    });
}
