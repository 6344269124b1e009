//! How a thread records events, if its pool keeps a trace.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr;

use super::event::EventKind;
use super::log::{Log, ThreadEvents};
use crate::sync::{Arc, per_thread, thread_name};

per_thread! {
    /// Where this thread records events; null if it does not.
    static EVENTS: Cell<*const ThreadEvents> = Cell::new(ptr::null());
}

/// Makes the calling thread record events in its pool's trace, as long as this value exists.
pub(crate) struct Recorder {
    log: Arc<Log>,
    events: Arc<ThreadEvents>,
    /// Makes the recorder stay on the thread that made it.
    _here: PhantomData<*const ()>,
}

impl Recorder {
    /// Returns a recorder for the calling thread, which must also drop it.
    pub(crate) fn new(log: &Arc<Log>) -> Self {
        let events = log.open(thread_name());
        EVENTS.with(|own| own.set(&raw const *events));
        Self { log: Arc::clone(log), events, _here: PhantomData }
    }
}

impl Recorder {
    /// Makes the thread record no more events, until [`resume`](Self::resume).
    pub(crate) fn pause(&self) {
        EVENTS.with(|own| own.set(ptr::null()));
    }

    /// Makes the thread record events again.
    pub(crate) fn resume(&self) {
        EVENTS.with(|own| own.set(&raw const *self.events));
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        EVENTS.with(|own| own.set(ptr::null()));
        self.log.close(&self.events);
    }
}

/// Records an event of this thread.
#[inline(always)]
pub(crate) fn record(kind: EventKind) {
    let events = EVENTS.with(Cell::get);
    if !events.is_null() {
        write(events, kind);
    }
}

#[cold]
#[inline(never)]
fn write(events: *const ThreadEvents, kind: EventKind) {
    // SAFETY: the recorder has made the pointer from a ring that it keeps, and resets it before it is dropped, all
    // on this thread.
    unsafe { &*events }.write(kind);
}

/// Runs a task and records its start and its end. The task does not unwind.
#[inline(always)]
pub(crate) fn task<R>(f: impl FnOnce() -> R) -> R {
    #[cfg(feature = "tracing")]
    let _span = super::span::Span::enter();
    record(EventKind::Start);
    let result = f();
    record(EventKind::End);
    result
}
