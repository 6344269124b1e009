//! Who has a hold on a task, and how far it has come: one word.
//!
//! Two sides hold a slot: the *queue's* side (whoever takes the task out of a queue) and the
//! *handle's*. Each lets go once; the second one frees the slot. Either may run the task: the one
//! that sets `STARTED`.

use std::ptr;

use crate::order;
use crate::sync::{Arc, AtomicUsize, Ordering};
use crate::task::listener::Listener;

/// Somebody has taken it upon itself to run or to refuse the task; the closure is theirs.
const STARTED: usize = 1;
/// The outcome is in the slot.
const DONE: usize = 2;
/// The queue's side has let go.
const QUEUE_GONE: usize = 4;
/// The handle's side has let go.
const HANDLE_GONE: usize = 8;
/// The rest is the address of the listener that the handle's side has left, or zero. Its count of
/// references belongs to the word until `DONE`, and from then on to the thread that set `DONE`.
const LISTENER: usize = !15;

pub(crate) struct State(AtomicUsize);

/// What the queue's side finds when it wants to run a task.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// It is ours, and nobody else will ever look at it.
    Alone,
    /// It is ours; the handle's side may be waiting.
    Ours,
    /// The handle's side has run it. Let go.
    Stale,
}

/// What a side finds when it lets go.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// The other side still has it.
    Shared,
    /// The slot is the caller's alone.
    Last,
}

impl State {
    /// Of a task in a queue, with a handle.
    pub(crate) fn queued() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// Of a task in a queue, without a handle.
    pub(crate) fn alone() -> Self {
        Self(AtomicUsize::new(HANDLE_GONE))
    }

    /// Of a task that no queue has and that somebody will do: a promise.
    pub(crate) fn promised() -> Self {
        Self(AtomicUsize::new(STARTED))
    }

    /// Queue's side: may we run it?
    #[inline]
    pub(crate) fn start(&self) -> Start {
        let now = self.0.load(order::start_alone());
        // A listener that was left behind needs looking after: `finish` does.
        if now == HANDLE_GONE {
            return Start::Alone;
        }
        if now & STARTED == 0 && self.claim() { Start::Ours } else { Start::Stale }
    }

    /// Handle's side: may we run it?
    ///
    /// Whoever wins reads a closure that it could read before: the queue has handed it over, or the
    /// spawn that also made the handle. But it will write where somebody who has put it back has looked.
    #[inline]
    pub(crate) fn claim(&self) -> bool {
        self.0.fetch_or(STARTED, order::claim()) & STARTED == 0
    }

    /// Queue's side, which has started it and only looked: somebody else is to run it.
    pub(crate) fn postpone(&self) {
        self.0.fetch_and(!STARTED, order::postpone());
    }

    /// Queue's side: the outcome is in the slot, and we let go. `Last`: it is for nobody, drop it.
    #[inline]
    pub(crate) fn finish(&self) -> (Left, Option<Arc<Listener>>) {
        let before = self.0.fetch_or(DONE | QUEUE_GONE, order::queue_leaves());
        (left(before & HANDLE_GONE), listener(before))
    }

    /// Handle's side, which has run the task: the outcome is in the slot. Nobody else will look at
    /// it.
    pub(crate) fn finish_own(&self) -> Option<Arc<Listener>> {
        // Ordering: relaxed. The outcome stays with this thread, and so does the listener.
        listener(self.0.fetch_or(DONE, Ordering::Relaxed))
    }

    /// Likewise, where another thread has run the task for the handle's side, which waits.
    pub(crate) fn finish_delegated(&self) -> Option<Arc<Listener>> {
        listener(self.0.fetch_or(DONE, order::queue_leaves()))
    }

    /// Queue's side lets go of a stale entry.
    pub(crate) fn leave_queue(&self) -> Left {
        left(self.0.fetch_or(QUEUE_GONE, order::queue_leaves()) & HANDLE_GONE)
    }

    /// Handle's side lets go. `Last`: the outcome, if it is still there, is the caller's to drop.
    #[inline]
    pub(crate) fn leave_handle(&self) -> Left {
        left(self.0.fetch_or(HANDLE_GONE, order::handle_leaves()) & QUEUE_GONE)
    }

    /// Either side: has somebody started it?
    pub(crate) fn is_started(&self) -> bool {
        // Ordering: relaxed. Nothing is read because of it.
        self.0.load(Ordering::Relaxed) & STARTED != 0
    }

    /// Handle's side: is the outcome there to be read?
    #[inline]
    pub(crate) fn is_done(&self) -> bool {
        self.0.load(order::outcome_read()) & DONE != 0
    }

    /// Handle's side: tell this one when it is done. Once in a task's life. `false`: it is done.
    pub(crate) fn listen(&self, listener: Arc<Listener>) -> bool {
        let address = Arc::into_raw(listener).expose_provenance();
        // Ordering: relaxed. The exchange below looks again.
        let mut now = self.0.load(Ordering::Relaxed);
        loop {
            debug_assert_eq!(now & LISTENER, 0, "a task has one listener");
            if now & DONE != 0 {
                // Not ours to let lie: it never was in the word.
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

fn left(other_side: usize) -> Left {
    if other_side == 0 { Left::Shared } else { Left::Last }
}

/// Takes the listener's reference out of a word that has just been replaced by `DONE`.
fn listener(word: usize) -> Option<Arc<Listener>> {
    let address = ptr::with_exposed_provenance::<Listener>(word & LISTENER);
    if address.is_null() {
        return None;
    }
    // SAFETY: it came from `Arc::into_raw` in `listen`, and only one thread sets `DONE`, which is
    // what hands the reference on.
    Some(unsafe { Arc::from_raw(address) })
}
