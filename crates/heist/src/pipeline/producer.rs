//! The source, on a thread of its own.

use std::cell::Cell;

use super::frame::Frame;
use super::lane::{Giver, Load};
use super::plan::Distribution;
use super::source::Source;
use super::stage::Steps;

/// A lane of a [`Distribution::Hybrid`] is looked at for every so many of its batches.
const LOOK: u64 = 8;
/// Batches that are given out between two visits to the desk.
const MOST: usize = 64;

impl<S, G> Frame<S, G>
where
    S: Source + Send,
    S::Item: Send,
    G: Steps<S::Item>,
    G::Out: Send,
{
    /// Gives out the source's items until it ends, or the run does.
    pub(super) fn produce(&self) {
        let mut cutter = self.take_cutter();
        let givers = self.take_givers();
        let full = vec![Cell::new(false); self.lanes.len()];
        let mut spares = Vec::new();
        let mut granted = None;
        // The single queue is what it always was: one at a time.
        let most = if self.plan.distribution == Distribution::Shared { 1 } else { MOST };
        while let Some(mut grant) = granted.take().or_else(|| self.control.wait_to_pull()) {
            let most = grant.batches.min(most);
            let give = |batch, _| self.control.given(self.give(&givers, &full, batch));
            let catch = self.catch(&mut cutter, &mut grant, most, &mut spares, give);
            granted = self.control.pulled(catch, true);
        }
        self.put_cutter(cutter);
    }

    /// To whom it belongs by the plan. `None`: to all of them.
    fn give(
        &self,
        givers: &[Option<Giver<S::Item>>],
        full: &[Cell<bool>],
        batch: Load<S::Item>,
    ) -> Option<usize> {
        let turn = (batch.number % self.lanes.len() as u64) as usize;
        let lane = match self.plan.distribution {
            Distribution::Shared => None,
            Distribution::Pull | Distribution::RoundRobin => Some(turn),
            Distribution::Hybrid => {
                Some(turn).filter(|turn| !self.has_plenty(*turn, batch.number, full))
            }
            Distribution::LoadAware => Some(self.least_loaded(turn)),
        };
        match lane {
            Some(lane) => self.lanes[lane].0.push(givers[lane].as_ref(), batch),
            None => self.shared.0.push(None, batch),
        }
        lane
    }

    /// Has it half of what it would have if all were given out? Looked at now and then: the answer comes from another core.
    fn has_plenty(&self, lane: usize, batch: u64, full: &[Cell<bool>]) -> bool {
        if (batch / self.lanes.len() as u64).is_multiple_of(LOOK) {
            let plenty = (self.plan.in_flight / (2 * self.lanes.len())).max(1);
            full[lane].set(self.queued(lane) >= plenty);
        }
        full[lane].get()
    }

    /// Of several, the one whose turn it is, or the next.
    fn least_loaded(&self, turn: usize) -> usize {
        let (now, lanes) = (self.now(), self.lanes.len());
        let from_turn = (turn..lanes).chain(0..turn);
        from_turn
            .min_by_key(|lane| self.lanes[*lane].0.load(self.queued(*lane), now))
            .expect("a pool has a worker")
    }
}
