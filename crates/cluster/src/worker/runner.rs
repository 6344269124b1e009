//! What a thread of a worker process does: takes a batch, has the pool apply the stages, and hands over the results.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use heist::pipeline::{Applied, Numbered, Stages, Steps};
use heist::{CancelToken, Pool};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::UnboundedSender;

use crate::error::cancelled;
use crate::message::Failure;

/// How long a thread applies stages before it leaves the pool. A guess: a worker of the pool that waits within a stage, for a part
/// that another one has, may do this meanwhile.
const WHILE: Duration = Duration::from_millis(5);

/// Identifies a batch that this worker holds. The number of the batch does not: it may be held twice.
pub(crate) type Key = u64;

/// A batch that a thread can start.
pub(crate) struct Job {
    pub(crate) key: Key,
    pub(crate) run: u64,
    pub(crate) number: u64,
    /// The index in the source of the first item.
    pub(crate) first: u64,
    pub(crate) items: Bytes,
    /// Whether the coordinator must permit the start.
    pub(crate) again: bool,
    /// Cancelled when the results are not wanted any more.
    pub(crate) token: CancelToken,
}

/// What a thread tells the loop of the worker.
pub(crate) enum News {
    /// A batch is started now.
    Started(Key),
    /// May it be started? The thread waits for the answer.
    May(Key, Sender<bool>),
    /// A batch has ended.
    Ended {
        key: Key,
        began: Instant,
        micros: u64,
        thread: usize,
        outcome: Result<Computed, Failure>,
        /// The thread starts this one now.
        next: Option<Key>,
    },
}

/// What the stages have made of a batch.
#[derive(Default)]
pub(crate) struct Computed {
    /// The encoded results.
    pub(crate) results: Vec<u8>,
    pub(crate) skipped: u64,
    pub(crate) retried: u64,
}

/// The batches that are not started.
pub(crate) struct Jobs {
    queue: Mutex<VecDeque<Job>>,
    /// There is a token for each batch that was pushed. A batch that was given back has left one.
    tokens: Mutex<Receiver<()>>,
}

impl Jobs {
    /// Returns no batches, and what wakes a thread for each that is pushed. When it is dropped, the threads end.
    pub(crate) fn new() -> (Self, Sender<()>) {
        let (wake, tokens) = channel();
        (Self { queue: Mutex::default(), tokens: Mutex::new(tokens) }, wake)
    }

    pub(crate) fn push(&self, job: Job) {
        lock(&self.queue).push_back(job);
    }

    /// Takes back half of the batches after the first `keep`, the last ones, or all if it keeps none of them.
    pub(crate) fn take_back(&self, keep: usize, half: bool) -> Vec<Key> {
        let mut queue = lock(&self.queue);
        let spare = queue.len().saturating_sub(keep);
        let count = if half { spare.div_ceil(2) } else { spare };
        let at = queue.len() - count;
        queue.split_off(at).into_iter().map(|job| job.key).collect()
    }

    /// Waits for a batch. Returns `None` at the end.
    fn next(&self) -> Option<Job> {
        loop {
            lock(&self.tokens).recv().ok()?;
            if let Some(job) = lock(&self.queue).pop_front() {
                return Some(job);
            }
        }
    }

    /// Returns a batch that can be started without a question, if there is one now.
    fn next_at_once(&self) -> Option<Job> {
        // A thread that has the tokens waits for one, or takes one at the moment.
        let tokens = self.tokens.try_lock().ok()?;
        let mut queue = lock(&self.queue);
        if queue.front().is_none_or(|job| job.again) || tokens.try_recv().is_err() {
            return None;
        }
        queue.pop_front()
    }
}

/// No user code runs under these locks, so their data is whole whatever panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts batches until the worker ends.
pub(crate) fn run<T, G>(
    thread: usize,
    jobs: &Jobs,
    pool: &Pool,
    stages: &Stages<G>,
    news: &UnboundedSender<News>,
) where
    T: DeserializeOwned + Send,
    G: Steps<T>,
    G::Out: Serialize + Send,
{
    let state = G::State::default();
    let mut runner = Runner { thread, jobs, pool, stages, news, state, run: None };
    while let Some(job) = jobs.next() {
        let mut next = may_start(&job, news).then_some(job);
        while let Some(job) = next {
            next = pool.install(|| runner.apply_some::<T>(job));
        }
    }
}

/// A thread that starts batches.
struct Runner<'r, G, S> {
    thread: usize,
    jobs: &'r Jobs,
    pool: &'r Pool,
    stages: &'r Stages<G>,
    news: &'r UnboundedSender<News>,
    state: S,
    /// The run to which the state belongs.
    run: Option<u64>,
}

impl<G, S> Runner<'_, G, S> {
    /// Applies the stages to a batch and to those that follow it at once, for a while: a worker of the pool is not woken for each.
    /// Returns the next batch, if one was said to be started.
    fn apply_some<T>(&mut self, job: Job) -> Option<Job>
    where
        T: DeserializeOwned + Send,
        G: Steps<T, State = S>,
        S: Default,
        G::Out: Serialize + Send,
    {
        let first = Instant::now();
        let mut next = Some(job);
        while let Some(job) = next.take() {
            if self.run.replace(job.run) != Some(job.run) {
                self.state = S::default();
            }
            let began = Instant::now();
            let computed = AssertUnwindSafe(|| self.compute::<T>(&job));
            let outcome = catch_unwind(computed).unwrap_or_else(|_| {
                let reason = "the code that reads items or writes results panicked".to_owned();
                Err(Failure::Codec { decoding: false, reason })
            });
            if outcome.is_err() {
                // A panic may have left the state half changed.
                self.state = S::default();
            }
            let micros = began.elapsed().as_micros() as u64;
            next = self.jobs.next_at_once();
            let (key, starts) = (job.key, next.as_ref().map(|job| job.key));
            let thread = self.thread;
            let ended = News::Ended { key, began, micros, thread, outcome, next: starts };
            if self.news.send(ended).is_err() {
                return None;
            }
            if first.elapsed() > WHILE {
                break;
            }
        }
        next
    }

    fn compute<T>(&mut self, job: &Job) -> Result<Computed, Failure>
    where
        T: DeserializeOwned + Send,
        G: Steps<T, State = S>,
        G::Out: Serialize + Send,
    {
        let Self { pool, stages, state, .. } = self;
        let codec = |decoding| {
            move |error: postcard::Error| Failure::Codec { decoding, reason: error.to_string() }
        };
        let items: Vec<T> = postcard::from_bytes(&job.items).map_err(codec(true))?;
        let token = &job.token;
        let batch = Numbered { number: job.number, first: job.first, items };
        let Applied { results, skipped, retried } =
            match token.run(|| stages.apply(pool, token, state, batch)) {
                Ok(Ok(applied)) => applied,
                Ok(Err(error)) => return Err(Failure::of_stage(&error)),
                Err(_) => return Err(Failure::of_stage(&cancelled())),
            };
        let results = postcard::to_stdvec(&results).map_err(codec(false))?;
        Ok(Computed { results, skipped, retried })
    }
}

/// Says that a batch is started, or asks whether it may be.
fn may_start(job: &Job, news: &UnboundedSender<News>) -> bool {
    if !job.again {
        return news.send(News::Started(job.key)).is_ok();
    }
    let (answer, permitted) = channel();
    let asked = news.send(News::May(job.key, answer));
    // Without an answer, the worker has ended or has given the batch back.
    asked.is_ok() && permitted.recv().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(jobs: &Jobs, wake: &Sender<()>, key: Key, again: bool) {
        let (items, token) = (Bytes::new(), CancelToken::new());
        jobs.push(Job { key, run: 1, number: key, first: 0, items, again, token });
        wake.send(()).expect("a receiver");
    }

    #[test]
    fn only_what_needs_no_question_follows_at_once() {
        let (jobs, wake) = Jobs::new();
        assert!(jobs.next_at_once().is_none());
        for (key, again) in [(1, false), (2, true), (3, false), (4, false)] {
            push(&jobs, &wake, key, again);
        }
        let mut keys = Vec::new();
        keys.extend(jobs.next_at_once().map(|job| job.key));
        // The second one must be asked about.
        assert!(jobs.next_at_once().is_none());
        keys.extend(jobs.next().map(|job| job.key));
        assert_eq!(jobs.take_back(0, true), [4]);
        keys.extend(jobs.next_at_once().map(|job| job.key));
        assert_eq!(keys, [1, 2, 3]);
        // What was given back has left a token.
        assert!(jobs.next_at_once().is_none());
        drop(wake);
        assert!(jobs.next().is_none());
    }
}
