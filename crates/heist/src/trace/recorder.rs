//! How a thread records events, if its pool keeps a trace.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr;

use super::event::{EventKind, RENAME, pack_named};
use super::log::{Log, ThreadEvents};
use super::names::NameCache;
use crate::sync::{Arc, per_thread, thread_name};

per_thread! {
    /// Where this thread records events; null if it does not.
    static EVENTS: Cell<*const Own> = Cell::new(ptr::null());
}

/// What a thread needs to record its events.
struct Own {
    log: Arc<Log>,
    events: Arc<ThreadEvents>,
    names: NameCache,
}

/// Makes the calling thread record events in its pool's trace, as long as this value exists.
pub(crate) struct Recorder {
    own: Box<Own>,
    /// Makes the recorder stay on the thread that made it.
    _here: PhantomData<*const ()>,
}

impl Recorder {
    /// Returns a recorder for the calling thread, which must also drop it. `place` tells a thread without a name from others.
    pub(crate) fn new(log: &Arc<Log>, place: usize) -> Self {
        let name = thread_name();
        let name = if name.is_empty() { format!("thread {place}") } else { name };
        let (log, events) = (Arc::clone(log), log.open(name, place));
        let recorder = Self {
            own: Box::new(Own { log, events, names: NameCache::default() }),
            _here: PhantomData,
        };
        recorder.resume();
        recorder
    }

    /// Makes the thread record no more events, until [`resume`](Self::resume).
    pub(crate) fn pause(&self) {
        EVENTS.with(|own| own.set(ptr::null()));
    }

    /// Makes the thread record events again.
    pub(crate) fn resume(&self) {
        EVENTS.with(|own| own.set(&raw const *self.own));
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.pause();
        self.own.log.close(&self.own.events);
    }
}

/// Records an event of this thread.
#[inline(always)]
pub(crate) fn record(kind: EventKind) {
    let own = EVENTS.with(Cell::get);
    if !own.is_null() {
        write(own, kind);
    }
}

#[cold]
#[inline(never)]
fn write(own: *const Own, kind: EventKind) {
    // SAFETY: the recorder has made the pointer from a box that it keeps, and resets it before it is dropped, all on this
    // thread.
    unsafe { &*own }.events.write(kind.pack());
}

#[cold]
#[inline(never)]
fn write_named(own: *const Own, kind: u64, name: &'static str) {
    // SAFETY: as in `write`.
    let Own { log, events, names } = unsafe { &*own };
    events.write(pack_named(kind, names.number(name, &log.names)));
}

/// Records the start of a task with that name, which is asked for only if there is a trace.
#[inline(always)]
pub(crate) fn record_start(name: impl FnOnce() -> &'static str) {
    let own = EVENTS.with(Cell::get);
    if !own.is_null() {
        write_named(own, EventKind::Start.pack(), name());
    }
}

/// Gives another name to the task that this thread has started last.
#[inline(always)]
pub(crate) fn rename(name: impl FnOnce() -> &'static str) {
    let own = EVENTS.with(Cell::get);
    if !own.is_null() {
        write_named(own, RENAME, name());
    }
}

/// Runs a task and records its start, with its name, and its end. The task does not unwind.
///
/// The name is that of the task's kind: the type of its closure. Code that knows a better one calls [`rename`] when the task
/// has started.
#[inline(always)]
pub(crate) fn task_named<T, R>(
    task: T,
    name: impl FnOnce(&T) -> &'static str,
    run: impl FnOnce(T) -> R,
) -> R {
    #[cfg(feature = "tracing")]
    let _span = super::span::Span::enter();
    record_start(|| name(&task));
    let result = run(task);
    record(EventKind::End);
    result
}
