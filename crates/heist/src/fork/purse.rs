//! A thread's purse: some of the count of one scope, which the thread keeps for the parts that it will spawn.
//!
//! Without it, each part of a scope would take two writes to one word, that of the scope's latch. `README.md` has the
//! protocol (C1 to C6) and its argument.

use std::cell::Cell;
use std::ptr::{self, NonNull};

use crate::fork::latch::CountLatch;
use crate::sync::per_thread;

/// How much credit a thread takes at once. Any number is right. With a large one, a thread takes credit seldom; more than
/// it needs costs nothing. Small under a checker, so that it explores what happens when a purse is empty.
pub(crate) const ADVANCE: u64 = if cfg!(any(loom, shuttle)) { 2 } else { 1 << 32 };

/// The credit that a thread keeps.
///
/// A purse with credit keeps its scope alive: the credit is a part of the count of its latch, and the scope does not return
/// before that count is zero. Only this thread touches the purse.
struct Purse {
    /// The latch that the credit is from. Meaningless, and perhaps gone, if there is no credit.
    latch: Cell<*const CountLatch>,
    credit: Cell<u64>,
}

per_thread! {
    static PURSE: Purse = Purse { latch: Cell::new(ptr::null()), credit: Cell::new(0) };
}

impl Purse {
    fn put(&self, latch: *const CountLatch, credit: u64) {
        self.latch.set(latch);
        self.credit.set(credit);
    }
}

/// Puts credit into the purse of this thread, which is empty.
///
/// # Safety
///
/// The credit is counted by the latch, and nothing else has it.
pub(crate) unsafe fn fill(latch: &CountLatch, credit: u64) {
    PURSE.with(|purse| {
        debug_assert_eq!(purse.credit.get(), 0, "another scope would be forgotten");
        purse.put(latch, credit);
    });
}

/// Counts a part that this thread is about to spawn: takes one from the purse if that has credit of the same latch (C2).
/// The caller is counted, or runs while a counted part has not ended. If the purse is empty and the scope waits for the whole
/// task that the caller is in, as `is_awaited` says, it takes credit, and will call [`flush`] when that task has ended.
#[inline]
pub(crate) fn spend(latch: &CountLatch, is_awaited: impl FnOnce() -> bool) {
    PURSE.with(|purse| match purse.credit.get() {
        0 if is_awaited() => advance(purse, latch),
        0 => latch.more(1),
        credit if ptr::eq(purse.latch.get(), latch) => purse.credit.set(credit - 1),
        _ => latch.more(1),
    });
}

/// Counts as many parts as a thread may need, of which one is about to be spawned.
#[cold]
#[inline(never)]
fn advance(purse: &Purse, latch: &CountLatch) {
    latch.more(ADVANCE);
    purse.put(latch, ADVANCE - 1);
}

/// Keeps the count of a part that has ended on this thread, for the next part of the same scope (C3). The caller will call
/// [`flush`], unless it next runs a part of the same scope.
///
/// # Safety
///
/// The latch is alive. The caller has one of its count, and gives it up.
#[inline]
pub(crate) unsafe fn keep(latch: NonNull<CountLatch>) {
    PURSE.with(|purse| match purse.credit.get() {
        0 => purse.put(latch.as_ptr(), 1),
        credit if ptr::eq(purse.latch.get(), latch.as_ptr()) => purse.credit.set(credit + 1),
        // SAFETY: the caller's promise.
        _ => unsafe { CountLatch::done(latch, 1) },
    });
}

/// Returns whether this thread has credit.
#[inline(always)]
pub(crate) fn any() -> bool {
    PURSE.with(|purse| purse.credit.get() != 0)
}

/// Returns all credit of this thread to its latch (C4).
#[inline(always)]
pub(crate) fn flush() {
    if any() {
        flush_some();
    }
}

/// Returns all credit of this thread to its latch, unless that is this one: a part of this one is about to run (C4).
#[inline]
pub(crate) fn flush_unless(latch: &CountLatch) {
    if any() && !PURSE.with(|purse| ptr::eq(purse.latch.get(), latch)) {
        flush_some();
    }
}

#[cold]
#[inline(never)]
fn flush_some() {
    let (latch, credit) = PURSE.with(|purse| (purse.latch.get(), purse.credit.replace(0)));
    let latch = NonNull::new(latch.cast_mut()).expect("credit is from a latch");
    // SAFETY: the credit was in the purse, so the latch counted it and was alive. The purse has it no longer.
    unsafe { CountLatch::done(latch, credit) };
}

/// Takes what is in the purse of this thread if that is credit of this latch, and returns how much there was.
pub(crate) fn take_all(latch: &CountLatch) -> u64 {
    PURSE.with(|purse| if ptr::eq(purse.latch.get(), latch) { purse.credit.replace(0) } else { 0 })
}

/// The credit of the scope around a nested one, which is put back when this is dropped (C5).
pub(crate) struct SetAside {
    latch: *const CountLatch,
    credit: u64,
}

/// Empties the purse of this thread while a scope is open.
pub(crate) fn set_aside() -> SetAside {
    PURSE.with(|purse| SetAside { latch: purse.latch.get(), credit: purse.credit.replace(0) })
}

impl Drop for SetAside {
    fn drop(&mut self) {
        if self.credit > 0 {
            // The nested scope has ended, so there is no credit of it. There may be some of a third scope.
            flush();
            PURSE.with(|purse| purse.put(self.latch, self.credit));
        }
    }
}
