//! A worker: pulls batches, renews their leases while they are computed, and sends results. The protocol is in ../../README.md.
//!
//! The threads of `runner` compute; this loop on a thread of its own does the rest.

mod batches;
mod prefetch;
pub(crate) mod runner;
mod served;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use bytes::Bytes;
use heist::CancelToken;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::coordinator::unique;
use crate::engine::{Address, Greeting, Pull, PullEvent};
use crate::error::ClusterError;
use crate::message::{BatchHead, Down, Permit, Up, Welcome, decode, encode};
use crate::report::ClusterReport;
use crate::settings::{Role, Settings};
use crate::terminate;
use crate::trace::RemoteClock;
use prefetch::Prefetch;
use runner::{Job, Jobs, Key, News};

/// How often a worker looks at what no event announces, such as that it has nothing to do.
const TICK: Duration = Duration::from_millis(5);
/// How often a worker asks for the coordinator: one that is there, and one that is not.
const HELLO: Duration = Duration::from_secs(1);
const HELLO_WHILE_WAITING: Duration = Duration::from_millis(200);
/// How often a node that has nothing to do says so at most. A guess.
const LONGEST_HUNGER: Duration = Duration::from_millis(320);
/// The server says every 500 ms that it knows of a request. After this, it does not.
const SILENCE: Duration = Duration::from_millis(1_700);
/// The time before batches are requested again after the server has refused.
const BACK_OFF: Duration = Duration::from_millis(50);

/// What a worker is to do.
pub(crate) struct Service {
    pub(crate) job: String,
    pub(crate) fingerprint: String,
    pub(crate) describes: String,
    pub(crate) threads: usize,
    pub(crate) drained: Arc<AtomicBool>,
}

/// A batch that was received and has no result.
struct Held {
    ack: Address,
    run: u64,
    number: u64,
}

/// An answer of the coordinator.
enum Answer {
    Hello { greeting: Greeting, took: Duration },
    May { key: Key, permit: Option<Permit>, answer: Sender<bool> },
}

/// The state of a worker.
pub(crate) struct Worker<P> {
    pull: P,
    service: Service,
    settings: Settings,
    jobs: Arc<Jobs>,
    /// Wakes a thread. Dropped at the end.
    wake: Sender<()>,
    answers: UnboundedSender<Answer>,
    /// The run that is served.
    attached: Option<Welcome>,
    /// The run that has ended last. An answer of its coordinator may come after that.
    ended: Option<u64>,
    /// The run that is served has no coordinator at the moment.
    abandoned: bool,
    /// While there is no connection, nothing is sent that the next one need not have.
    connected: bool,
    /// Cancels the batches of the run that is served.
    token: CancelToken,
    held: HashMap<Key, Held>,
    next_key: Key,
    /// Batches that were requested and have not come.
    requested: usize,
    /// When the server was last heard of.
    heard: Instant,
    /// No request is sent before.
    request_at: Instant,
    hello_at: Instant,
    greeting: bool,
    /// Since when no coordinator was found.
    alone: Instant,
    hungry_at: Instant,
    hunger: Duration,
    prefetch: Prefetch,
    /// The time of the run that is served.
    clock: RemoteClock,
    /// The run that was served has ended, or the process is to end.
    ending: bool,
    id: u64,
    report: ClusterReport,
}

impl<P: Pull> Worker<P> {
    /// Returns a worker, and where the answers to its questions come.
    pub(crate) fn new(
        pull: P,
        service: Service,
        settings: Settings,
        jobs: Arc<Jobs>,
        wake: Sender<()>,
    ) -> (Self, AnswerReceiver) {
        let (answers, receiver) = unbounded_channel();
        let now = Instant::now();
        let prefetch = Prefetch::new(service.threads);
        let worker = Self {
            pull,
            service,
            settings,
            jobs,
            wake,
            answers,
            attached: None,
            ended: None,
            abandoned: false,
            connected: true,
            token: CancelToken::new(),
            held: HashMap::new(),
            next_key: 0,
            requested: 0,
            heard: now,
            request_at: now,
            hello_at: now,
            greeting: false,
            alone: now,
            hungry_at: now,
            hunger: TICK,
            prefetch,
            clock: RemoteClock::default(),
            ending: false,
            id: unique(),
            report: ClusterReport::new(Role::Worker),
        };
        (worker, AnswerReceiver(receiver))
    }

    /// Serves the job until its run has ended, or until the process is to end.
    pub(crate) async fn run(
        mut self,
        answers: AnswerReceiver,
        mut news: UnboundedReceiver<News>,
    ) -> Result<ClusterReport, ClusterError> {
        let began = Instant::now();
        let ended = self.serve(answers, &mut news).await;
        // After an error, nothing of what is being computed can be sent.
        self.forget();
        if self.connected {
            self.pull.up(encode(&Up::Left { id: self.id })).await;
        }
        self.flush().await;
        self.report.elapsed = began.elapsed();
        ended.map(|()| self.report)
    }

    async fn serve(
        &mut self,
        answers: AnswerReceiver,
        news: &mut UnboundedReceiver<News>,
    ) -> Result<(), ClusterError> {
        let AnswerReceiver(mut answers) = answers;
        let mut tick = paused_interval(TICK);
        let mut lease = self.settings.lease;
        let mut renewal = paused_interval(lease / 3);
        while !(self.ending && self.held.is_empty()) {
            self.request().await;
            tokio::select! {
                event = self.pull.event() => self.hear(event).await?,
                Some(news) = news.recv() => self.hear_thread(news).await,
                Some(answer) = answers.recv() => self.hear_answer(answer).await?,
                _ = renewal.tick() => self.renew().await,
                _ = tick.tick() => self.look().await?,
            }
            let current = self.attached.as_ref().map(|run| Duration::from_millis(run.lease_millis));
            if let Some(current) = current.filter(|current| *current != lease) {
                lease = current;
                renewal = paused_interval(lease / 3);
            }
        }
        Ok(())
    }

    async fn hear(&mut self, event: PullEvent) -> Result<(), ClusterError> {
        let now = Instant::now();
        match event {
            PullEvent::Batch { payload, ack, again } => {
                self.heard = now;
                self.requested = self.requested.saturating_sub(1);
                self.receive(&payload, ack, again).await;
            }
            PullEvent::Ended(Some(batches)) => {
                self.heard = now;
                self.requested = self.requested.saturating_sub(batches);
            }
            PullEvent::Ended(None) => self.request_again(now + BACK_OFF),
            PullEvent::Alive => self.heard = now,
            PullEvent::Down(message) => match decode::<Down>(&message) {
                Some((Down::Open, _)) => {
                    self.alone = now;
                    self.request_again(now);
                    self.hello_at = now;
                }
                Some((Down::End { run }, _)) => self.end_of(run),
                None => {}
            },
            PullEvent::Hungry(id) if id != self.id => self.share().await,
            PullEvent::Hungry(_) => {}
            PullEvent::Question(question, from) => self.hear_question(&question, from).await,
            PullEvent::Disconnected => {
                self.connected = false;
                self.request_again(now);
            }
            PullEvent::Connected => {
                self.report.reconnects += u64::from(!self.connected);
                self.connected = true;
                self.request_again(now);
                self.hello_at = now;
            }
            PullEvent::Fatal(error) => return Err(error),
        }
        Ok(())
    }

    fn request_again(&mut self, at: Instant) {
        self.requested = 0;
        self.request_at = at;
    }

    async fn receive(&mut self, payload: &Bytes, ack: Address, again: bool) {
        let Some((head, items)) = decode::<BatchHead>(payload) else {
            return self.pull.refuse(&ack).await;
        };
        let BatchHead { run, number, first } = head;
        // The token and the lease are those of the run that is served.
        if self.attached.as_ref().is_none_or(|attached| attached.run != run) {
            return self.pull.give_back(&ack, false).await;
        }
        if self.ending {
            return self.pull.give_back(&ack, true).await;
        }
        self.alone = Instant::now();
        // A copy is for another node. If the lease was lost, this one is computing the batch all the same.
        if again && self.held.values().any(|held| (held.run, held.number) == (run, number)) {
            return self.pull.give_back(&ack, false).await;
        }
        self.hunger = TICK;
        self.next_key += 1;
        let key = self.next_key;
        self.held.insert(key, Held { ack, run, number });
        self.jobs.push(Job { key, run, number, first, items, again, token: self.token.clone() });
        // The threads end after this loop.
        let _ = self.wake.send(());
    }

    /// Requests as many batches as are started before further ones could be here.
    async fn request(&mut self) {
        let now = Instant::now();
        if self.ending || !self.connected || self.attached.is_none() || now < self.request_at {
            return;
        }
        let wanted = self.prefetch.batches();
        let missing = wanted.saturating_sub(self.held.len() + self.requested);
        if missing < (wanted / 4).max(1) {
            return;
        }
        self.pull.request(missing).await;
        if self.requested == 0 {
            self.heard = now;
            self.hungry_at = now + self.hunger;
        }
        self.requested += missing;
    }

    async fn flush(&self) {
        if self.connected {
            self.pull.flush().await;
        }
    }

    async fn hear_answer(&mut self, answer: Answer) -> Result<(), ClusterError> {
        match answer {
            Answer::Hello { greeting, took } => {
                self.greeting = false;
                self.hear_greeting(greeting, took)?;
            }
            Answer::May { key, permit, answer } => {
                let go = permit == Some(Permit::Go) && self.held.contains_key(&key);
                if !go && let Some(held) = self.held.remove(&key) {
                    match permit {
                        Some(_) => self.pull.refuse(&held.ack).await,
                        None => self.pull.give_back(&held.ack, false).await,
                    }
                }
                // Only now: an answer that comes too late has started nothing.
                if go {
                    self.say_started(key, true).await;
                    // The batch may end this process, and that counts.
                    self.flush().await;
                }
                let _ = answer.send(go);
            }
        }
        Ok(())
    }

    async fn renew(&mut self) {
        if !self.connected {
            return;
        }
        for held in self.held.values() {
            self.pull.renew(&held.ack).await;
        }
    }

    /// Gives back what a node without work could start earlier.
    async fn share(&mut self) {
        let keep = self.prefetch.started_soon();
        self.give_back(keep, true).await;
    }

    async fn give_back(&mut self, keep: usize, half: bool) {
        let keys = self.jobs.take_back(keep, half);
        if keys.is_empty() {
            return;
        }
        let mut run = 0;
        for held in keys.iter().filter_map(|key| self.held.remove(key)) {
            run = held.run;
            self.pull.give_back(&held.ack, true).await;
        }
        let batches = keys.len() as u64;
        self.report.given_back += batches;
        self.pull.up(encode(&Up::GivenBack { run, batches })).await;
        // The node without work is to get them.
        self.request_at = Instant::now() + BACK_OFF;
    }

    /// Looks at what no event announces.
    async fn look(&mut self) -> Result<(), ClusterError> {
        let now = Instant::now();
        if terminate::requested() {
            self.service.drained.store(true, Ordering::SeqCst);
        }
        if self.service.drained.load(Ordering::SeqCst) && !self.ending {
            self.ending = true;
            self.give_back(0, false).await;
        }
        if self.requested > 0 && now.saturating_duration_since(self.heard) > SILENCE {
            self.request_again(now);
        }
        let after = now.saturating_duration_since(self.alone);
        if let Some(limit) = self.settings.wait
            && after > limit
        {
            return Err(ClusterError::NoCoordinator { job: self.service.job.clone(), after });
        }
        if !self.connected {
            return Ok(());
        }
        if now >= self.hello_at && !self.greeting {
            self.greet(now);
        }
        let idle = self.requested > 0 && self.held.len() < self.service.threads;
        if idle && !self.ending && now >= self.hungry_at {
            self.hungry_at = now + self.hunger;
            self.hunger = (self.hunger * 2).min(LONGEST_HUNGER);
            self.pull.hungry(self.id).await;
            self.pull.up(encode(&Up::Hungry { id: self.id })).await;
        }
        Ok(())
    }
}

/// Where the answers to a worker's questions come.
pub(crate) struct AnswerReceiver(UnboundedReceiver<Answer>);

fn paused_interval(period: Duration) -> Interval {
    let mut interval = interval(period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}
