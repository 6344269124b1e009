//! The state word of a task: which sides hold it, and how far it has come.
//!
//! Two sides hold a slot: the *queue's* side (the thread that takes the task out of a queue) and the *handle's* side.
//! Each lets go once; the second one to do so frees the slot. Either side may run the task: the side that sets
//! `STARTED` does.

use std::ptr;

use crate::order;
use crate::sync::{Arc, AtomicUsize, Ordering};
use crate::task::listener::Listener;

/// A side has undertaken to run or to refuse the task. The closure belongs to that side.
const STARTED: usize = 1;
/// The outcome is in the slot.
const DONE: usize = 2;
/// The queue's side has let go.
const QUEUE_GONE: usize = 4;
/// The handle's side has let go.
const HANDLE_GONE: usize = 8;
/// The handle's side has cancelled the task before it was started. So no side runs it: the queue's side refuses it.
const REVOKED: usize = 16;
/// The other bits are the address of the listener that the handle's side has registered, or zero. Its reference
/// count belongs to the word until `DONE`, and from then on to the thread that has set `DONE`.
const LISTENER: usize = !31;

pub(crate) struct State(AtomicUsize);

/// What the queue's side finds when it wants to run a task.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// The caller may run it, and no other thread will ever look at it.
    Alone,
    /// The caller may run it; the handle's side may be waiting.
    Ours,
    /// The caller must refuse it: the handle's side has cancelled it.
    Revoked,
    /// The handle's side has claimed it. The caller only lets go.
    Stale,
}

/// What a side finds when it lets go.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// The other side still holds the slot.
    Shared,
    /// The slot belongs to the caller alone.
    Last,
}

impl State {
    /// The state of a task in a queue, with a handle.
    pub(crate) fn queued() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// The state of a task in a queue, without a handle.
    pub(crate) fn alone() -> Self {
        Self(AtomicUsize::new(HANDLE_GONE))
    }

    /// The state of a promise: no queue has it, and it counts as started.
    pub(crate) fn promised() -> Self {
        Self(AtomicUsize::new(STARTED))
    }

    /// Queue's side: starts the task, if it may.
    #[inline]
    pub(crate) fn start(&self) -> Start {
        let now = self.0.load(order::start_alone());
        // A listener that was registered is left in the word: `finish` takes care of it.
        if now == HANDLE_GONE {
            return Start::Alone;
        }
        if now & STARTED != 0 {
            return Start::Stale;
        }
        // Ordering: relaxed, as in `claim`.
        let before = self.0.fetch_or(STARTED, Ordering::Relaxed);
        match before & (STARTED | REVOKED) {
            0 => Start::Ours,
            REVOKED => Start::Revoked,
            _ => Start::Stale,
        }
    }

    /// Handle's side: cancels the task, unless it was started. Returns whether the task is cancelled: no side will run it.
    pub(crate) fn revoke(&self) -> bool {
        // Ordering: relaxed, everywhere. No data is passed with it: the side that starts the task reads the bit by the same
        // operation by which it sets `STARTED`.
        let mut now = self.0.load(Ordering::Relaxed);
        while now & (STARTED | REVOKED) == 0 {
            let revoked = now | REVOKED;
            match self.0.compare_exchange_weak(now, revoked, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(found) => now = found,
            }
        }
        now & REVOKED != 0
    }

    /// Handle's side: returns whether it has cancelled the task.
    pub(crate) fn is_revoked(&self) -> bool {
        // Ordering: relaxed. Written by this side.
        self.0.load(Ordering::Relaxed) & REVOKED != 0
    }

    /// Handle's side: claims the task, if it may. Returns whether it did. It has not cancelled the task.
    #[inline]
    pub(crate) fn claim(&self) -> bool {
        // Ordering: relaxed. The claimer got access to the closure from the queue, or from the spawn that also made the
        // handle.
        self.0.fetch_or(STARTED, Ordering::Relaxed) & STARTED == 0
    }

    /// Queue's side: notes that the outcome is in the slot, and lets go. `Last` means that no handle will take the
    /// outcome, so that the caller must drop it.
    #[inline]
    pub(crate) fn finish(&self) -> (Left, Option<Arc<Listener>>) {
        let before = self.0.fetch_or(DONE | QUEUE_GONE, order::queue_leaves());
        (left(before & HANDLE_GONE), listener(before))
    }

    /// Handle's side, which has run the task itself: notes that the outcome is in the slot. No other thread will
    /// look at it.
    pub(crate) fn finish_own(&self) -> Option<Arc<Listener>> {
        // Ordering: relaxed. The outcome stays with this thread, and so does the listener.
        listener(self.0.fetch_or(DONE, Ordering::Relaxed))
    }

    /// Notes that the outcome is in the slot, when another thread has run the task for the handle's side, which
    /// waits.
    pub(crate) fn finish_delegated(&self) -> Option<Arc<Listener>> {
        listener(self.0.fetch_or(DONE, order::queue_leaves()))
    }

    /// Queue's side: lets go of a stale entry.
    pub(crate) fn leave_queue(&self) -> Left {
        left(self.0.fetch_or(QUEUE_GONE, order::queue_leaves()) & HANDLE_GONE)
    }

    /// Handle's side: lets go. `Last` means that the caller must drop the outcome, if it was not taken.
    #[inline]
    pub(crate) fn leave_handle(&self) -> Left {
        left(self.0.fetch_or(HANDLE_GONE, order::handle_leaves()) & QUEUE_GONE)
    }

    /// Either side: returns whether the task was started.
    pub(crate) fn is_started(&self) -> bool {
        // Ordering: relaxed. Nothing is read because of the answer.
        self.0.load(Ordering::Relaxed) & STARTED != 0
    }

    /// Either side: returns whether the task was neither started nor cancelled.
    pub(crate) fn will_run(&self) -> bool {
        // Ordering: relaxed. Nothing is read because of the answer.
        self.0.load(Ordering::Relaxed) & (STARTED | REVOKED) == 0
    }

    /// Handle's side, of a task that is done: lets go after it has taken the outcome, which `take` does. `Last` means that
    /// the slot belongs to the caller alone. Returns `None` if the task is not done.
    ///
    /// As a rule the queue's side is gone: it lets go when it delivers the outcome. Then it will not look at the slot any
    /// more, and this side need not tell it anything. That saves a write to a line that another thread has written last.
    #[inline]
    pub(crate) fn leave_handle_when_done<R>(&self, take: impl FnOnce() -> R) -> Option<(R, Left)> {
        let now = self.0.load(order::outcome_read());
        if now & DONE == 0 {
            return None;
        }
        let outcome = take();
        let left = if now & QUEUE_GONE == 0 { self.leave_handle() } else { Left::Last };
        Some((outcome, left))
    }

    /// Handle's side: returns whether the outcome can be read.
    #[inline]
    pub(crate) fn is_done(&self) -> bool {
        self.0.load(order::outcome_read()) & DONE != 0
    }

    /// Handle's side: registers the listener to notify when the task is done, once in a task's life. Returns `false`
    /// if it is done.
    pub(crate) fn listen(&self, listener: Arc<Listener>) -> bool {
        let address = Arc::into_raw(listener).expose_provenance();
        // Ordering: relaxed. The exchange below looks again.
        let mut now = self.0.load(Ordering::Relaxed);
        loop {
            debug_assert_eq!(now & LISTENER, 0, "a task has one listener");
            if now & DONE != 0 {
                // The reference is dropped here, because it never got into the word.
                drop(self::listener(address));
                return false;
            }
            match self.0.compare_exchange_weak(
                now,
                now | address,
                order::listener_publish(),
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(found) => now = found,
            }
        }
    }
}

impl State {
    /// For a part of what the handle waits for: wakes the thread that listens, if there is one. That thread then looks
    /// for parts that it could run.
    ///
    /// # Safety
    ///
    /// The word does not become done before this call returns.
    pub(crate) unsafe fn remind(&self) {
        let word = self.0.load(order::listener_read());
        let listener = ptr::with_exposed_provenance::<Listener>(word & LISTENER);
        // SAFETY: it came from `Arc::into_raw` in `listen`. Its reference belongs to the word until that is done,
        // which is not before this call returns.
        if let Some(listener) = unsafe { listener.as_ref() } {
            listener.remind();
        }
    }
}

fn left(other_side: usize) -> Left {
    if other_side == 0 { Left::Shared } else { Left::Last }
}

/// Takes over the listener's reference in a word: one that has just got `DONE`, or one that `listen` has not stored.
fn listener(word: usize) -> Option<Arc<Listener>> {
    let address = ptr::with_exposed_provenance::<Listener>(word & LISTENER);
    if address.is_null() {
        return None;
    }
    // SAFETY: it came from `Arc::into_raw` in `listen`, and its reference is taken over once: by the only thread that
    // sets `DONE`, or by `listen` itself if it never got into the word.
    Some(unsafe { Arc::from_raw(address) })
}
