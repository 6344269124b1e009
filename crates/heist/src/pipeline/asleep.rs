//! Whoever wants the results of a pipeline, asleep; and who wakes it.
//!
//! A worker that has put results into the mail looks at a word, and only if that says so comes to the desk. The fence that this
//! takes is, where the system has one for others, on the side of the one who sleeps.

use super::control::Control;
use super::desk::{Calls, Desk, Freed, Sleeper};
use crate::order;
use crate::sync::{Ordering, full_fence, heavy_fence, light_fence, lock};
use crate::task::{Promise, TaskHandle};

// What whoever wants the results does.
pub(super) const AWAKE: usize = 0;
/// It looks by itself, soon.
const DOZING: usize = 1;
/// It must be woken.
const ASLEEP: usize = 2;

impl Control {
    /// The results of that batch are in the mail.
    #[inline]
    pub(crate) fn put(&self, batch: u64, unsaid: &mut usize) {
        if self.light {
            light_fence(order::PUT)
        } else {
            full_fence(order::PUT)
        }
        // Ordering: relaxed, after the fence. Whoever sleeps deep and is not seen to has found what is in the mail.
        match self.hints.0.caller.0.load(Ordering::Relaxed) {
            AWAKE => *unsaid = 0,
            DOZING if *unsaid + 1 < self.share_of_bound() => *unsaid += 1,
            _ => {
                *unsaid = 0;
                self.call(batch);
            }
        }
    }

    /// Wakes whoever wants the results, if that is the one.
    #[cold]
    fn call(&self, batch: u64) {
        let mut calls = Calls::default();
        let mut desk = lock(&self.desk.0);
        let wanted =
            |caller: &Sleeper| !self.rules.ordered || !caller.deep || batch == caller.wanted;
        if desk.caller.as_ref().is_some_and(wanted) {
            calls.wake[0] = self.wake(&mut desk);
        }
        drop(desk);
        self.make(calls);
    }

    pub(super) fn wake(&self, desk: &mut Desk) -> Option<Promise<()>> {
        self.hints.0.caller.0.store(AWAKE, Ordering::Relaxed);
        desk.caller.take().map(|caller| caller.promise)
    }

    /// There is no room, and nothing to do for somebody who could: that waits for whoever dozes over the results.
    pub(super) fn hurry(&self, desk: &mut Desk, calls: &mut Calls) {
        if desk.caller.as_ref().is_some_and(|caller| !caller.deep) {
            calls.wake[0] = self.wake(desk);
        }
    }

    /// Whoever wants the results has found none, and `wanted` is the next batch that it wants: it sleeps, or, not `deep`,
    /// dozes, and looks by itself soon. It must look into the mail once more before it does, and [rise](Self::rise)
    /// afterwards. `None`: it is over.
    pub(crate) fn sleep(
        &self,
        freed: &Freed,
        wanted: u64,
        deep: bool,
    ) -> Option<TaskHandle<Vec<()>>> {
        let mut calls = Calls::default();
        let mut desk = lock(&self.desk.0);
        self.note_freed(&mut desk, freed, &mut calls);
        let handle = (!desk.is_over(&self.rules, wanted)).then(|| {
            let (promise, handle) = Promise::new();
            desk.caller = Some(Sleeper { promise, wanted, deep });
            let state = if deep { ASLEEP } else { DOZING };
            self.hints.0.caller.0.store(state, Ordering::Relaxed);
            handle
        });
        drop(desk);
        self.make(calls);
        match (deep, self.light) {
            // It finds out soon enough.
            (false, _) => {}
            (true, true) => heavy_fence(order::ASLEEP),
            (true, false) => full_fence(order::ASLEEP),
        }
        handle
    }

    /// Whoever wants the results is awake, for whatever reason.
    pub(crate) fn wake_reason(&self) {
        drop(self.wake(&mut lock(&self.desk.0)));
    }
}
