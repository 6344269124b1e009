//! How a thread of no pool waits for a task.

use crate::sync::{Arc, copies, pause, thread_local, yield_now};
use crate::task::Awaited;
use crate::task::listener::Listener;
use crate::worker::wait::{LOOKS, PAUSES, YIELDS};

/// After every this many looks in vain the thread yields its processor. The worker that runs the task may be on the same one: the
/// system often places it there, because this thread has woken it. Sooner, the thread would make way for other workers, which
/// search, and a short task would take as long as to sleep.
const YIELD_INTERVAL: u32 = if cfg!(shuttle) { 1 } else { 8 };

thread_local! {
    /// The listener of a thread that belongs to no pool.
    static LISTENER: Arc<Listener> = Arc::new(Listener::thread());
}

/// Waits on a thread of no pool for something that may be short: looks for some microseconds before it sleeps. To sleep and to
/// be woken takes longer, and takes as much time of the processor.
pub(crate) fn watch_outside(awaited: &dyn Awaited) {
    if !watch(awaited) {
        wait_outside(awaited);
    }
}

/// Looks for a moment whether the task is done, and returns the answer.
fn watch(awaited: &dyn Awaited) -> bool {
    for look in 1..=LOOKS + YIELDS {
        if awaited.is_done() {
            return true;
        }
        if look % YIELD_INTERVAL == 0 || look > LOOKS {
            yield_now();
        } else {
            (0..PAUSES).for_each(|_| pause());
        }
    }
    awaited.is_done()
}

/// Returns the listener of the calling thread, which belongs to no pool.
fn outside_listener() -> Arc<Listener> {
    if copies() != 0 {
        // What is kept may be that of the thread in another process.
        return Arc::new(Listener::thread());
    }
    // A thread whose thread-locals are being destroyed has no listener any more.
    LISTENER.try_with(Arc::clone).unwrap_or_else(|_| Arc::new(Listener::thread()))
}

/// Sleeps until the task is done.
pub(crate) fn wait_outside(awaited: &dyn Awaited) {
    let listener = outside_listener();
    if awaited.listen(Arc::clone(&listener)) {
        while !awaited.is_done() {
            listener.sleeper().park_until(awaited.end());
        }
    }
}
