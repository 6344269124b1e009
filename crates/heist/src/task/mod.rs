//! A task: a type-erased closure that runs at most once. Small closures are stored inline.
//!
//! A [`Task`] is what the queues carry; a [`TaskHandle`] is what the handle of a task holds. `state` says how the
//! two sides share the slot.

mod control;
mod state;
mod slot;
mod outcome;
mod kind;
mod starter;

/// Futures have such tasks, and a model.
#[cfg(any(feature = "futures", all(test, loom)))]
mod latest;

/// Without recycling there are no slabs, but the checkers see how they are freed.
#[cfg_attr(any(loom, shuttle), allow(dead_code))]
pub(crate) mod returned;
#[cfg(not(any(loom, shuttle)))]
mod recycle;
/// Allocates and frees each slot, so that the checkers see it.
#[cfg(any(loom, shuttle))]
#[path = "fresh.rs"]
mod recycle;

mod handle;
pub(crate) mod listener;
mod queued;
mod promise;

use std::ptr::NonNull;

use crate::panic::{PanicHook, contain};
use crate::sync::{Arc, UnsafeCell};
use crate::task::listener::Listener;
pub(crate) use control::Control;
pub(crate) use handle::{Awaited, Claimed, TaskHandle};
pub(crate) use kind::{DetachedTask, JobKind};
#[cfg(any(feature = "futures", all(test, loom)))]
pub(crate) use latest::Latest;
pub(crate) use outcome::Failure;
pub(crate) use promise::{Promise, Reminder};
pub(crate) use queued::{Ended, Started, Task};
pub(crate) use recycle::{
    SlotLease, hold as hold_depots, prefetch_next, release_held as release_depots, settle,
};
pub(crate) use slot::{End, Refusal};
use slot::{Kind, Room, Slot};
use state::State;

/// Returns a slot with an empty room. Every slot comes from here, and hence from [`recycle::take`].
#[inline]
fn make(kind: &'static Kind, state: State) -> NonNull<Slot> {
    let slot = recycle::take();
    // SAFETY: fresh or recycled memory for a slot, which no other thread knows.
    unsafe {
        slot.write(Slot {
            kind,
            state,
            room: UnsafeCell::new(Room::new()),
            memory: UnsafeCell::new(()),
        });
    }
    slot
}

/// Drops a listener. It may hold a waker, whose drop is code of an executor.
fn forget_listener(listener: Option<Arc<Listener>>) {
    if let Some(listener) = listener {
        contain(|| drop(listener));
    }
}

/// Drops the outcome and frees the slot.
///
/// # Safety
///
/// The slot belongs to the caller alone and holds an outcome.
#[inline]
unsafe fn dispose(slot: NonNull<Slot>, hook: Option<&PanicHook>) {
    // SAFETY: the slot belongs to the caller, so it is alive.
    let kind = unsafe { Slot::kind(slot) };
    // SAFETY: the outcome is in the slot and belongs to the caller.
    unsafe { (kind.discard)(slot, hook) };
    // SAFETY: the slot came from `make`, the outcome was taken out of its room, and it belongs to the caller alone.
    unsafe { recycle::give(slot) };
}
