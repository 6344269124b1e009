//! The loop of a worker without a network and without threads that compute.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use tokio::runtime::Builder;
use tokio::task::yield_now;
use tokio::time::sleep_until;

use super::*;
use crate::message::Hello;
use crate::settings::Cluster;

/// What the server and the coordinator do, and what the worker has asked of them.
struct Fake {
    /// The answers to greetings, of which each comes after the events before it.
    greetings: Arc<Mutex<VecDeque<Greeting>>>,
    events: Arc<Mutex<VecDeque<PullEvent>>>,
    /// What happens as soon as the worker serves a run.
    after_attach: VecDeque<PullEvent>,
    calls: Arc<Mutex<Vec<String>>>,
    /// When the pause that `Alive` stands for ends.
    until: Option<Instant>,
}

/// How long nothing happens before `Alive` does.
const IDLE: Duration = Duration::from_millis(300);

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Fake {
    fn call(&self, call: impl Into<String>) {
        lock(&self.calls).push(call.into());
    }
}

impl Pull for Fake {
    fn hello(&self, _hello: &Hello) -> impl Future<Output = Greeting> + use<> + 'static {
        let (greetings, events) = (Arc::clone(&self.greetings), Arc::clone(&self.events));
        async move {
            while !lock(&events).is_empty() {
                yield_now().await;
            }
            lock(&greetings).pop_front().unwrap_or(Greeting::NoAnswer)
        }
    }

    fn attach(&mut self, queue: &str) {
        self.call(format!("attach {queue}"));
        lock(&self.events).append(&mut self.after_attach);
    }

    async fn request(&self, _batches: usize) {
        self.call("request");
    }

    async fn event(&mut self) -> PullEvent {
        // The worker has time to do what it should not.
        if matches!(lock(&self.events).front(), Some(PullEvent::Alive)) {
            let until = *self.until.get_or_insert_with(|| Instant::now() + IDLE);
            sleep_until(until.into()).await;
        }
        let next = lock(&self.events).pop_front();
        match next {
            Some(event) => {
                if matches!(event, PullEvent::Disconnected) {
                    self.call("disconnected");
                }
                event
            }
            None => std::future::pending().await,
        }
    }

    async fn renew(&self, batch: &str) {
        self.call(format!("renew {batch}"));
    }

    async fn give_back(&self, batch: &str, _at_once: bool) {
        self.call(format!("give back {batch}"));
    }

    async fn refuse(&self, batch: &str) {
        self.call(format!("refuse {batch}"));
    }

    async fn up(&self, _message: Bytes) {
        self.call("up");
    }

    fn ask(&self, _message: Bytes) -> impl Future<Output = Option<Bytes>> + use<> + 'static {
        std::future::ready(None)
    }

    async fn answer(&self, _to: Address, _message: Bytes) {
        self.call("answer");
    }

    async fn hungry(&self, _id: u64) {
        self.call("hungry");
    }

    async fn flush(&self) {
        self.call("flush");
    }

    fn limit(&self) -> usize {
        1 << 20
    }
}

fn welcome(run: u64) -> Greeting {
    Greeting::Welcome(Welcome {
        run,
        queue: format!("queue {run}"),
        node: "c".to_owned(),
        fingerprint: String::new(),
        describes: String::new(),
        lease_millis: 1_000,
        now_micros: 0,
    })
}

fn end(run: u64) -> PullEvent {
    PullEvent::Down(encode(&Down::End { run }))
}

fn batch(run: u64, ack: &str) -> PullEvent {
    let payload = encode(&BatchHead { run, number: 0, first: 0 });
    PullEvent::Batch { payload, ack: ack.to_owned(), again: ack == "copy" }
}

/// Runs a worker to its end. Returns what it has asked for.
fn calls(
    greetings: impl IntoIterator<Item = Greeting>,
    events: impl IntoIterator<Item = PullEvent>,
    after_attach: impl IntoIterator<Item = PullEvent>,
) -> (Result<ClusterReport, ClusterError>, Vec<String>) {
    let calls = Arc::new(Mutex::default());
    let pull = Fake {
        greetings: Arc::new(Mutex::new(greetings.into_iter().collect())),
        events: Arc::new(Mutex::new(events.into_iter().collect())),
        after_attach: after_attach.into_iter().collect(),
        calls: Arc::clone(&calls),
        until: None,
    };
    let service = Service {
        job: "job".to_owned(),
        fingerprint: String::new(),
        describes: "ours".to_owned(),
        threads: 1,
        drained: Arc::default(),
    };
    let settings = Cluster::builder().role(Role::Worker).build().expect("settings").settings;
    let (jobs, wake) = Jobs::new();
    let (_news, heard) = unbounded_channel();
    let (worker, answers) = Worker::new(pull, service, settings, Arc::new(jobs), wake);
    let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
    let ended = runtime.block_on(worker.run(answers, heard));
    let calls = lock(&calls).clone();
    (ended, calls)
}

#[test]
fn a_batch_of_another_run_is_given_back() {
    let (ended, calls) = calls([welcome(1)], [], [batch(2, "other"), batch(1, "ours"), end(1)]);
    ended.expect("an end");
    assert!(calls.contains(&"give back other".to_owned()), "{calls:?}");
    assert!(!calls.contains(&"give back ours".to_owned()), "{calls:?}");
}

#[test]
fn a_welcome_that_is_older_than_the_end_is_dropped() {
    let (ended, calls) = calls([welcome(1), welcome(2)], [end(1)], [end(2)]);
    ended.expect("an end");
    let attached: Vec<_> = calls.iter().filter(|call| call.starts_with("attach")).collect();
    assert_eq!(attached, ["attach queue 2"]);
}

#[test]
fn a_run_that_has_ended_in_silence_is_over() {
    let (ended, calls) = calls([welcome(1), Greeting::Nobody, Greeting::Over], [], []);
    ended.expect("an end");
    assert!(calls.contains(&"attach queue 1".to_owned()), "{calls:?}");
}

#[test]
fn a_copy_is_not_for_the_worker_that_has_the_batch() {
    let (ended, calls) = calls([welcome(1)], [], [batch(1, "first"), batch(1, "copy"), end(1)]);
    ended.expect("an end");
    assert!(calls.contains(&"give back copy".to_owned()), "{calls:?}");
}

#[test]
fn half_of_what_is_not_started_is_given_back() {
    let held = (0..4).map(|ack| batch(1, &ack.to_string()));
    let events = held.chain([PullEvent::Hungry(0), end(1)]);
    let (ended, calls) = calls([welcome(1)], [], events);
    assert_eq!(ended.expect("an end").given_back, 2);
    let given_back: Vec<_> = calls.iter().filter(|call| call.starts_with("give back")).collect();
    assert_eq!(given_back, ["give back 2", "give back 3"]);
}

#[test]
fn nothing_is_sent_without_a_connection() {
    let (ended, calls) =
        calls([welcome(1)], [], [PullEvent::Disconnected, PullEvent::Alive, end(1)]);
    ended.expect("an end");
    let at = calls.iter().position(|call| call == "disconnected").expect("the loss");
    assert_eq!(calls[at + 1..], [""; 0]);
}

#[test]
fn another_protocol_is_a_mismatch() {
    let (ended, _) = calls([Greeting::Foreign(Some(9))], [], []);
    let error = ended.expect_err("another version");
    assert!(matches!(error, ClusterError::Mismatch { .. }), "{error}");
    assert!(error.to_string().contains("protocol 9"), "{error}");
}
