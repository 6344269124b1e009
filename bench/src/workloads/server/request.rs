//! A request, and the run of requests to which it belongs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use harness::random::mix;
use harness::row::nanoseconds;

use super::threads::Threads;
use super::work::{result, work};

/// The number of parts into which a request divides its second piece of work.
pub(super) const PARTS: u32 = 4;

/// The number of pieces of work, all equally long: one at the beginning, the parts, one on the other pool, and one at
/// the end.
pub(super) const PIECES: u32 = PARTS + 3;

/// A run that takes longer than this after the last request has lost one.
const PATIENCE: Duration = Duration::from_secs(60);

/// One request. Every piece of its work has another result, and the answer is their sum.
#[derive(Clone)]
pub(super) struct Request {
    run: Arc<Run>,
    number: usize,
    due: Instant,
}

impl Request {
    pub(super) fn new(run: &Arc<Run>, number: usize, due: Instant) -> Self {
        Self { run: Arc::clone(run), number, due }
    }

    /// Does the first piece of work.
    pub(super) fn begin(&self) -> u64 {
        self.piece(0)
    }

    /// Does the work of one part.
    pub(super) fn part(&self, part: u32) -> u64 {
        self.piece(1 + part)
    }

    /// Does what belongs on the other pool.
    pub(super) fn elsewhere(&self) -> u64 {
        self.piece(1 + PARTS)
    }

    /// Does the last piece of work, and answers with the sum of all results. The others are passed.
    pub(super) fn finish(&self, others: u64) {
        let answer = others.wrapping_add(self.piece(2 + PARTS));
        self.run.answer(self.number, answer, self.due.elapsed());
    }

    fn piece(&self, piece: u32) -> u64 {
        Threads::note(&self.run.threads);
        work(seed(self.number, piece), self.run.turns)
    }
}

fn seed(number: usize, piece: u32) -> u64 {
    mix(number as u64 * u64::from(PIECES) + u64::from(piece))
}

/// Returns the correct answer.
fn expected(number: usize, turns: u64) -> u64 {
    let results = (0..PIECES).map(|piece| result(seed(number, piece), turns));
    results.fold(0, u64::wrapping_add)
}

/// What the requests of one sample share.
pub(super) struct Run {
    /// The turns of one piece of work.
    turns: u64,
    answers: Box<[Answer]>,
    /// The number of requests without an answer.
    left: AtomicUsize,
    /// The thread that sends the requests, and then waits for the last answer.
    sender: Thread,
    threads: Arc<Threads>,
}

/// The answer of one request, written by the thread that serves it.
#[derive(Default)]
struct Answer {
    sum: AtomicU64,
    nanoseconds: AtomicU64,
    times: AtomicUsize,
}

impl Run {
    /// Returns a run of this many requests. The calling thread is the one that waits.
    pub(super) fn new(requests: usize, turns: u64) -> Arc<Self> {
        Arc::new(Self {
            turns,
            answers: (0..requests).map(|_| Answer::default()).collect(),
            left: AtomicUsize::new(requests),
            sender: thread::current(),
            threads: Arc::default(),
        })
    }

    pub(super) fn threads(&self) -> &Threads {
        &self.threads
    }

    fn answer(&self, number: usize, sum: u64, time: Duration) {
        let answer = &self.answers[number];
        answer.sum.store(sum, Ordering::Relaxed);
        answer.nanoseconds.store(nanoseconds(time) as u64, Ordering::Relaxed);
        answer.times.fetch_add(1, Ordering::Relaxed);
        // Ordering: release, the partner of the load in `wait`, which then sees all answers.
        if self.left.fetch_sub(1, Ordering::Release) == 1 {
            self.sender.unpark();
        }
    }

    /// Waits for the last answer. Returns how long each took, in nanoseconds and in the order of the requests.
    ///
    /// # Panics
    ///
    /// Panics if an answer is missing or wrong, or came twice.
    pub(super) fn wait(&self, name: &str) -> Vec<f64> {
        let begin = Instant::now();
        // Ordering: acquire, the partner of the decrement in `answer`.
        while self.left.load(Ordering::Acquire) > 0 {
            assert!(begin.elapsed() < PATIENCE, "{name}: some requests were lost");
            thread::park_timeout(PATIENCE);
        }
        let check = |(number, answer): (usize, &Answer)| {
            assert_eq!(answer.times.load(Ordering::Relaxed), 1, "{name}: answers to {number}");
            let sum = answer.sum.load(Ordering::Relaxed);
            assert_eq!(sum, expected(number, self.turns), "{name}: wrong answer to {number}");
            answer.nanoseconds.load(Ordering::Relaxed) as f64
        };
        self.answers.iter().enumerate().map(check).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serve(request: &Request, parts: impl Iterator<Item = u32>) {
        let parts = parts.map(|part| request.part(part)).fold(0, u64::wrapping_add);
        request.finish(request.begin().wrapping_add(parts).wrapping_add(request.elsewhere()));
    }

    fn run(numbers: &[usize], parts: u32) -> Vec<f64> {
        let run = Run::new(2, 10);
        for &number in numbers {
            serve(&Request::new(&run, number, Instant::now()), (0..parts).rev());
        }
        run.wait("test")
    }

    #[test]
    fn requests_may_end_in_any_order() {
        assert_eq!(run(&[1, 0], PARTS).len(), 2);
    }

    #[test]
    #[should_panic(expected = "wrong answer to 0")]
    fn a_missing_part_is_noticed() {
        run(&[0, 1], PARTS - 1);
    }

    #[test]
    #[should_panic(expected = "answers to 0")]
    fn a_request_that_runs_twice_is_noticed() {
        run(&[0, 0], PARTS);
    }

    #[test]
    fn latency_counts_from_when_a_request_was_due() {
        let late = Duration::from_millis(500);
        let run = Run::new(1, 10);
        serve(&Request::new(&run, 0, Instant::now() - late), 0..PARTS);
        assert!(run.wait("test")[0] >= nanoseconds(late));
    }
}
