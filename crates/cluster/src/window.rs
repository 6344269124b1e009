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
    /// When a node has said last that it starts it.
    last_started: Option<Instant>,
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

    /// Returns how long it is computed, or waits.
    fn takes(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.last_started.unwrap_or(self.last_sent))
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

/// Recent times of batches.
#[derive(Default)]
struct Recent {
    times: Vec<Duration>,
    at: usize,
}

impl Recent {
    fn note(&mut self, took: Duration) {
        if self.times.len() < RECENT {
            return self.times.push(took);
        }
        self.times[self.at] = took;
        self.at = (self.at + 1) % RECENT;
    }

    /// Returns the median, or `None` if there are too few.
    fn median(&self) -> Option<Duration> {
        if self.times.len() < RECENT / 10 {
            return None;
        }
        let mut times = self.times.clone();
        let middle = times.len() / 2;
        Some(*times.select_nth_unstable(middle).1)
    }
}

/// How long a batch may take before it is a straggler, if that is known.
#[derive(Clone, Copy)]
struct Limits {
    /// From the start. Many batches may have waited for it, so the time since they were sent says little.
    started: Option<Duration>,
    waiting: Option<Duration>,
}

impl Limits {
    fn are_exceeded(self, batch: &Outstanding, now: Instant) -> bool {
        let limit = if batch.last_started.is_some() { self.started } else { self.waiting };
        limit.is_some_and(|limit| batch.takes(now) > limit)
    }
}

/// The batches in flight.
pub(crate) struct Window {
    ordered: bool,
    outstanding: BTreeMap<u64, Outstanding>,
    /// Results that can be delivered, or that wait for those before them.
    finished: BTreeMap<u64, Outcome>,
    /// If ordered, the batch whose results are delivered next.
    next: u64,
    /// From the last start to the result.
    started: Recent,
    /// From the first sending to the result.
    sent: Recent,
}

impl Window {
    pub(crate) fn new(ordered: bool) -> Self {
        Self {
            ordered,
            outstanding: BTreeMap::new(),
            finished: BTreeMap::new(),
            next: 0,
            started: Recent::default(),
            sent: Recent::default(),
        }
    }

    /// Adds a batch that is sent now.
    pub(crate) fn insert(&mut self, number: u64, payload: Bytes, now: Instant) -> Dispatch {
        let dispatch = Dispatch { number, attempt: 0, again: false, payload: payload.clone() };
        let batch = Outstanding {
            payload,
            first_sent: now,
            last_sent: now,
            last_started: None,
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
    pub(crate) fn started(&mut self, number: u64, node: &str, now: Instant) {
        if let Some(batch) = self.outstanding.get_mut(&number) {
            batch.nodes.push(node.to_owned());
            batch.last_started = Some(now);
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
        self.sent.note(batch.age(now));
        if batch.last_started.is_some() {
            self.started.note(batch.takes(now));
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
        let limits = self.limits(least);
        let all = self.outstanding.iter();
        all.filter(move |(_, batch)| limits.are_exceeded(batch, now))
            .map(move |(number, batch)| (*number, batch.age(now), &batch.nodes[..]))
    }

    /// Returns the oldest batch that takes much longer than others do, to be started a second time. There is at most one copy
    /// of a batch.
    pub(crate) fn straggler(&mut self, least: Duration, now: Instant) -> Option<Dispatch> {
        let limits = self.limits(least);
        let is_late = |batch: &Outstanding| batch.attempt == 0 && limits.are_exceeded(batch, now);
        let (number, batch) = self.outstanding.iter_mut().find(|(_, batch)| is_late(batch))?;
        batch.attempt += 1;
        batch.excused += 1;
        batch.last_sent = now;
        Some(batch.resent(*number))
    }

    fn limits(&self, least: Duration) -> Limits {
        let limit = |median: Duration| (median * 3).max(least);
        let waiting = self.sent.median().map(limit);
        Limits { started: self.started.median().map(limit).or(waiting), waiting }
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
            window.started(0, node, Instant::now());
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
        window.started(0, "a", now);
        let sent = window.resend_all(now);
        assert_eq!(sent.len(), 1);
        // Node a may still have it.
        assert!(sent.iter().all(|batch| batch.again));
        assert!(matches!(window.ask(0, 1), Verdict::Start));
        window.started(0, "b", now);
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
        window.started(49, "a", now);
        let slow: Vec<_> = window.stragglers(Duration::ZERO, later).collect();
        assert_eq!(slow, [(49, Duration::from_secs(1), &["a".to_owned()][..])]);
        let copy = window.straggler(Duration::ZERO, later);
        let copy = copy.map(|copy| (copy.number, copy.attempt, copy.again));
        assert_eq!(copy, Some((49, 1, true)));
        assert!(window.straggler(Duration::ZERO, later + Duration::from_secs(1)).is_none());
    }

    #[test]
    fn the_time_in_the_queue_does_not_hide_a_straggler() {
        let began = Instant::now();
        let mut window = filled(true, 50, began);
        let at = |tens: u32| began + Duration::from_millis(10) * tens;
        // One after another, so most of them wait for long.
        for number in 0..49 {
            window.started(number, "a", at(number as u32));
            assert_eq!(
                window.finish(number, Ok(Bytes::new()), at(number as u32 + 1)),
                Finished::First
            );
        }
        assert!(window.straggler(Duration::ZERO, at(49)).is_none(), "it was not started");
        window.started(49, "b", at(49));
        assert!(window.straggler(Duration::ZERO, at(52)).is_none());
        assert_eq!(window.straggler(Duration::ZERO, at(53)).map(|copy| copy.number), Some(49));
    }
}
