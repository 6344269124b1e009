//! The coordinator: feeds the queue, keeps order, and delivers every result once. The protocol is in ../../README.md.
//!
//! `source` runs on a thread of its own, this loop on another one, and the sink on the caller's. `workers` is what workers say,
//! `server` what the server has done, and `watch` what others can see of the run.

mod server;
mod source;
#[cfg(test)]
mod tests;
mod watch;
mod workers;

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use heist::CancelToken;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{MissedTickBehavior, interval};

use crate::engine::Queue;
use crate::error::ClusterError;
use crate::message::{Down, Ended};
use crate::page::Page;
use crate::report::ClusterReport;
use crate::settings::{Role, Settings};
use crate::trace::Trace;
use crate::window::{Dispatch, Finished, Outcome, Window};
pub(crate) use source::{Bounds, Largest, Move, feed};
use watch::Workers;

/// How often the coordinator looks at its token and at what is to be sent again. A guess.
const TICK: Duration = Duration::from_millis(20);
/// The time before something that has failed is tried again. A server that starts gets no storm of requests.
const BACK_OFF: Duration = Duration::from_millis(200);
/// Batches on their way to the server, at most.
const SENDING: usize = 128;
/// Their bytes, at most: a batch that waits for those before it must not be taken for lost. A guess.
const SENDING_BYTES: usize = 4 << 20;
/// A batch that takes less than this gets no copy. A guess: a copy costs a transfer.
const LEAST_STRAGGLER: Duration = Duration::from_millis(50);

/// What the other threads of the run tell the coordinator.
pub(crate) enum Input {
    Batch {
        number: u64,
        payload: Bytes,
    },
    End,
    /// The source has failed in the place of this batch.
    Failed {
        number: u64,
        error: ClusterError,
    },
    /// The thread of the source has ended.
    SourceGone,
    /// The sink has consumed the `whole` of what there was, or it has failed or panicked.
    SinkEnded {
        whole: bool,
    },
}

/// The results of a batch, on their way to the sink.
pub(crate) struct Delivery {
    pub(crate) number: u64,
    pub(crate) results: Bytes,
}

/// What a run is.
pub(crate) struct Job {
    pub(crate) name: String,
    pub(crate) fingerprint: String,
    /// What the fingerprint is made of.
    pub(crate) describes: String,
    pub(crate) run: u64,
    pub(crate) ordered: bool,
    pub(crate) token: Option<CancelToken>,
}

/// What connects a coordinator with the other threads of the run.
pub(crate) struct Ends {
    pub(crate) input: UnboundedReceiver<Input>,
    pub(crate) deliveries: Sender<Delivery>,
    pub(crate) moves: Sender<Move>,
    /// Has the source stop.
    pub(crate) stop: Arc<AtomicBool>,
}

/// What shows the run to others.
pub(crate) struct Watched {
    pub(crate) page: Page,
    pub(crate) trace: Option<Trace>,
}

/// What the server is asked to do for a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Operation {
    Send,
    Commit,
    Fetch,
}

/// An operation on the server that has ended.
enum Done {
    Sent { number: u64, bytes: usize, sent: Result<(), ClusterError> },
    Committed(u64, Result<(), ClusterError>),
    Fetched(u64, Result<Bytes, ClusterError>),
    Waiting(Option<u64>),
}

/// A result that is being committed.
struct Commit {
    results: Bytes,
    ended: Ended,
}

/// The state of a run.
pub(crate) struct Coordinator<Q> {
    queue: Q,
    job: Job,
    settings: Settings,
    window: Window,
    input: UnboundedReceiver<Input>,
    /// `None` when everything was delivered.
    deliveries: Option<Sender<Delivery>>,
    /// Tells the source what is in flight.
    moves: Sender<Move>,
    /// Has the source stop.
    stop: Arc<AtomicBool>,
    operations: FuturesUnordered<Pin<Box<dyn Future<Output = Done> + Send>>>,
    /// How many of them are batches.
    sending: usize,
    /// The bytes of these batches.
    sending_bytes: usize,
    /// Batches that wait for their turn to be sent.
    unsent: VecDeque<Dispatch>,
    /// Committed results of an earlier run.
    committed: HashSet<u64>,
    /// Batches whose committed results are being fetched.
    fetching: BTreeMap<u64, Bytes>,
    commits: BTreeMap<u64, Commit>,
    /// Commits that have failed.
    uncommitted: Vec<u64>,
    source_ended: bool,
    /// A batch has failed: those after it are not wanted.
    failing: bool,
    connected: bool,
    /// The connection was lost, or the server does not know the queue.
    reopen: bool,
    /// Operations that have failed and were not repeated with success yet, and their batches.
    failed: BTreeSet<(Operation, u64)>,
    troubled: Option<Trouble>,
    retry_at: Instant,
    checked: Instant,
    checking: bool,
    report: ClusterReport,
    began: Instant,
    workers: Workers,
    page: Page,
    trace: Option<Trace>,
}

/// The server cannot be used.
struct Trouble {
    since: Instant,
    /// What has failed last.
    reason: String,
}

/// How a run ends before its end.
enum Stop {
    Failed(ClusterError),
    /// The thread of the sink or of the source knows why.
    Gone,
}

impl From<ClusterError> for Stop {
    fn from(error: ClusterError) -> Self {
        Self::Failed(error)
    }
}

impl<Q: Queue> Coordinator<Q> {
    pub(crate) fn new(
        queue: Q,
        job: Job,
        settings: Settings,
        ends: Ends,
        watched: Watched,
    ) -> Self {
        let now = Instant::now();
        let Ends { input, deliveries, moves, stop } = ends;
        let Watched { page, trace } = watched;
        Self {
            queue,
            window: Window::new(job.ordered),
            job,
            settings,
            input,
            deliveries: Some(deliveries),
            moves,
            stop,
            operations: FuturesUnordered::new(),
            sending: 0,
            sending_bytes: 0,
            unsent: VecDeque::new(),
            committed: HashSet::new(),
            fetching: BTreeMap::new(),
            commits: BTreeMap::new(),
            uncommitted: Vec::new(),
            source_ended: false,
            failing: false,
            connected: true,
            reopen: false,
            failed: BTreeSet::new(),
            troubled: None,
            retry_at: now,
            checked: now,
            checking: false,
            report: ClusterReport::new(Role::Coordinator),
            began: now,
            workers: Workers::default(),
            page,
            trace,
        }
    }

    /// Runs to the end, and removes what the run has made on the server.
    pub(crate) async fn run(mut self) -> Result<ClusterReport, ClusterError> {
        let ended = self.start_and_serve().await;
        self.stop.store(true, Ordering::SeqCst);
        self.queue.tell(Down::End { run: self.job.run }).await;
        self.queue.close(ended.is_err()).await;
        self.report.elapsed = self.began.elapsed();
        if let Some(trace) = self.trace {
            trace.end();
        }
        match ended {
            // The caller passes on what has happened.
            Ok(()) | Err(Stop::Gone) => Ok(self.report),
            Err(Stop::Failed(error)) => Err(error),
        }
    }

    async fn start_and_serve(&mut self) -> Result<(), Stop> {
        self.page.open()?;
        self.queue.open(true).await?;
        if self.settings.resume {
            self.committed = self.queue.committed().await?.into_iter().collect();
        }
        self.queue.tell(Down::Open).await;
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !self.has_ended() {
            tokio::select! {
                event = self.queue.event() => self.hear(event).await?,
                Some(done) = self.operations.next() => self.complete(done).await?,
                Some(input) = self.input.recv() => self.take(input)?,
                reader = self.page.reader() => reader.give(self.status().prometheus()),
                _ = tick.tick() => self.look().await?,
            }
            self.send_some();
            self.deliver()?;
        }
        self.wait_for_sink().await
    }

    /// Waits until the sink has consumed what was delivered. Until then, committed results are not removed: the sink may fail.
    async fn wait_for_sink(&mut self) -> Result<(), Stop> {
        self.deliveries = None;
        loop {
            tokio::select! {
                // All results are here: it does not matter any more what happens to the server.
                event = self.queue.event() => drop(self.hear(event).await),
                reader = self.page.reader() => reader.give(self.status().prometheus()),
                input = self.input.recv() => match input {
                    Some(Input::SinkEnded { whole: true }) => return Ok(()),
                    Some(Input::SinkEnded { whole: false }) | None => return Err(Stop::Gone),
                    Some(_) => {}
                },
            }
        }
    }

    fn has_ended(&self) -> bool {
        self.source_ended && self.window.is_empty() && self.fetching.is_empty()
    }

    /// Takes what the source or the sink says.
    fn take(&mut self, input: Input) -> Result<(), Stop> {
        match input {
            Input::Batch { .. } if self.failing => {}
            Input::Batch { number, payload } => self.take_batch(number, payload)?,
            Input::End => self.source_ended = true,
            // What comes before the failure is delivered if the results are ordered.
            Input::Failed { number, error } => {
                self.source_ended = true;
                self.failing = true;
                self.window.finish_known(number, Err(error));
            }
            Input::SourceGone if self.source_ended || self.failing => self.source_ended = true,
            Input::SourceGone | Input::SinkEnded { .. } => return Err(Stop::Gone),
        }
        Ok(())
    }

    fn take_batch(&mut self, number: u64, payload: Bytes) -> Result<(), ClusterError> {
        let (bytes, limit) = (payload.len(), self.queue.limit());
        // The server counts the headers as well.
        if bytes + HEADERS > limit {
            return Err(ClusterError::BatchTooLarge { batch: number, bytes, limit });
        }
        if self.committed.contains(&number) {
            self.fetching.insert(number, payload);
            self.fetch(number);
        } else {
            self.unsent.push_back(self.window.insert(number, payload, Instant::now()));
        }
        Ok(())
    }

    /// Sends batches, but not all at once.
    fn send_some(&mut self) {
        if !self.connected || (self.troubled.is_some() && Instant::now() < self.retry_at) {
            return;
        }
        while let Some(next) = self.unsent.front() {
            let bytes = next.payload.len();
            let fits = self.sending < SENDING && self.sending_bytes + bytes <= SENDING_BYTES;
            if self.sending > 0 && !fits {
                return;
            }
            let Some(batch) = self.unsent.pop_front() else { return };
            self.sending += 1;
            self.sending_bytes += bytes;
            let number = batch.number;
            let sent = self.queue.send(batch);
            self.operations
                .push(Box::pin(async move { Done::Sent { number, bytes, sent: sent.await } }));
        }
    }

    fn finish(&mut self, number: u64, outcome: Outcome) -> Finished {
        if outcome.is_err() {
            self.failing = true;
            self.stop.store(true, Ordering::SeqCst);
        }
        let batch = self.window.get(number).map(|batch| batch.payload.len());
        if let (Some(batch), Ok(results)) = (batch, &outcome) {
            self.results_are(batch, results.len());
        }
        self.window.finish(number, outcome, Instant::now())
    }

    /// Tells the source that the results of a batch take its place.
    fn results_are(&self, batch: usize, results: usize) {
        // The source may have ended.
        let _ = self.moves.send(Move::Results { batch, results });
    }

    /// Passes on what can be delivered.
    fn deliver(&mut self) -> Result<(), Stop> {
        while let Some((number, outcome)) = self.window.deliverable() {
            let delivery = Delivery { number, results: outcome? };
            self.report.batches += 1;
            if self.deliveries.as_ref().is_none_or(|sink| sink.send(delivery).is_err()) {
                return Err(Stop::Gone);
            }
        }
        Ok(())
    }
}

/// What the headers of a batch have at most.
const HEADERS: usize = 128;

/// The hash function FNV-1a: the same in every process and version, and short.
pub(crate) fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Returns a number that no other run has.
pub(crate) fn unique() -> u64 {
    // A hasher with random keys.
    RandomState::new().hash_one((std::process::id(), Instant::now()))
}
