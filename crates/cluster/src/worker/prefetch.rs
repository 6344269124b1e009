//! How many batches a worker holds: as many as it starts before further ones could be here.

use std::time::Duration;

/// What passes beside the round trip until a requested batch can be started: the scheduling of three processes. A guess.
const LEAD: Duration = Duration::from_millis(5);
/// A batch that is started within this is not given back: another node could not start it earlier. A guess.
const SOON: Duration = Duration::from_millis(4);
/// More than this per thread is not held, however short the batches are. A guess.
const MOST_PER_THREAD: usize = 64;
/// The share of a new measurement in the average.
const WEIGHT: f64 = 1.0 / 8.0;

/// The measurements of a worker.
#[derive(Debug)]
pub(crate) struct Prefetch {
    threads: usize,
    /// The average time of a batch in seconds.
    batch: Option<f64>,
    /// The shortest round trip to the coordinator, which is at least as long as that to the server.
    round_trip: Option<Duration>,
}

impl Prefetch {
    pub(crate) fn new(threads: usize) -> Self {
        Self { threads, batch: None, round_trip: None }
    }

    pub(crate) fn note_batch(&mut self, took: Duration) {
        let took = took.as_secs_f64();
        self.batch = Some(self.batch.map_or(took, |average| average + (took - average) * WEIGHT));
    }

    pub(crate) fn note_round_trip(&mut self, took: Duration) {
        self.round_trip = Some(self.round_trip.map_or(took, |shortest| shortest.min(took)));
    }

    /// Returns how many batches to hold, those that are computed included.
    pub(crate) fn batches(&self) -> usize {
        let ahead = LEAD + self.round_trip.unwrap_or_default();
        // One more than is computed, until the time of a batch is known.
        self.threads + self.started_within(ahead).map_or(1, |batches| batches + 1)
    }

    /// Returns how many of the batches that are not started will be soon.
    pub(crate) fn started_soon(&self) -> usize {
        self.started_within(SOON).unwrap_or(0)
    }

    fn started_within(&self, time: Duration) -> Option<usize> {
        let most = MOST_PER_THREAD * self.threads;
        let batches = self.threads as f64 * time.as_secs_f64() / self.batch?.max(1e-6);
        Some((batches as usize).min(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_batches_are_held_in_advance_and_long_ones_are_not() {
        let mut prefetch = Prefetch::new(2);
        assert_eq!(prefetch.batches(), 3);
        prefetch.note_round_trip(Duration::from_millis(5));
        prefetch.note_batch(Duration::from_millis(1));
        assert_eq!((prefetch.batches(), prefetch.started_soon()), (2 + 20 + 1, 8));
        let mut slow = Prefetch::new(2);
        slow.note_batch(Duration::from_secs(1));
        assert_eq!((slow.batches(), slow.started_soon()), (3, 0));
        let mut fast = Prefetch::new(1);
        fast.note_batch(Duration::ZERO);
        assert_eq!(fast.batches(), 1 + 64 + 1);
    }
}
