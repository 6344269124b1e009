//! How a thread writes to its trace, if it has one.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr;

use super::event::EventKind;
use super::log::{Lane, Log};
use crate::sync::{Arc, per_thread, thread_name};

per_thread! {
    /// Where this thread writes; null if nothing is traced.
    static LANE: Cell<*const Lane> = Cell::new(ptr::null());
}

/// Has the thread that made it write to its pool's trace, for as long as there is one.
pub(crate) struct Recorder {
    log: Arc<Log>,
    lane: Arc<Lane>,
    /// It stays where it was made.
    _here: PhantomData<*const ()>,
}

impl Recorder {
    /// For the thread that calls; to be dropped there.
    pub(crate) fn new(log: &Arc<Log>) -> Self {
        let lane = log.open(thread_name());
        LANE.with(|own| own.set(&raw const *lane));
        Self { log: Arc::clone(log), lane, _here: PhantomData }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        LANE.with(|own| own.set(ptr::null()));
        self.log.close(&self.lane);
    }
}

/// This thread does that.
#[inline(always)]
pub(crate) fn record(kind: EventKind) {
    let lane = LANE.with(Cell::get);
    if !lane.is_null() {
        write(lane, kind);
    }
}

#[cold]
#[inline(never)]
fn write(lane: *const Lane, kind: EventKind) {
    // SAFETY: the recorder has made it of a lane that it keeps, and takes it back before it goes, all on this thread.
    unsafe { &*lane }.write(kind);
}

/// Runs a task, from its start to its end. It does not unwind.
#[inline(always)]
pub(crate) fn task<R>(f: impl FnOnce() -> R) -> R {
    #[cfg(feature = "tracing")]
    let _span = super::span::Span::enter();
    record(EventKind::Start);
    let result = f();
    record(EventKind::End);
    result
}
