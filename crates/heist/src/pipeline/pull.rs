//! A worker that has nothing to do goes to the source itself.

use super::cut::{Cutter, Said};
use super::desk::{Catch, Grant, Leave};
use super::frame::{Frame, Kit};
use super::lane::Load;
use super::source::Source;
use super::stage::Steps;
use crate::sync::pause;

/// Batches for so many nanoseconds of work are taken from the source at once, if it gives them as fast: enough that the
/// way there does not count, and little enough that the others need not wait for long. A guess.
const WORTH: u64 = 60_000;
/// But no more bytes than that, or the first would be out of the core's own caches when the last is cut. A guess.
const NEAR: usize = 128 << 10;
/// A worker that finds somebody at the source waits for so many looks before it rests: some tens of microseconds.
const LOOKS: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 2_000 };

impl<S, G> Frame<S, G>
where
    S: Source + Send,
    S::Item: Send,
    G: Steps<S::Item>,
    G::Out: Send,
{
    /// Takes batches from the source to the worker's lane. `false`: it has nothing to do here.
    pub(super) fn pull(&self, me: usize, kit: &mut Kit<S::Item, G::Out>) -> bool {
        let mut grant = match self.control.may_pull() {
            Leave::Go(grant) => grant,
            Leave::Busy => {
                let free = self.wait_for_source();
                kit.now = self.now();
                return free;
            }
            Leave::No => return false,
        };
        let most = self.worth(me, kit, grant.batches);
        let (lane, giver) = (&self.lanes[me].0, kit.giver.as_ref());
        let mut cutter = self.take_cutter();
        let give = |batch, last: bool| {
            lane.push(giver, batch);
            // The last one is for this worker. Before it, the next one may take its time.
            if !last {
                self.control.given(None);
            }
        };
        let catch = self.catch(&mut cutter, &mut grant, most, &mut kit.spares, give);
        self.put_cutter(cutter);
        let began = std::mem::replace(&mut kit.now, self.now());
        kit.cut_pace = (kit.now - began) / catch.batches.max(1);
        self.control.pulled(catch, false);
        true
    }

    /// Cuts at most so many batches, and gives them away: each is followed by another, or it is the last.
    pub(super) fn catch(
        &self,
        cutter: &mut Cutter<S>,
        grant: &mut Grant,
        most: usize,
        spares: &mut Vec<Load<S::Item>>,
        give: impl Fn(Load<S::Item>, bool),
    ) -> Catch {
        let (mut batches, mut items) = (0, 0);
        let (after, needs) = loop {
            let mut batch = self.blank(spares);
            let before = grant.taken;
            let said = cutter.cut(&mut batch.items, grant);
            let number = grant.next + batches;
            if batch.items.is_empty() {
                spares.push(batch);
                break said.after(number);
            }
            batch.number = number;
            batch.weight = grant.taken - before;
            items += batch.items.len() as u64;
            batches += 1;
            let enough = batches == most as u64 || self.control.is_off();
            let last = enough || !matches!(said, Said::More);
            give(batch, last);
            if last {
                break said.after(number);
            }
        };
        Catch { batches, items, weight: grant.taken, needs, after }
    }

    /// How many batches to take at once: they should take others no longer to wait for than this worker to process.
    fn worth(&self, me: usize, kit: &Kit<S::Item, G::Out>, room: usize) -> usize {
        let workers = self.lanes.len();
        let pace = self.lanes[me].0.pace();
        // What waits while the source takes its time should not be this worker's alone.
        if workers == 1 || !self.plan.steals || pace == 0 {
            return 1;
        }
        let worth = usize::try_from(WORTH / pace.max(kit.cut_pace)).unwrap_or(usize::MAX);
        let bytes = size_of::<S::Item>().saturating_mul(self.plan.batch);
        worth.min(room / (2 * workers)).min(NEAR / bytes.max(1)).max(1)
    }

    /// Somebody is at the source: soon gone, perhaps. Then it is worth another look.
    fn wait_for_source(&self) -> bool {
        (0..LOOKS).any(|_| {
            pause();
            !self.control.is_pulling()
        })
    }
}
