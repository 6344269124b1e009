//! What a unit of work is: erased, executed at most once, small closures stored inline.
//!
//! A [`Task`] is what the queues carry; a [`TaskHandle`] is what its handle holds. `state` says how the
//! two sides share the slot.

mod state;
mod slot;
mod outcome;
mod kind;

#[cfg(not(any(loom, shuttle)))]
mod recycle;
/// The checkers see each slot made and freed.
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
pub(crate) use handle::{Awaited, Claimed, TaskHandle};
pub(crate) use kind::DetachedTask;
pub(crate) use outcome::Failure;
pub(crate) use promise::Promise;
pub(crate) use queued::{Started, Task};
pub(crate) use recycle::SlotLease;
pub(crate) use slot::{End, Refusal};
use slot::{Kind, Room, Slot};
use state::State;

/// A slot with nothing in its room.
#[inline]
fn make(kind: &'static Kind, state: State) -> NonNull<Slot> {
    let slot = recycle::take();
    // SAFETY: fresh or recycled memory for a slot, which nobody else knows.
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

/// With it may go a waker, whose drop is code of an executor's.
fn forget_listener(listener: Option<Arc<Listener>>) {
    if let Some(listener) = listener {
        contain(|| drop(listener));
    }
}

/// Drops the outcome and gives the slot back.
///
/// # Safety
///
/// The slot is the caller's alone, and holds an outcome.
#[inline]
unsafe fn dispose(slot: NonNull<Slot>, hook: Option<&PanicHook>) {
    // SAFETY: live.
    let kind = unsafe { Slot::kind(slot) };
    // SAFETY: an outcome that is the caller's.
    unsafe { (kind.discard)(slot, hook) };
    // SAFETY: empty, and the caller's alone.
    unsafe { recycle::give(slot) };
}
