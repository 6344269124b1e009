//! One run in a pool of ours that keeps a trace, and is not kept itself.

use std::cell::Cell;

use harness::threads::Finally;
use heist::trace::Trace;

use super::Pool;

/// Of each thread. What was before them is lost. A ring has a slot more, and as many as a power of two.
pub(crate) const EVENTS: usize = (1 << 16) - 1;

thread_local! {
    static WISH: Cell<Wish> = const { Cell::new(Wish::None) };
}

/// What this thread wants.
#[derive(Clone, Copy)]
enum Wish {
    None,
    /// The next pool is to keep a trace.
    Open,
    /// So is it, but if none is asked for, it is the global one that is used.
    Global,
    /// This one does.
    Granted(&'static heist::Pool),
}

/// Runs one entry of a case. If it asks for a pool of ours, it gets one that keeps a trace, which ends with the run. The global one
/// stays, and keeps one if the environment has said so. `None` if there is no such pool.
pub(crate) fn run(entry: impl FnOnce()) -> Option<Trace> {
    WISH.set(Wish::Open);
    let reset = Finally(|| WISH.set(Wish::None));
    entry();
    let pool = match WISH.get() {
        Wish::None | Wish::Open => return None,
        Wish::Global => heist::Pool::global(),
        Wish::Granted(pool) => {
            // Its threads have written everything when they are gone.
            pool.stop();
            pool
        }
    };
    drop(reset);
    pool.trace_snapshot()
}

/// What this thread runs uses our global pool, unless it asks for another.
pub(super) fn global() {
    if let Wish::Open = WISH.get() {
        WISH.set(Wish::Global);
    }
}

/// A new pool, if this thread wants a trace and pools of this type have one.
pub(super) fn pool<P: Pool>(workers: usize) -> Option<&'static P> {
    let (Wish::Open | Wish::Global) = WISH.get() else { return None };
    // Tasks may outlive the run of an entry, and so does the pool; its threads do not.
    let pool: &'static P = Box::leak(Box::new(P::traced(workers, EVENTS)?));
    WISH.set(pool.ours().map_or(Wish::None, Wish::Granted));
    Some(pool)
}

#[cfg(test)]
mod tests {
    use super::*;

    // One more than a ring of some size holds would make it twice as large.
    const _: () = assert!((EVENTS + 1).is_power_of_two());
    use crate::peers::{heist, kept, rayon};

    #[test]
    fn a_pool_of_ours_is_traced_once() {
        let trace = run(|| assert_eq!(kept::pool::<heist::Locked>(2).ask(1), 4)).unwrap();
        assert_eq!((trace.pool.as_str(), trace.workers), ("locked deques", 2));
        assert!(kept::pool::<heist::Locked>(2).ours().unwrap().trace_snapshot().is_none());
        assert!(run(|| _ = kept::pool::<rayon::ThreadPool>(2)).is_none());
        assert!(run(|| ()).is_none());
    }
}
