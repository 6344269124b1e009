//! The kinds of starters. A starter is a detached task with a handle, by which whoever waits for the whole can claim it. It is
//! in its slot as `Some` until it is finished or released.

use std::ptr::NonNull;

use super::kind::DetachedTask;
use super::queued::Task;
use super::slot::{End, Kind, Refusal, Slot, fits};
use crate::panic::PanicHook;
use crate::sync::Arc;

/// Implements [`Kind::execute`] for starters.
unsafe fn run_starter<E: DetachedTask>(slot: NonNull<Slot>, hook: &Arc<PanicHook>) -> End {
    let run = |starter: &mut Option<E>| starter.as_mut().map(|starter| starter.run(hook));
    // SAFETY: started by the caller, so the starter is in the slot and belongs to the caller.
    unsafe { Slot::change(slot, run) }.expect("it is run or refused once")
}

/// Implements [`Kind::refuse`] for starters.
unsafe fn refuse_starter<E: DetachedTask>(slot: NonNull<Slot>, refusal: Refusal) -> u64 {
    let refuse = |starter: &mut Option<E>| starter.as_mut().map(|starter| starter.refuse(refusal));
    // SAFETY: started by the caller, so the starter is in the slot and belongs to the caller.
    unsafe { Slot::change(slot, refuse) }.expect("it is run or refused once")
}

/// Implements [`Kind::settle`] for starters.
unsafe fn settle_starter<E: DetachedTask>(slot: NonNull<Slot>) {
    // SAFETY: run, refused or released by the caller, to whom the room still belongs.
    if let Some(starter) = unsafe { Slot::change(slot, Option::<E>::take) } {
        starter.finish();
    }
}

/// Implements [`Kind::release`] for starters.
unsafe fn release_starter<E: DetachedTask>(slot: NonNull<Slot>) -> Task {
    // SAFETY: started by the caller, so the starter is in the slot and belongs to the caller.
    let starter = unsafe { Slot::change(slot, Option::<E>::take) };
    let starter = starter.expect("it is run, refused or released once");
    // SAFETY: what it borrows stays valid until it is finished: `Task::starter` was given something that borrows nothing,
    // and the caller of `Task::claimable_part` has promised that.
    unsafe { Task::detached_borrowing(starter) }
}

/// Implements [`Kind::group`] for parts of a scope that have a handle.
unsafe fn group_of_claimable<E: DetachedTask>(slot: NonNull<Slot>) -> usize {
    let group = |part: &Option<E>| part.as_ref().map(E::group);
    // SAFETY: the part is in the slot and belongs to the caller, by the caller's promise.
    unsafe { Slot::look(slot, group) }.expect("it was not started, or was just started")
}

/// Implements [`Kind::discard`] for starters.
unsafe fn discard_starter<E: DetachedTask>(slot: NonNull<Slot>, _: Option<&PanicHook>) {
    // SAFETY: the room belongs to the caller, and the functions above leave an `Option` there.
    if let Some(starter) = unsafe { Slot::take::<Option<E>>(slot) } {
        starter.finish();
    }
}

/// Returns the kind of a starter.
pub(super) fn of_starter<E: DetachedTask + 'static>() -> &'static Kind {
    const {
        assert!(
            fits::<Option<E>>(),
            "a starter needs no box: nobody takes it out of a stale entry"
        );
        &Kind {
            execute: run_starter::<E>,
            execute_alone: run_starter::<E>,
            leaves: true,
            group: None,
            is_job: false,
            credited: false,
            near: false,
            counts: true,
            refuse: refuse_starter::<E>,
            settle: Some(settle_starter::<E>),
            release: Some(release_starter::<E>),
            name: E::name,
            discard: discard_starter::<E>,
        }
    }
}

/// Returns the kind of a part of a scope that has a handle. It is a starter of nothing but itself, and a job.
pub(super) fn of_claimable_part<E: DetachedTask>() -> &'static Kind {
    const {
        assert!(fits::<Option<E>>(), "it needs no box: nobody takes it out of a stale entry");
        assert!(
            E::JOB && !E::CREDITED,
            "its end leaves no credit: it may run where nobody returns that"
        );
        &Kind {
            execute: run_starter::<E>,
            execute_alone: run_starter::<E>,
            leaves: true,
            group: Some(group_of_claimable::<E>),
            is_job: true,
            credited: false,
            near: false,
            counts: true,
            refuse: refuse_starter::<E>,
            settle: Some(settle_starter::<E>),
            release: Some(release_starter::<E>),
            name: E::name,
            discard: discard_starter::<E>,
        }
    }
}
