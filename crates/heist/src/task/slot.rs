//! The memory of a task: 64 bytes, with room for a small closure and then for its result.

use std::any::Any;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use super::queued::Task;
use super::state::State;
use crate::panic::{PanicHook, Stopped};
use crate::sync::{Arc, UnsafeCell};

/// Closures and results of up to this size are stored in the slot; larger ones are boxed.
pub(crate) const ROOM: usize = 48;

/// The memory of one task. It is one cache line, aligned as one, so that two tasks never share a line.
#[repr(C, align(64))]
pub(crate) struct Slot {
    /// The functions for the types of the closure and the result. Written when the task is made, before another
    /// thread sees the slot.
    pub(super) kind: &'static Kind,
    pub(super) state: State,
    /// The closure, until the task was started; then the outcome, from `DONE` on. Touched by the side that started
    /// the task, and after `DONE` by the handle's side or by the side that lets go last.
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
    /// It was refused where it would have run, or has ended early, because it was cancelled.
    Refused,
    /// It stands for several tasks, and has counted the end of each.
    Counted,
}

impl End {
    /// Returns how a task ended that has unwound with that payload.
    pub(crate) fn unwound(payload: &(dyn Any + Send)) -> Self {
        if payload.is::<Stopped>() { Self::Refused } else { Self::Panicked }
    }
}

/// Why a task is not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Cancelled,
    Stopped,
}

/// Runs a task: see [`Kind::execute`].
pub(super) type Execute = unsafe fn(NonNull<Slot>, &Arc<PanicHook>) -> End;

/// What can be done with a task whose types were erased.
pub(super) struct Kind {
    /// Runs the closure and puts the outcome into the room. Requires: started by the caller.
    pub(super) execute: Execute,
    /// Runs the closure and drops the result, or passes the panic to the hook. `leaves` says whether something is
    /// left in the room. Requires: started by the caller, and no other thread will ever look.
    pub(super) execute_alone: Execute,
    /// Does `execute_alone` leave something to `discard`?
    pub(super) leaves: bool,
    /// Returns the group of a part: what it is a part of. Requires: the closure is in the room, and belongs to the
    /// caller.
    pub(super) group: Option<unsafe fn(NonNull<Slot>) -> usize>,
    /// Is it a job, a part of a fork? Its group is the root of the fork, and it is never refused.
    pub(super) is_job: bool,
    /// Does its end leave credit in the purse of its thread (`fork::purse`)?
    pub(super) credited: bool,
    /// Is it stolen by threads on the same NUMA node first? Other parts are taken from wherever they are.
    pub(super) near: bool,
    /// Is it counted as a task when it is published, and when it has ended? Not if it stands for tasks that are counted.
    pub(super) counts: bool,
    /// Drops the closure and puts a refusal into the room. Returns how many tasks it stands for. Requires: started by
    /// the caller.
    pub(super) refuse: unsafe fn(NonNull<Slot>, Refusal) -> u64,
    /// Notifies those who wait for a task that was run or refused, if they do not wait by its handle. Requires: run,
    /// refused or released by the caller, which has counted that.
    pub(super) settle: Option<unsafe fn(NonNull<Slot>)>,
    /// Takes the task out of the slot, as one without a handle. Requires: started by the caller. Only for tasks whose
    /// outcome is not left in the slot; the others stay there when another thread is to run them.
    pub(super) release: Option<unsafe fn(NonNull<Slot>) -> Task>,
    /// Returns the name of the task in traces: the type of the closure.
    pub(super) name: fn() -> &'static str,
    /// Drops an outcome that no handle takes; panics meanwhile go to the hook. Requires: the outcome is in the room
    /// and belongs to the caller.
    pub(super) discard: unsafe fn(NonNull<Slot>, Option<&PanicHook>),
}

impl Slot {
    /// Returns the kind of the task.
    ///
    /// # Safety
    ///
    /// The slot is alive.
    #[inline(always)]
    pub(super) unsafe fn kind(slot: NonNull<Self>) -> &'static Kind {
        // SAFETY: alive, and `kind` is not written once the slot is shared.
        unsafe { (*slot.as_ptr()).kind }
    }

    /// Returns the state of the task.
    ///
    /// # Safety
    ///
    /// The slot is alive for as long as the reference is used.
    #[inline(always)]
    pub(super) unsafe fn state<'a>(slot: NonNull<Self>) -> &'a State {
        // SAFETY: the caller's promise.
        let slot = unsafe { slot.as_ref() };
        slot.memory.with(|_| ());
        &slot.state
    }

    /// Puts a value into the room, in a box if it is too large.
    ///
    /// # Safety
    ///
    /// The slot is alive, the room belongs to the caller, and it is empty.
    #[inline(always)]
    pub(super) unsafe fn put<X>(slot: NonNull<Self>, value: X) {
        // SAFETY: alive.
        let room = unsafe { &(*slot.as_ptr()).room };
        room.with_mut(|room| {
            if const { fits::<X>() } {
                // SAFETY: the room belongs to the caller, and is large enough and aligned for an `X`.
                unsafe { room.cast::<X>().write(value) };
            } else {
                // SAFETY: the room belongs to the caller, and is large enough and aligned for a pointer.
                unsafe { room.cast::<*mut X>().write(Box::into_raw(Box::new(value))) };
            }
        });
    }

    /// Calls a function with what [`put`](Self::put) has put there.
    ///
    /// # Safety
    ///
    /// The slot is alive, and the room belongs to the caller and holds an `X`.
    pub(super) unsafe fn look<X, R>(slot: NonNull<Self>, f: impl FnOnce(&X) -> R) -> R {
        // SAFETY: alive.
        let room = unsafe { &(*slot.as_ptr()).room };
        room.with(|room| {
            // SAFETY: the room belongs to the caller and holds an `X`, by the caller's promise.
            let place = unsafe { place_of::<X>(room.cast_mut()) };
            // SAFETY: the `X` in the room, or in its box, is alive and belongs to the caller.
            f(unsafe { &*place })
        })
    }

    /// Calls a function with what [`put`](Self::put) has put there, which it may change.
    ///
    /// # Safety
    ///
    /// The slot is alive, and the room belongs to the caller and holds an `X`.
    #[inline(always)]
    pub(super) unsafe fn change<X, R>(slot: NonNull<Self>, f: impl FnOnce(&mut X) -> R) -> R {
        // SAFETY: alive.
        let room = unsafe { &(*slot.as_ptr()).room };
        room.with_mut(|room| {
            // SAFETY: the room belongs to the caller and holds an `X`, by the caller's promise.
            let place = unsafe { place_of::<X>(room) };
            // SAFETY: the `X` in the room, or in its box, is alive and belongs to the caller alone.
            f(unsafe { &mut *place })
        })
    }

    /// Moves out what [`put`](Self::put) has put there.
    ///
    /// # Safety
    ///
    /// The slot is alive, and the room belongs to the caller and holds an `X`, which is moved out once.
    #[inline(always)]
    pub(super) unsafe fn take<X>(slot: NonNull<Self>) -> X {
        // SAFETY: alive.
        let room = unsafe { &(*slot.as_ptr()).room };
        room.with(|room| {
            if const { fits::<X>() } {
                // SAFETY: the room holds an `X`, which is moved out once.
                unsafe { room.cast::<X>().read() }
            } else {
                // SAFETY: the room holds a pointer to an `X`.
                let boxed = unsafe { room.cast::<*mut X>().read() };
                // SAFETY: it came from a box, and is moved out once.
                *unsafe { Box::from_raw(boxed) }
            }
        })
    }
}

/// Returns where the `X` of a room is: in the room itself, or in its box.
///
/// # Safety
///
/// The room belongs to the caller, and [`Slot::put`] has put an `X` there.
#[inline(always)]
unsafe fn place_of<X>(room: *mut Room) -> *mut X {
    if const { fits::<X>() } {
        room.cast()
    } else {
        // SAFETY: the room holds the pointer that `put` has written for an `X`.
        unsafe { room.cast::<*mut X>().read() }
    }
}

/// Returns whether an `X` is stored in the slot itself. Asked in a `const` block, so that only the code for one answer is
/// compiled.
pub(super) const fn fits<X>() -> bool {
    size_of::<X>() <= ROOM && align_of::<X>() <= align_of::<Room>()
}

#[cfg(not(any(loom, shuttle)))]
const _: () = assert!(size_of::<Slot>() == 64, "a slot is a cache line");
