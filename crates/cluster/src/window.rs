//! What the coordinator knows of the batches in flight, and which result is delivered when. No network, no clock.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::error::ClusterError;

/// The number of recent batch times of which the median is taken.
const RECENT: usize = 101;

/// A batch without a result.
pub(crate) struct Outstanding {
    pub(crate) payload: Bytes,
    first_sent: Instant,
    last_sent: Instant,
    /// Part of the message's identity: the server discards a message with a known one.
    attempt: u32,
    /// The nodes that have started it.
    nodes: Vec<String>,
    /// Starts that do not count against the limit, because the coordinator has caused them.
    excused: usize,
}

impl Outstanding {
    fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.first_sent)
    }

    /// Returns what is sent if the batch was sent before.
    pub(crate) fn resent(&self, number: u64) -> Dispatch {
        Dispatch { number, attempt: self.attempt, again: true, payload: self.payload.clone() }
    }
}

/// A batch that is to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Dispatch {
    pub(crate) number: u64,
    pub(crate) attempt: u32,
    /// Another worker may have it: whoever gets it asks before the start.
    pub(crate) again: bool,
    pub(crate) payload: Bytes,
}

/// What is delivered: the results of a batch, or the error that takes their place.
pub(crate) type Outcome = Result<Bytes, ClusterError>;

/// Whether a result was the first of its batch.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Finished {
    First,
    Duplicate,
}

/// What becomes of a batch that was delivered again.
#[derive(Debug)]
#[must_use]
pub(crate) enum Verdict {
    Start,
    NotWanted,
    /// It was lost by all of these nodes, and that is enough.
    Poison(Vec<String>),
}

/// The batches in flight.
pub(crate) struct Window {
    ordered: bool,
    outstanding: BTreeMap<u64, Outstanding>,
    /// Results that can be delivered, or that wait for those before them.
    finished: BTreeMap<u64, Outcome>,
    /// If ordered, the batch whose results are delivered next.
    next: u64,
    recent: Vec<Duration>,
    recent_at: usize,
}

impl Window {
    pub(crate) fn new(ordered: bool) -> Self {
        Self {
            ordered,
            outstanding: BTreeMap::new(),
            finished: BTreeMap::new(),
            next: 0,
            recent: Vec::new(),
            recent_at: 0,
        }
    }

    /// Adds a batch that is sent now.
    pub(crate) fn insert(&mut self, number: u64, payload: Bytes, now: Instant) -> Dispatch {
        let dispatch = Dispatch { number, attempt: 0, again: false, payload: payload.clone() };
        let batch = Outstanding {
            payload,
            first_sent: now,
            last_sent: now,
            attempt: 0,
            nodes: Vec::new(),
            excused: 0,
        };
        self.outstanding.insert(number, batch);
        dispatch
    }

    pub(crate) fn get(&self, number: u64) -> Option<&Outstanding> {
        self.outstanding.get(&number)
    }

    /// Notes that a node has started a batch.
    pub(crate) fn started(&mut self, number: u64, node: &str) {
        if let Some(batch) = self.outstanding.get_mut(&number) {
            batch.nodes.push(node.to_owned());
        }
    }

    /// Decides whether a batch that was delivered before may be started. It is lost for good if it was started `most` times. The
    /// answer is no start: whoever has asked may not wait for it any more, if this process was stopped for example.
    pub(crate) fn ask(&self, number: u64, most: usize) -> Verdict {
        let Some(batch) = self.outstanding.get(&number) else { return Verdict::NotWanted };
        if batch.nodes.len() >= most.saturating_add(batch.excused) {
            return Verdict::Poison(batch.nodes.clone());
        }
        Verdict::Start
    }

    /// Notes the outcome of a batch.
    pub(crate) fn finish(&mut self, number: u64, outcome: Outcome, now: Instant) -> Finished {
        let Some(batch) = self.outstanding.remove(&number) else { return Finished::Duplicate };
        let took = batch.age(now);
        if self.recent.len() < RECENT {
            self.recent.push(took);
        } else {
            self.recent[self.recent_at] = took;
            self.recent_at = (self.recent_at + 1) % RECENT;
        }
        self.finished.insert(number, outcome);
        Finished::First
    }

    /// Notes the outcome of a batch that was never sent, because it is known.
    pub(crate) fn finish_known(&mut self, number: u64, outcome: Outcome) {
        self.finished.insert(number, outcome);
    }

    /// Takes the next outcome that can be delivered, with the number of its batch.
    pub(crate) fn deliverable(&mut self) -> Option<(u64, Outcome)> {
        let entry = self.finished.first_entry()?;
        if self.ordered && *entry.key() != self.next {
            return None;
        }
        let (number, outcome) = entry.remove_entry();
        self.next = number + 1;
        Some((number, outcome))
    }

    /// Returns how many batches have no result.
    pub(crate) fn outstanding(&self) -> usize {
        self.outstanding.len()
    }

    /// Returns whether every batch was delivered.
    pub(crate) fn is_empty(&self) -> bool {
        self.outstanding.is_empty() && self.finished.is_empty()
    }

    /// Returns all batches without a result, to be sent again with the same identities: the server may have lost them.
    pub(crate) fn resend_all(&mut self, now: Instant) -> Vec<Dispatch> {
        let all = self.outstanding.iter_mut().map(|(number, batch)| {
            batch.last_sent = now;
            // A node that has it may go on with it.
            batch.excused += 1;
            batch.resent(*number)
        });
        all.collect()
    }

    /// Returns whether a batch was sent longer ago than `limit`.
    pub(crate) fn any_late(&self, limit: Duration, now: Instant) -> bool {
        let late = |batch: &Outstanding| now.saturating_duration_since(batch.last_sent) > limit;
        self.outstanding.values().any(late)
    }

    /// Returns the batches that were sent longer ago than `limit`, to be sent again with new identities.
    pub(crate) fn resend_late(&mut self, limit: Duration, now: Instant) -> Vec<Dispatch> {
        let late = self
            .outstanding
            .iter_mut()
            .filter(|(_, batch)| now.saturating_duration_since(batch.last_sent) > limit);
        late.map(|(number, batch)| {
            batch.last_sent = now;
            batch.attempt += 1;
            batch.excused += 1;
            batch.resent(*number)
        })
        .collect()
    }

    /// Returns how long ago the oldest batch without a result was sent first.
    pub(crate) fn oldest(&self, now: Instant) -> Duration {
        let ages = self.outstanding.values().map(|batch| batch.age(now));
        ages.max().unwrap_or_default()
    }

    /// Returns the batches that take much longer than others do, with their ages and the nodes that have started them.
    pub(crate) fn stragglers(
        &self,
        least: Duration,
        now: Instant,
    ) -> impl Iterator<Item = (u64, Duration, &[String])> {
        let limit = self.median().map(|median| (median * 3).max(least));
        let all = self.outstanding.iter();
        all.map(move |(number, batch)| (*number, batch.age(now), &batch.nodes[..]))
            .filter(move |(_, age, _)| limit.is_some_and(|limit| *age > limit))
    }

    /// Returns the oldest batch that takes much longer than others do, to be started a second time. There is at most one copy
    /// of a batch.
    pub(crate) fn straggler(&mut self, least: Duration, now: Instant) -> Option<Dispatch> {
        let limit = (self.median()? * 3).max(least);
        let (number, batch) = self.outstanding.iter_mut().find(|(_, batch)| {
            batch.attempt == 0 && now.saturating_duration_since(batch.last_sent) > limit
        })?;
        batch.attempt += 1;
        batch.excused += 1;
        batch.last_sent = now;
        Some(batch.resent(*number))
    }

    /// Returns the median of recent times from sending a batch to its result, or `None` if there are too few.
    fn median(&self) -> Option<Duration> {
        if self.recent.len() < RECENT / 10 {
            return None;
        }
        let mut recent = self.recent.clone();
        let middle = recent.len() / 2;
        Some(*recent.select_nth_unstable(middle).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(ordered: bool, batches: u64, now: Instant) -> Window {
        let mut window = Window::new(ordered);
        for number in 0..batches {
            let sent = window.insert(number, Bytes::from(vec![0; number as usize]), now);
            assert!(!sent.again);
        }
        window
    }

    fn finish(window: &mut Window, number: u64) -> Finished {
        window.finish(number, Ok(Bytes::new()), Instant::now())
    }

    #[test]
    fn results_come_once_and_in_order() {
        let mut window = filled(true, 3, Instant::now());
        assert_eq!(finish(&mut window, 1), Finished::First);
        assert_eq!(finish(&mut window, 1), Finished::Duplicate);
        assert!(window.deliverable().is_none());
        assert_eq!(finish(&mut window, 0), Finished::First);
        let numbers: Vec<_> =
            std::iter::from_fn(|| window.deliverable().map(|(number, ..)| number)).collect();
        assert_eq!(numbers, [0, 1]);
        assert_eq!(finish(&mut window, 0), Finished::Duplicate);
        assert_eq!(window.outstanding(), 1);
        assert!(!window.is_empty());
    }

    #[test]
    fn without_order_results_come_at_once() {
        let mut window = filled(false, 3, Instant::now());
        assert_eq!(finish(&mut window, 2), Finished::First);
        assert_eq!(window.deliverable().map(|(number, _)| number), Some(2));
    }

    #[test]
    fn a_batch_that_every_node_loses_is_poison() {
        let mut window = filled(true, 1, Instant::now());
        for node in ["a", "b", "c"] {
            assert!(matches!(window.ask(0, 3), Verdict::Start));
            window.started(0, node);
        }
        match window.ask(0, 3) {
            Verdict::Poison(nodes) => assert_eq!(nodes, ["a", "b", "c"]),
            other => panic!("{other:?}"),
        }
        assert!(matches!(window.ask(1, 3), Verdict::NotWanted));
    }

    #[test]
    fn a_question_is_no_start() {
        let window = filled(true, 1, Instant::now());
        for _ in 0..10 {
            assert!(matches!(window.ask(0, 1), Verdict::Start));
        }
    }

    #[test]
    fn what_the_coordinator_sends_again_is_not_held_against_the_batch() {
        let now = Instant::now();
        let mut window = filled(true, 1, now);
        window.started(0, "a");
        let sent = window.resend_all(now);
        assert_eq!(sent.len(), 1);
        // Node a may still have it.
        assert!(sent.iter().all(|batch| batch.again));
        assert!(matches!(window.ask(0, 1), Verdict::Start));
        window.started(0, "b");
        assert!(matches!(window.ask(0, 1), Verdict::Poison(_)));
    }

    #[test]
    fn a_straggler_is_copied_once() {
        let now = Instant::now();
        let mut window = filled(false, 50, now);
        let later = now + Duration::from_secs(1);
        assert!(window.straggler(Duration::ZERO, later).is_none(), "no times are known");
        assert_eq!(window.stragglers(Duration::ZERO, later).count(), 0);
        assert_eq!(window.oldest(later), Duration::from_secs(1));
        for number in 0..49 {
            assert_eq!(window.finish(number, Ok(Bytes::new()), now), Finished::First);
        }
        window.started(49, "a");
        let slow: Vec<_> = window.stragglers(Duration::ZERO, later).collect();
        assert_eq!(slow, [(49, Duration::from_secs(1), &["a".to_owned()][..])]);
        let copy = window.straggler(Duration::ZERO, later);
        let copy = copy.map(|copy| (copy.number, copy.attempt, copy.again));
        assert_eq!(copy, Some((49, 1, true)));
        assert!(window.straggler(Duration::ZERO, later + Duration::from_secs(1)).is_none());
    }
}
