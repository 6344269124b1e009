//! The coordinator: feeds the queue, keeps order, and delivers every result once. The protocol is in ../../README.md.
//!
//! `source` runs on a thread of its own, this loop on another one, and the sink on the caller's.

mod source;

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::mem;
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

use crate::engine::{Address, Queue, QueueEvent};
use crate::error::{ClusterError, cancelled};
use crate::message::{Down, Ended, Hello, Permit, Up, Welcome, decode, encode, encode_with};
use crate::report::ClusterReport;
use crate::settings::{Role, Settings};
use crate::window::{Finished, Outcome, Verdict, Window};
pub(crate) use source::{Bounds, Largest, feed};

/// How often the coordinator looks at its token and at what is to be sent again. A guess.
const TICK: Duration = Duration::from_millis(20);
/// The time before something that has failed is tried again. A server that starts gets no storm of requests.
const BACK_OFF: Duration = Duration::from_millis(200);
/// Batches on their way to the server, at most.
const SENDING: usize = 128;
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
    /// The sink has failed or panicked.
    SinkGone,
}

/// The results of a batch, on their way to the sink.
pub(crate) struct Delivery {
    pub(crate) number: u64,
    /// The size that the batch has counted with.
    pub(crate) size: usize,
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

/// An operation on the server that has ended.
enum Done {
    Sent(u64, Result<(), ClusterError>),
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
    deliveries: Sender<Delivery>,
    /// Has the source stop.
    stop: Arc<AtomicBool>,
    operations: FuturesUnordered<Pin<Box<dyn Future<Output = Done>>>>,
    /// How many of them are batches.
    sending: usize,
    /// Batches that wait for their turn to be sent, with their attempts.
    unsent: Vec<(u64, u32, Bytes)>,
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
    troubled: Option<Instant>,
    retry_at: Instant,
    checked: Instant,
    checking: bool,
    report: ClusterReport,
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
        input: UnboundedReceiver<Input>,
        deliveries: Sender<Delivery>,
        stop: Arc<AtomicBool>,
    ) -> Self {
        let now = Instant::now();
        Self {
            queue,
            window: Window::new(job.ordered),
            job,
            settings,
            input,
            deliveries,
            stop,
            operations: FuturesUnordered::new(),
            sending: 0,
            unsent: Vec::new(),
            committed: HashSet::new(),
            fetching: BTreeMap::new(),
            commits: BTreeMap::new(),
            uncommitted: Vec::new(),
            source_ended: false,
            failing: false,
            connected: true,
            reopen: false,
            troubled: None,
            retry_at: now,
            checked: now,
            checking: false,
            report: ClusterReport::new(Role::Coordinator),
        }
    }

    /// Runs to the end, and removes what the run has made on the server.
    pub(crate) async fn run(mut self) -> Result<ClusterReport, ClusterError> {
        let began = Instant::now();
        let ended = self.start_and_serve().await;
        self.stop.store(true, Ordering::SeqCst);
        self.queue.tell(Down::End { run: self.job.run }).await;
        self.queue.close(ended.is_err()).await;
        self.report.elapsed = began.elapsed();
        match ended {
            // The caller passes on what has happened.
            Ok(()) | Err(Stop::Gone) => Ok(self.report),
            Err(Stop::Failed(error)) => Err(error),
        }
    }

    async fn start_and_serve(&mut self) -> Result<(), Stop> {
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
                _ = tick.tick() => self.look().await?,
            }
            self.send_some();
            self.deliver()?;
        }
        Ok(())
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
                self.window.finish_known(number, 0, Err(error));
            }
            Input::SourceGone if self.source_ended || self.failing => self.source_ended = true,
            Input::SourceGone | Input::SinkGone => return Err(Stop::Gone),
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
            self.window.insert(number, payload.clone(), Instant::now());
            self.unsent.push((number, 0, payload));
        }
        Ok(())
    }

    fn fetch(&mut self, number: u64) {
        let fetched = self.queue.fetch(number);
        self.operations.push(Box::pin(async move {
            let (number, results) = fetched.await;
            Done::Fetched(number, results)
        }));
    }

    fn commit(&mut self, number: u64) {
        let (Some(commit), Some(batch)) = (self.commits.get(&number), self.window.get(number))
        else {
            return;
        };
        let results = encode_with(&digest(&batch.payload), &commit.results);
        let committed = self.queue.commit(number, results);
        self.operations.push(Box::pin(async move {
            let (number, committed) = committed.await;
            Done::Committed(number, committed)
        }));
    }

    /// Sends batches, but not all at once.
    fn send_some(&mut self) {
        if !self.connected || (self.troubled.is_some() && Instant::now() < self.retry_at) {
            return;
        }
        let room = SENDING.saturating_sub(self.sending).min(self.unsent.len());
        for (number, attempt, payload) in self.unsent.drain(..room) {
            self.sending += 1;
            let sent = self.queue.send(number, attempt, payload);
            self.operations.push(Box::pin(async move {
                let (number, sent) = sent.await;
                Done::Sent(number, sent)
            }));
        }
    }

    async fn hear(&mut self, event: QueueEvent) -> Result<(), Stop> {
        match event {
            QueueEvent::Up(message, from) => {
                if let Some((up, tail)) = decode::<Up>(&message) {
                    self.hear_worker(up, tail, from).await;
                }
            }
            QueueEvent::Hello(message, Some(from)) => {
                if decode::<Hello>(&message).is_some() {
                    let welcome = self.welcome();
                    self.queue.answer(from, encode(&welcome)).await;
                }
            }
            QueueEvent::Hello(_, None) => {}
            QueueEvent::Connected => {
                if !self.connected {
                    self.connected = true;
                    self.report.reconnects += 1;
                    self.reopen = true;
                    self.retry_at = Instant::now();
                }
            }
            QueueEvent::Disconnected => {
                self.connected = false;
                self.trouble();
            }
            QueueEvent::Fatal(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn welcome(&self) -> Welcome {
        Welcome {
            run: self.job.run,
            queue: self.queue.name(),
            node: self.settings.node.clone(),
            fingerprint: self.job.fingerprint.clone(),
            describes: self.job.describes.clone(),
            lease_millis: self.settings.lease.as_millis() as u64,
        }
    }

    async fn hear_worker(&mut self, up: Up, tail: Bytes, from: Option<Address>) {
        let ours = self.job.run;
        match up {
            Up::Started { run, numbers, node } if run == ours => {
                numbers.iter().for_each(|number| self.window.started(*number, &node));
            }
            Up::Ended(ended) => self.hear_end(ended, tail).await,
            Up::Ask { run, number, node } => {
                let permit = if run == ours { self.permit(number, &node) } else { Permit::Drop };
                if let Some(from) = from {
                    self.queue.answer(from, encode(&permit)).await;
                }
            }
            Up::Hungry { .. } => {
                let copy = self.window.straggler(LEAST_STRAGGLER, Instant::now());
                self.report.copies += u64::from(copy.is_some());
                self.unsent.extend(copy);
            }
            Up::GivenBack { run, batches } if run == ours => self.report.given_back += batches,
            Up::Started { .. } | Up::GivenBack { .. } => {}
        }
    }

    /// Decides whether a node may start a batch that was delivered before.
    fn permit(&mut self, number: u64, node: &str) -> Permit {
        match self.window.ask(number, node, self.settings.attempts) {
            Verdict::Start => {
                self.report.redelivered += 1;
                Permit::Go
            }
            Verdict::NotWanted => Permit::Drop,
            Verdict::Poison(nodes) => {
                let job = self.job.name.clone();
                // It is the first outcome: the batch was asked about because it has none.
                let _ =
                    self.finish(number, Err(ClusterError::Poison { job, batch: number, nodes }));
                Permit::Drop
            }
        }
    }

    /// Takes the result of a batch. It is acknowledged here and not by the worker: if it is lost on its way, the lease expires.
    async fn hear_end(&mut self, ended: Ended, results: Bytes) {
        let number = ended.number;
        if ended.run != self.job.run {
            self.report.duplicates += 1;
            return;
        }
        if self.window.get(number).is_none() || self.commits.contains_key(&number) {
            self.report.duplicates += 1;
            self.queue.acknowledge(ended.ack).await;
            return;
        }
        if self.settings.resume && ended.failure.is_none() {
            self.commits.insert(number, Commit { results, ended });
            return self.commit(number);
        }
        self.accept(ended, results).await;
    }

    async fn accept(&mut self, ended: Ended, results: Bytes) {
        let Ended { number, node, micros, skipped, retried, ack, failure, .. } = ended;
        let outcome = match failure {
            None => Ok(results),
            Some(failure) => Err(failure.into_error(number, node.clone())),
        };
        if self.finish(number, outcome) == Finished::First {
            let node = self.report.nodes.entry(node).or_default();
            node.batches += 1;
            node.busy += Duration::from_micros(micros);
            self.report.skipped += skipped;
            self.report.retried += retried;
        }
        self.queue.acknowledge(ack).await;
    }

    fn finish(&mut self, number: u64, outcome: Outcome) -> Finished {
        if outcome.is_err() {
            self.failing = true;
            self.stop.store(true, Ordering::SeqCst);
        }
        self.window.finish(number, outcome, Instant::now())
    }

    async fn complete(&mut self, done: Done) -> Result<(), Stop> {
        match done {
            Done::Sent(number, sent) => {
                self.sending -= 1;
                if sent.is_err() {
                    self.trouble();
                    let batch = self.window.get(number);
                    self.unsent.extend(batch.map(|b| (number, b.attempt, b.payload.clone())));
                    self.report.resent += u64::from(self.window.get(number).is_some());
                    // The server may not know the queue any more.
                    self.reopen = true;
                }
            }
            Done::Committed(number, Ok(())) => {
                if let Some(Commit { results, ended }) = self.commits.remove(&number) {
                    self.accept(ended, results).await;
                }
            }
            Done::Committed(number, Err(_)) => {
                self.trouble();
                self.uncommitted.push(number);
            }
            Done::Fetched(number, Ok(committed)) => self.resume(number, &committed)?,
            Done::Fetched(number, Err(_)) => {
                self.trouble();
                self.uncommitted.push(number);
            }
            Done::Waiting(waiting) => {
                self.checking = false;
                let lost = waiting.is_some_and(|waiting| {
                    waiting < (self.window.outstanding() - self.commits.len()) as u64
                });
                // The queue may be gone, although the connection was not lost.
                self.reopen |= waiting.is_none();
                if lost && self.sending == 0 && self.unsent.is_empty() {
                    let late = self.window.resend_late(self.settings.lease * 2, Instant::now());
                    self.report.resent += late.len() as u64;
                    self.unsent.extend(late);
                }
            }
        }
        Ok(())
    }

    /// Takes the committed results of a batch instead of sending it.
    fn resume(&mut self, number: u64, committed: &Bytes) -> Result<(), ClusterError> {
        let Some(payload) = self.fetching.remove(&number) else { return Ok(()) };
        match decode::<u64>(committed) {
            Some((hash, results)) if hash == digest(&payload) => {
                self.report.resumed += 1;
                self.window.finish_known(number, payload.len(), Ok(results));
                Ok(())
            }
            _ => Err(ClusterError::SourceChanged { job: self.job.name.clone(), batch: number }),
        }
    }

    /// Notes that the server cannot be used at the moment.
    fn trouble(&mut self) {
        let now = Instant::now();
        self.troubled.get_or_insert(now);
        self.retry_at = now + BACK_OFF;
    }

    /// Looks at what no event announces.
    async fn look(&mut self) -> Result<(), Stop> {
        if self.job.token.as_ref().is_some_and(CancelToken::is_cancelled) {
            return Err(ClusterError::from(cancelled()).into());
        }
        let now = Instant::now();
        if let Some(since) = self.troubled {
            let after = now.saturating_duration_since(since);
            if after > self.settings.patience {
                let url = self.settings.shown_url();
                return Err(ClusterError::Lost { url, after }.into());
            }
        }
        if self.connected && now >= self.retry_at {
            if self.reopen {
                self.open_again().await?;
            } else if self.sending == 0 && self.uncommitted.is_empty() {
                self.troubled = None;
            }
            for number in mem::take(&mut self.uncommitted) {
                if self.fetching.contains_key(&number) {
                    self.fetch(number)
                } else {
                    self.commit(number)
                }
            }
        }
        let limit = self.settings.lease * 2;
        if !self.checking
            && now.saturating_duration_since(self.checked) > self.settings.lease
            && self.window.any_late(limit, now)
        {
            self.checked = now;
            self.checking = true;
            let waiting = self.queue.waiting();
            self.operations.push(Box::pin(async move { Done::Waiting(waiting.await) }));
        }
        Ok(())
    }

    /// Makes the queue again if the server has lost it, and sends again what it may have lost.
    async fn open_again(&mut self) -> Result<(), Stop> {
        match self.queue.open(false).await {
            Ok(()) => {}
            Err(
                error @ (ClusterError::AlreadyRunning { .. }
                | ClusterError::Permission { .. }
                | ClusterError::NoJetStream { .. }),
            ) => return Err(error.into()),
            Err(_) => {
                self.trouble();
                return Ok(());
            }
        }
        self.reopen = false;
        self.troubled = None;
        self.unsent = self.window.resend_all(Instant::now());
        self.report.resent += self.unsent.len() as u64;
        self.queue.tell(Down::Open).await;
        Ok(())
    }

    /// Passes on what can be delivered.
    fn deliver(&mut self) -> Result<(), Stop> {
        while let Some((number, size, outcome)) = self.window.deliverable() {
            let delivery = Delivery { number, size, results: outcome? };
            self.report.batches += 1;
            if self.deliveries.send(delivery).is_err() {
                return Err(Stop::Gone);
            }
        }
        Ok(())
    }
}

/// What the headers of a batch have at most.
const HEADERS: usize = 128;

/// Identifies the items of a batch, for a run that resumes this one in another process.
fn digest(payload: &Bytes) -> u64 {
    // The head contains the number of the run.
    let items = decode::<crate::message::BatchHead>(payload)
        .map_or(&payload[..0], |(_, items)| &payload[payload.len() - items.len()..]);
    fnv(items)
}

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
