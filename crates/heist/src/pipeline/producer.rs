//! The source, on a thread of its own.

use super::control::Catch;
use super::frame::Frame;
use super::lane::Batch;
use super::plan::Distribution;
use super::source::Source;
use super::stage::Steps;

/// A lane has plenty if it has so many batches; a guess. See [`Distribution::Hybrid`].
const PLENTY: usize = 64;

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
        let mut spares = Vec::new();
        let mut granted = None;
        while let Some(mut grant) = granted.take().or_else(|| self.control.wait_to_pull()) {
            let mut batch = self.buffer(&mut spares);
            let left = grant.weight;
            let said = cutter.cut(&mut batch, &mut grant);
            let (items, weight) = (batch.len() as u64, left - grant.weight);
            let mut lane = None;
            if items == 0 {
                spares.push(batch);
            } else {
                lane = self.give(Batch { number: grant.next, weight, items: batch });
            }
            let batches = u64::from(items > 0);
            let (after, needs) = said.after(grant.next);
            granted =
                self.control.pulled(Catch { batches, items, weight, needs, after }, lane, true);
        }
        self.put_cutter(cutter);
    }

    /// To whom it belongs by the plan. `None`: to all of them.
    fn give(&self, batch: Batch<S::Item>) -> Option<usize> {
        let turn = (batch.number % self.lanes.len() as u64) as usize;
        let lane = match self.plan.distribution {
            Distribution::Shared => None,
            Distribution::Pull | Distribution::RoundRobin => Some(turn),
            Distribution::Hybrid => {
                Some(turn).filter(|turn| self.lanes[*turn].0.len() < self.plenty())
            }
            Distribution::LoadAware => Some(self.least_loaded(turn)),
        };
        match lane {
            Some(lane) => self.lanes[lane].0.push(batch),
            None => self.shared.0.push(batch),
        }
        lane
    }

    fn plenty(&self) -> usize {
        (self.plan.in_flight / (2 * self.lanes.len())).clamp(1, PLENTY)
    }

    /// Of several, the one whose turn it is, or the next.
    fn least_loaded(&self, turn: usize) -> usize {
        let (now, lanes) = (self.now(), self.lanes.len());
        let from_turn = (turn..lanes).chain(0..turn);
        from_turn.min_by_key(|lane| self.lanes[*lane].0.load(now)).expect("a pool has a worker")
    }
}
