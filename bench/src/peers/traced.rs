//! Runs an entry in a heist pool that keeps a trace and ends after the run.

use std::cell::Cell;

use harness::threads::Finally;
use heist::trace::Trace;

use super::Pool;

/// The number of events that are kept for each thread; older ones are lost. A ring has one slot more, and its size
/// is a power of two.
pub(crate) const EVENTS: usize = (1 << 16) - 1;

thread_local! {
    static REQUEST: Cell<Request> = const { Cell::new(Request::None) };
}

/// Whether the current thread wants a trace.
#[derive(Clone, Copy)]
enum Request {
    None,
    /// The next pool should keep a trace.
    Any,
    /// The next pool should keep a trace; if no pool is requested, the entry uses the global pool.
    Global,
    /// This pool keeps a trace.
    Granted(&'static heist::Pool),
}

/// Runs one entry of a case. If the entry requests a heist pool, it gets one that keeps a trace and that ends with
/// the run. The global pool stays, and keeps a trace if the environment says so. Returns `None` if the entry uses
/// no such pool.
pub(crate) fn run(entry: impl FnOnce()) -> Option<Trace> {
    REQUEST.set(Request::Any);
    let reset = Finally(|| REQUEST.set(Request::None));
    entry();
    let pool = match REQUEST.get() {
        Request::None | Request::Any => return None,
        Request::Global => heist::Pool::global(),
        Request::Granted(pool) => {
            // After its threads have ended, all events are written.
            pool.stop();
            pool
        }
    };
    drop(reset);
    pool.trace_snapshot()
}

/// Notes that the entry on this thread uses heist's global pool, unless it requests another one.
pub(super) fn global() {
    if let Request::Any = REQUEST.get() {
        REQUEST.set(Request::Global);
    }
}

/// Returns a new pool, if this thread wants a trace and pools of this type can keep one.
pub(super) fn pool<P: Pool>(workers: usize) -> Option<&'static P> {
    let (Request::Any | Request::Global) = REQUEST.get() else { return None };
    // Tasks may outlive the run of an entry, so the pool is leaked; its threads end.
    let pool: &'static P = Box::leak(Box::new(P::traced(workers, EVENTS)?));
    REQUEST.set(pool.ours().map_or(Request::None, Request::Granted));
    Some(pool)
}

#[cfg(test)]
mod tests {
    use super::*;

    // One event more would double the size of the ring.
    const _: () = assert!((EVENTS + 1).is_power_of_two());
    use crate::peers::{heist, kept, rayon};

    #[test]
    fn only_a_heist_pool_is_traced_and_only_once() {
        let trace = run(|| assert_eq!(kept::pool::<heist::Locked>(2).ask(1), 4)).unwrap();
        assert_eq!((trace.pool, trace.workers), (::heist::Strategy::LockedDeques.to_string(), 2));
        assert!(kept::pool::<heist::Locked>(2).ours().unwrap().trace_snapshot().is_none());
        assert!(run(|| _ = kept::pool::<rayon::ThreadPool>(2)).is_none());
        assert!(run(|| ()).is_none());
    }
}
