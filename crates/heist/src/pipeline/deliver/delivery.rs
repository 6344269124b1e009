//! Where the consumer gets the results, one batch after the other, and where it sleeps until there are some.

use std::collections::VecDeque;
use std::time::Duration;

use super::outbox::{BatchEntry, Chunk, Outboxes};
use crate::pipeline::control::{Control, Delivered, SleepKind};
use crate::pipeline::progress::{INTERVAL, Meter};
use crate::sync::Arc;
use crate::worker::current::with_worker;
use crate::worker::limited::Limited;
use crate::worker::wait;

/// How long a consumer that has just delivered something dozes before it sleeps.
///
/// While it dozes it is not woken for each batch: it delivers what is there when it wakes. If nothing is
/// there, it sleeps until it is woken. So a result is held back for this long at most, and there is at most
/// one doze for each delivery.
const DOZE: Duration = Duration::from_millis(1);

/// The consumer's side of a run.
pub(crate) struct Delivery<R> {
    pub(super) control: Arc<Control>,
    outboxes: Arc<Outboxes<R>>,
    ordered: bool,
    /// The chunks that were taken from the outboxes. The entries that `free` lists are empty.
    chunks: Vec<Chunk<R>>,
    /// Indices into `chunks`.
    free: Vec<usize>,
    /// Where the results are, in the order of delivery, as indices into `chunks`. If results are delivered in
    /// order, there is one entry for each batch from `next` on, which is [`UNKNOWN`] if the batch has not
    /// come yet. If not, there is one entry for each chunk.
    queue: VecDeque<usize>,
    /// The number of batches that were delivered, which is the number of the next one if results are
    /// delivered in order.
    pub(super) next: u64,
    /// What was delivered since the last report to `control`.
    pub(super) delivered: Delivered,
    /// Delivered batches are reported when there are this many.
    report_batches: u64,
    /// Delivered batches are reported when they weigh this much.
    report_weight: i128,
    /// Used by `collect`. It is empty otherwise.
    incoming: Vec<Chunk<R>>,
    /// Empty chunks, which go back to the outboxes.
    spares: Vec<Chunk<R>>,
    /// Shows the progress.
    pub(crate) meter: Option<Box<Meter>>,
    /// Where a task waits that polls for results.
    #[cfg(feature = "futures")]
    pub(super) sleep: Option<super::stream::Sleep>,
}

/// The chunk of a batch that has not come yet.
const UNKNOWN: usize = usize::MAX;

impl<R> Delivery<R> {
    pub(crate) fn new(
        control: &Arc<Control>,
        outboxes: &Arc<Outboxes<R>>,
        ordered: bool,
        meter: Option<Box<Meter>>,
    ) -> Self {
        Self {
            control: Arc::clone(control),
            outboxes: Arc::clone(outboxes),
            ordered,
            chunks: Vec::new(),
            free: Vec::new(),
            queue: VecDeque::new(),
            next: 0,
            delivered: Delivered::default(),
            report_batches: control.quarter_of_batches() as u64,
            report_weight: control.quarter_of_weight(),
            incoming: Vec::new(),
            spares: Vec::new(),
            meter,
            #[cfg(feature = "futures")]
            sleep: None,
        }
    }

    /// Returns the next batch if its results are here.
    #[cfg(feature = "futures")]
    pub(super) fn ready_batch(&mut self) -> Option<BatchEntry> {
        let at = *self.queue.front().filter(|at| **at != UNKNOWN)?;
        self.chunks[at].batches.pop_front()
    }

    /// Waits for the next batch. Its results are the next ones that [`next_result`](Self::next_result)
    /// returns. Returns `None` if there are no more batches.
    #[inline]
    pub(crate) fn next_batch(&mut self) -> Option<BatchEntry> {
        loop {
            match self.queue.front() {
                // A run that failed as a whole, or was closed, delivers nothing more, even if it is here.
                _ if self.control.discards_all() => return None,
                Some(&at) if at != UNKNOWN => return self.chunks[at].batches.pop_front(),
                _ => {
                    if !self.wait_for_results() {
                        return None;
                    }
                }
            }
        }
    }

    /// Returns the next result of the current batch, which must have one.
    #[inline]
    pub(crate) fn next_result(&mut self) -> R {
        let at = self.queue[0];
        self.chunks[at].results.pop_front().expect("the batch has another result")
    }

    /// Ends the current batch, all of whose results have been delivered.
    #[inline]
    pub(crate) fn finish_batch(&mut self, batch: BatchEntry) {
        let at = self.queue[0];
        let is_empty = self.chunks[at].batches.is_empty();
        if is_empty || self.ordered {
            self.queue.pop_front();
        }
        if is_empty {
            let chunk = std::mem::take(&mut self.chunks[at]);
            if self.spares.len() < self.outboxes.len() {
                self.spares.push(chunk);
            }
            self.free.push(at);
        }
        self.next += 1;
        self.delivered.batches += 1;
        self.delivered.weight += i128::from(batch.weight);
        self.delivered.results += batch.results as u64;
        if let Some(meter) = &mut self.meter {
            meter.count(batch.items, batch.results);
        }
        if self.delivered.batches >= self.report_batches
            || self.delivered.weight >= self.report_weight
        {
            self.report_delivered();
        }
    }

    /// Reports what was delivered since the last report, so that the source can use the room.
    pub(crate) fn report_delivered(&mut self) {
        if self.delivered.batches > 0 {
            self.control.delivered(&std::mem::take(&mut self.delivered));
        }
    }

    /// Counts the results that were delivered since the last report, with those of a batch that is not finished, because the
    /// run ends. It makes no room.
    pub(crate) fn count_results(&mut self, of_batch: u64) {
        let results = std::mem::take(&mut self.delivered.results) + of_batch;
        if results > 0 {
            self.control.count_results(results);
        }
    }

    /// Shows the progress for the last time.
    pub(crate) fn show_end(&mut self, failed: bool) {
        if let Some(meter) = &mut self.meter {
            meter.finish(failed);
        }
    }

    /// Waits until there are results in the outboxes, and takes them. Returns `false` if there will be none.
    #[cold]
    fn wait_for_results(&mut self) -> bool {
        #[cfg(feature = "futures")]
        self.end_sleep();
        // A worker of a pool does not doze: it hands its core to another thread while it waits, which is too
        // expensive for a moment.
        let mut kind = match with_worker(|_| ()) {
            Some(()) => SleepKind::Deep,
            None => SleepKind::Doze,
        };
        loop {
            if let Some(meter) = &mut self.meter {
                meter.tick();
            }
            if self.collect() {
                return true;
            }
            // C1 to C3.
            let delivered = std::mem::take(&mut self.delivered);
            let Some(handle) = self.control.consumer_sleeps(&delivered, self.next, kind) else {
                return false;
            };
            // C4. A worker that has not seen that the consumer sleeps has stored its results before this
            // look.
            if self.collect() {
                drop(handle);
                self.control.consumer_woke();
                return true;
            }
            match kind {
                SleepKind::Deep if self.meter.is_some() => {
                    _ = Limited::new(&handle, INTERVAL).wait()
                }
                SleepKind::Deep => wait::wait(&handle, self.control.pool().id()),
                SleepKind::Doze => {
                    Limited::new(&handle, DOZE).wait();
                    kind = SleepKind::Deep;
                }
            }
            // C5. The handle is dropped first: otherwise `consumer_woke` would wake this thread itself.
            drop(handle);
            self.control.consumer_woke();
        }
    }

    /// Takes the results that are in the outboxes. Returns whether there were any.
    pub(super) fn collect(&mut self) -> bool {
        self.outboxes.take(&mut self.incoming, &mut self.spares);
        let any = !self.incoming.is_empty();
        for chunk in self.incoming.drain(..) {
            let at = self.free.pop().unwrap_or(self.chunks.len());
            if self.ordered {
                for batch in &chunk.batches {
                    let place = (batch.number - self.next) as usize;
                    if place >= self.queue.len() {
                        self.queue.resize(place + 1, UNKNOWN);
                    }
                    self.queue[place] = at;
                }
            } else {
                self.queue.push_back(at);
            }
            match self.chunks.get_mut(at) {
                Some(empty) => *empty = chunk,
                None => self.chunks.push(chunk),
            }
        }
        any
    }
}
