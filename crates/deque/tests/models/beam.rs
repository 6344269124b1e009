//! A deque of the classic kind (Chase and Lev), right, and with each of the classic mistakes.
//!
//! The deques of this crate differ, so these mistakes cannot be made in them. But their models must be able to
//! detect such mistakes. The correct form goes through the same models and holds.

use std::marker::PhantomData;

use heist_deque::Steal;
use heist_testkit::explore::{Model, RACE};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};

use crate::deques::{
    Owner, Thief, empty_pop, last_item, pop_and_reuse, push_and_steal, worker_goes_first,
};

/// A classic mistake.
pub(crate) trait Mistake: Send + Sync + 'static {
    /// `pop` stores the new bottom with release and reads top with acquire, with nothing between.
    const NO_FENCE: bool = false;
    /// `pop` takes one from an unsigned bottom and compares unsigned.
    const UNSIGNED: bool = false;
    /// The thief reads the slot and then claims it.
    const READ_FIRST: bool = false;
    /// `pop` takes a failed weak compare-exchange for the win of a thief.
    const WEAK: bool = false;
    /// The worker frees the slots when it is dropped, even if a thief uses them.
    const EARLY_FREE: bool = false;
    /// Release on push's store of bottom, but not on pop's.
    const RELAXED_BOTTOM: bool = false;
}

macro_rules! mistakes {
    ($($name:ident $($mistake:ident)?;)*) => {$(
        pub(crate) struct $name;
        impl Mistake for $name {
            $(const $mistake: bool = true;)?
        }
    )*};
}

mistakes! {
    Correct;
    NoFence NO_FENCE;
    Unsigned UNSIGNED;
    ReadFirst READ_FIRST;
    Weak WEAK;
    EarlyFree EARLY_FREE;
    RelaxedBottom RELAXED_BOTTOM;
}

struct Slot {
    /// The index for which the slot may next be written.
    turn: AtomicUsize,
    value: UnsafeCell<usize>,
}

struct Ring {
    top: AtomicUsize,
    bottom: AtomicUsize,
    slots: Vec<Slot>,
    /// Stands for the slots' memory: written when it is freed.
    memory: UnsafeCell<()>,
    /// The first weak compare-exchange fails spuriously.
    spurious: AtomicBool,
}

// SAFETY: whether sharing it is sound is what the models find out; loom checks each access.
unsafe impl Sync for Ring {}

impl Ring {
    fn slot(&self, index: usize) -> &Slot {
        self.memory.with(|_| ());
        &self.slots[index % self.slots.len()]
    }

    fn take(&self, index: usize) -> usize {
        // SAFETY: loom checks the access; that is what the model is for.
        let item = self.slot(index).value.with(|value| unsafe { *value });
        self.finish(index);
        item
    }

    fn finish(&self, index: usize) {
        let next = index.wrapping_add(self.slots.len());
        self.slot(index).turn.store(next, Ordering::Release);
    }
}

pub(crate) struct Worker<M: Mistake>(Arc<Ring>, PhantomData<M>);
pub(crate) struct Stealer<M>(Arc<Ring>, PhantomData<M>);

impl<M> Clone for Stealer<M> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), PhantomData)
    }
}

impl<M: Mistake> Owner<usize> for Worker<M> {
    type Thief = Stealer<M>;

    fn pair(capacity: usize) -> (Self, Stealer<M>) {
        let slot = |n| Slot { turn: AtomicUsize::new(n), value: UnsafeCell::new(usize::MAX) };
        let ring = Arc::new(Ring {
            top: AtomicUsize::new(0),
            bottom: AtomicUsize::new(0),
            slots: (0..capacity).map(slot).collect(),
            memory: UnsafeCell::new(()),
            spurious: AtomicBool::new(true),
        });
        (Self(ring.clone(), PhantomData), Stealer(ring, PhantomData))
    }

    fn push(&self, item: usize) -> Result<(), usize> {
        let bottom = self.0.bottom.load(Ordering::Relaxed);
        let slot = self.0.slot(bottom);
        if slot.turn.load(Ordering::Acquire) != bottom {
            return Err(item);
        }
        // SAFETY: loom checks the access; that is what the model is for.
        slot.value.with_mut(|value| unsafe { *value = item });
        self.0.bottom.store(bottom.wrapping_add(1), Ordering::Release);
        Ok(())
    }

    fn pop(&self) -> Option<usize> {
        let ring = &self.0;
        let store = if M::RELAXED_BOTTOM { Ordering::Relaxed } else { Ordering::Release };
        let bottom = ring.bottom.load(Ordering::Relaxed).wrapping_sub(1);
        ring.bottom.store(bottom, store);
        if !M::NO_FENCE {
            fence(Ordering::SeqCst);
        }
        let top = ring.top.load(Ordering::Acquire);
        let left = bottom.wrapping_sub(top) as isize;
        if left > 0 || (M::UNSIGNED && bottom > top) {
            // The index stays the owner's, so its turn stays as it is.
            // SAFETY: loom checks the access; that is what the model is for.
            return Some(ring.slot(bottom).value.with(|value| unsafe { *value }));
        }
        let next = top.wrapping_add(1);
        let lost = M::WEAK && left == 0 && ring.spurious.swap(false, Ordering::Relaxed);
        let won = left == 0
            && !lost
            && ring.top.compare_exchange(top, next, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        ring.bottom.store(bottom.wrapping_add(1), store);
        won.then(|| ring.take(bottom))
    }
}

impl<M: Mistake> Drop for Worker<M> {
    fn drop(&mut self) {
        if M::EARLY_FREE {
            self.0.memory.with_mut(|_| ());
        }
    }
}

impl<M: Mistake> Thief<usize> for Stealer<M> {
    fn steal(&self) -> Steal<usize> {
        let ring = &self.0;
        let top = ring.top.load(Ordering::Acquire);
        if !M::NO_FENCE {
            fence(Ordering::SeqCst);
        }
        let bottom = ring.bottom.load(Ordering::Acquire);
        if (bottom.wrapping_sub(top) as isize) <= 0 {
            return Steal::Empty;
        }
        // SAFETY: loom checks the access; that is what the model is for.
        let early = M::READ_FIRST.then(|| ring.slot(top).value.with(|value| unsafe { *value }));
        let next = top.wrapping_add(1);
        if ring.top.compare_exchange(top, next, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return Steal::Retry;
        }
        match early {
            Some(item) => {
                ring.finish(top);
                Steal::Success(item)
            }
            None => Steal::Success(ring.take(top)),
        }
    }
}

macro_rules! twins {
    ($($name:ident: $mistake:ident, $model:ident, $message:expr;)*) => {
        /// Each mistake in the model that shows it, the correct form in the same model, and what is reported of the
        /// mistake.
        pub(crate) const TWINS: &[(Model, Model, &str)] = &[$((
            Model {
                name: stringify!($name),
                run: $model::<Worker<$mistake>>,
                preemptions: None,
                floor: 1,
            },
            Model {
                name: concat!(stringify!($name), "_mended"),
                run: $model::<Worker<Correct>>,
                preemptions: None,
                floor: 1,
            },
            $message,
        )),*];
    };
}

twins! {
    beam_no_fence: NoFence, last_item, "lost or doubled";
    beam_unsigned: Unsigned, empty_pop, "nothing was pushed yet";
    beam_read_before_claim: ReadFirst, pop_and_reuse, RACE;
    beam_weak_exchange: Weak, last_item, "a pop that says None is final";
    beam_early_free: EarlyFree, worker_goes_first, RACE;
    beam_relaxed_bottom: RelaxedBottom, push_and_steal, RACE;
}
