//! Where a task lives: 64 bytes, with room for a small closure and then for its result.

use std::mem::MaybeUninit;
use std::ptr::NonNull;

use super::state::State;
use crate::panic::PanicHook;
use crate::sync::{Arc, UnsafeCell};

/// Closures and results up to this size lie in the slot; larger ones are boxed.
pub(crate) const ROOM: usize = 48;

/// A slot is a cache line, aligned as one, so that two tasks never share one.
#[repr(C, align(64))]
pub(crate) struct Slot {
    /// What the closure and the result are. Written when the task is made, before anybody else
    /// sees the slot.
    pub(super) kind: &'static Kind,
    pub(super) state: State,
    /// The closure, until somebody has started it; then the outcome, from `DONE` on. Touched by the
    /// side that started the task, and after `DONE` by the handle's side or by the last one.
    pub(super) room: UnsafeCell<Room>,
    /// Stands for the slot's memory, so that a model sees its use and its end. It takes no space.
    pub(super) memory: UnsafeCell<()>,
}

#[repr(C, align(16))]
pub(super) struct Room(MaybeUninit<[u8; ROOM]>);

impl Room {
    pub(super) const fn new() -> Self {
        Self(MaybeUninit::uninit())
    }
}

/// How a task ended.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Completed,
    Panicked,
}

/// Why a task is not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Cancelled,
    Stopped,
}

/// What can be done to a task whose types are forgotten.
pub(super) struct Kind {
    /// Runs the closure and leaves the outcome. Needs: started, by the caller.
    pub(super) execute: unsafe fn(NonNull<Slot>, &Arc<PanicHook>) -> End,
    /// Runs the closure and drops the result, or tells the hook of the panic; whether something is
    /// left in the room, `leaves` says. Needs: started, by the caller, and nobody else will ever look.
    pub(super) execute_alone: unsafe fn(NonNull<Slot>, &Arc<PanicHook>) -> End,
    /// Does `execute_alone` leave something to `discard`?
    pub(super) leaves: bool,
    /// For a part of a fork, which is never refused: what it descends from. Needs: started, by the
    /// caller.
    pub(super) root: Option<unsafe fn(NonNull<Slot>) -> usize>,
    /// Drops the closure and leaves a refusal as the outcome. How many tasks were in it? Needs:
    /// started, by the caller.
    pub(super) refuse: unsafe fn(NonNull<Slot>, Refusal) -> u64,
    /// Drops the outcome, which nobody wants; what panics meanwhile goes to the hook. Needs: an
    /// outcome that is there and the caller's.
    pub(super) discard: unsafe fn(NonNull<Slot>, Option<&PanicHook>),
}

impl Slot {
    /// # Safety
    ///
    /// The slot is live.
    #[inline(always)]
    pub(super) unsafe fn kind(slot: NonNull<Self>) -> &'static Kind {
        // SAFETY: live, and `kind` is not written once the slot is shared.
        unsafe { (*slot.as_ptr()).kind }
    }

    /// # Safety
    ///
    /// The slot is live for as long as the reference is used.
    #[inline(always)]
    pub(super) unsafe fn state<'a>(slot: NonNull<Self>) -> &'a State {
        // SAFETY: as the caller says.
        let slot = unsafe { slot.as_ref() };
        slot.memory.with(|_| ());
        &slot.state
    }

    /// Puts a value into the room, or a box with it.
    ///
    /// # Safety
    ///
    /// The slot is live, the room is the caller's, and what was in it has been taken out.
    #[inline(always)]
    pub(super) unsafe fn put<X>(slot: NonNull<Self>, value: X) {
        // SAFETY: live.
        let room = unsafe { &(*slot.as_ptr()).room };
        room.with_mut(|room| {
            if fits::<X>() {
                // SAFETY: the room is the caller's, large enough and aligned for an `X`.
                unsafe { room.cast::<X>().write(value) };
            } else {
                // SAFETY: likewise for a pointer.
                unsafe { room.cast::<*mut X>().write(Box::into_raw(Box::new(value))) };
            }
        });
    }

    /// Looks at what [`put`](Self::put) put there.
    ///
    /// # Safety
    ///
    /// The slot is live, the room is the caller's and holds an `X`.
    pub(super) unsafe fn look<X, R>(slot: NonNull<Self>, f: impl FnOnce(&X) -> R) -> R {
        // SAFETY: live.
        let room = unsafe { &(*slot.as_ptr()).room };
        room.with(|room| {
            let place = if fits::<X>() {
                room.cast::<X>()
            } else {
                // SAFETY: a pointer to one is there.
                unsafe { room.cast::<*const X>().read() }
            };
            // SAFETY: an `X` is there.
            f(unsafe { &*place })
        })
    }

    /// Takes out what [`put`](Self::put) put there.
    ///
    /// # Safety
    ///
    /// The slot is live, the room is the caller's and holds an `X`, which is taken once.
    #[inline(always)]
    pub(super) unsafe fn take<X>(slot: NonNull<Self>) -> X {
        // SAFETY: live.
        let room = unsafe { &(*slot.as_ptr()).room };
        room.with(|room| {
            if fits::<X>() {
                // SAFETY: an `X` is there, and is taken once.
                unsafe { room.cast::<X>().read() }
            } else {
                // SAFETY: a pointer to one is there.
                let boxed = unsafe { room.cast::<*mut X>().read() };
                // SAFETY: it came from a box, and is taken once.
                *unsafe { Box::from_raw(boxed) }
            }
        })
    }
}

/// Does it lie in the slot?
const fn fits<X>() -> bool {
    size_of::<X>() <= ROOM && align_of::<X>() <= align_of::<Room>()
}

#[cfg(not(any(loom, shuttle)))]
const _: () = assert!(size_of::<Slot>() == 64, "a slot is a cache line");
