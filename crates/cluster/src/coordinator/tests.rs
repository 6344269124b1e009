//! The coordinator on a queue without a network, whose operations fail as a test wants it.

use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};

use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::sleep;

use super::*;
use crate::engine::{Address, QueueEvent};
use crate::message::{BatchHead, Permit, Up, decode, encode, encode_with};
use crate::settings::Cluster;

/// A queue. Each operation fails for batch 0 if the test wants that, and no other one does.
struct Fake {
    sends: bool,
    commits: bool,
    fetches: bool,
    /// The coordinator asks for the committed results of this many batches.
    committed: u64,
    /// What workers say, after a batch was sent.
    events: UnboundedReceiver<QueueEvent>,
    sent: AtomicBool,
    answers: Arc<Mutex<Vec<Bytes>>>,
}

fn outcome<T>(works: bool, value: T) -> Result<T, ClusterError> {
    let refused =
        ClusterError::Server { operation: "something", reason: "the moon is full".to_owned() };
    if works { Ok(value) } else { Err(refused) }
}

impl Queue for Fake {
    async fn open(&mut self, _first: bool) -> Result<(), ClusterError> {
        Ok(())
    }

    fn name(&self) -> String {
        "fake".to_owned()
    }

    fn waiting(&self) -> impl Future<Output = Option<u64>> + use<> + 'static {
        std::future::ready(Some(0))
    }

    fn limit(&self) -> usize {
        1 << 20
    }

    fn send(
        &self,
        batch: Dispatch,
    ) -> impl Future<Output = Result<(), ClusterError>> + use<> + 'static {
        self.sent.store(true, Ordering::SeqCst);
        std::future::ready(outcome(self.sends || batch.number > 0, ()))
    }

    async fn event(&mut self) -> QueueEvent {
        while !self.sent.load(Ordering::SeqCst) {
            sleep(TICK).await;
        }
        match self.events.recv().await {
            Some(event) => event,
            None => std::future::pending().await,
        }
    }

    async fn acknowledge(&self, _batch: Address) {}

    async fn answer(&self, _to: Address, message: Bytes) {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).push(message);
    }

    async fn tell(&self, _message: Down) {}

    async fn committed(&mut self) -> Result<Vec<u64>, ClusterError> {
        Ok((0..self.committed).collect())
    }

    fn commit(
        &self,
        number: u64,
        _results: Bytes,
    ) -> impl Future<Output = Result<(), ClusterError>> + use<> + 'static {
        std::future::ready(outcome(self.commits || number > 0, ()))
    }

    fn fetch(
        &self,
        number: u64,
    ) -> impl Future<Output = Result<Bytes, ClusterError>> + use<> + 'static {
        std::future::ready(outcome(self.fetches || number > 0, Bytes::new()))
    }

    async fn close(&mut self, _keep_results: bool) {}
}

/// What a test holds of a run.
struct Run {
    coordinator: Coordinator<Fake>,
    input: UnboundedSender<Input>,
    events: UnboundedSender<QueueEvent>,
    answers: Arc<Mutex<Vec<Bytes>>>,
    _deliveries: std::sync::mpsc::Receiver<Delivery>,
}

const RUN: u64 = 7;

fn run(change: impl FnOnce(&mut Fake)) -> Run {
    let (input, heard) = unbounded_channel();
    let (events, event_receiver) = unbounded_channel();
    let (deliveries, delivered) = channel();
    let answers = Arc::new(Mutex::default());
    let mut queue = Fake {
        sends: true,
        commits: true,
        fetches: true,
        committed: 0,
        events: event_receiver,
        sent: AtomicBool::new(false),
        answers: Arc::clone(&answers),
    };
    change(&mut queue);
    let cluster = Cluster::builder().resume(true).attempts(1).patience(Duration::from_secs(1));
    let settings = cluster.build().expect("settings").settings;
    let job = Job {
        name: "job".to_owned(),
        fingerprint: String::new(),
        describes: String::new(),
        run: RUN,
        ordered: true,
        token: None,
    };
    let watched = Watched { page: Page::new(&settings).expect("no page"), trace: None };
    let ends = Ends { input: heard, deliveries, moves: channel().0, stop: Arc::default() };
    let coordinator = Coordinator::new(queue, job, settings, ends, watched);
    Run { coordinator, input, events, answers, _deliveries: delivered }
}

impl Run {
    fn batch(&self, number: u64) {
        let payload = encode(&BatchHead { run: RUN, number, first: number });
        let _ = self.input.send(Input::Batch { number, payload });
    }

    fn say(&self, up: &Up, results: &[u8]) {
        let _ = self.events.send(QueueEvent::Up(encode_with(up, results), Some("to".to_owned())));
    }

    fn ends(&self, number: u64) {
        self.ends_before(number, None);
    }

    /// A batch ends, and its thread starts the next one.
    fn ends_before(&self, number: u64, next: Option<u64>) {
        let ended = Ended {
            run: RUN,
            number,
            node: "a".to_owned(),
            began: None,
            micros: 1,
            thread: 0,
            skipped: 0,
            retried: 0,
            ack: String::new(),
            failure: None,
            next,
        };
        self.say(&Up::Ended(ended), &[]);
    }

    /// Runs to the end, and returns the error and the answers that were given.
    fn fails(self) -> (ClusterError, Vec<Bytes>) {
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
        let error = runtime.block_on(self.coordinator.run()).expect_err("an error");
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (error, answers)
    }
}

fn assert_lost(error: &ClusterError) {
    assert!(matches!(error, ClusterError::Lost { .. }), "{error}");
    assert!(error.to_string().contains("the moon is full"), "{error}");
}

#[test]
fn a_batch_that_is_always_refused_ends_the_run_with_the_reason() {
    let run = run(|queue| queue.sends = false);
    (0..3).for_each(|number| run.batch(number));
    (1..3).for_each(|number| run.ends(number));
    assert_lost(&run.fails().0);
}

#[test]
fn a_commit_that_always_fails_ends_the_run_with_the_reason() {
    let run = run(|queue| queue.commits = false);
    (0..3).for_each(|number| run.batch(number));
    (0..3).for_each(|number| run.ends(number));
    assert_lost(&run.fails().0);
}

#[test]
fn committed_results_that_cannot_be_read_end_the_run_with_the_reason() {
    let run = run(|queue| (queue.fetches, queue.committed) = (false, 1));
    (0..3).for_each(|number| run.batch(number));
    assert_lost(&run.fails().0);
}

#[test]
fn a_batch_that_is_being_committed_is_not_started_again() {
    let run = run(|queue| queue.commits = false);
    run.batch(0);
    // One start is the limit: another one would be poison.
    run.say(&Up::Started { run: RUN, number: 0, node: "a".to_owned(), again: false }, &[]);
    run.ends(0);
    run.say(&Up::Ask { run: RUN, number: 0 }, &[]);
    let (error, answers) = run.fails();
    assert_lost(&error);
    let permits = answers.iter().map(|answer| decode::<Permit>(answer).map(|(permit, _)| permit));
    assert_eq!(permits.collect::<Vec<_>>(), [Some(Permit::Drop)]);
}

#[test]
fn a_batch_that_follows_another_counts_as_started() {
    let run = run(|_| ());
    run.batch(0);
    // The first one has a result already.
    run.ends_before(7, Some(0));
    // One start is the limit.
    run.say(&Up::Ask { run: RUN, number: 0 }, &[]);
    let (error, _) = run.fails();
    let ClusterError::Poison { batch: 0, nodes, .. } = &error else { panic!("{error}") };
    assert_eq!(nodes, &["a"]);
}
