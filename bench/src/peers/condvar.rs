//! What one writes with the standard library alone: a queue in a mutex, and a condition variable.

#![expect(clippy::disallowed_types, reason = "no model checks this; it is a peer")]

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::Builder;

use super::{Job, Pool, answer, granted};

/// The threads end when it is dropped and all is done.
pub(crate) struct Workers(Arc<Queue>);

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    bell: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    stopped: bool,
}

impl Queue {
    /// Waits for a job; `None` after the end.
    fn next(&self) -> Option<Job> {
        let idle = |state: &mut State| state.jobs.is_empty() && !state.stopped;
        let mut state = self.bell.wait_while(self.state.lock().unwrap(), idle).unwrap();
        state.jobs.pop_front()
    }
}

impl Pool for Workers {
    const NAME: &'static str = "condvar";

    fn new(workers: usize) -> Self {
        let queue = Arc::<Queue>::default();
        for _ in 0..workers {
            let queue = Arc::clone(&queue);
            let work = move || {
                while let Some(job) = queue.next() {
                    job();
                }
            };
            granted(Builder::new().spawn(work));
        }
        Self(queue)
    }

    fn spawn(&self, task: impl FnOnce() + Send + 'static) {
        self.0.state.lock().unwrap().jobs.push_back(Box::new(task));
        self.0.bell.notify_one();
    }

    fn ask(&self, question: u64) -> u64 {
        let letter = Arc::<Letter>::default();
        let sent = Arc::clone(&letter);
        self.spawn(move || sent.write(answer(question)));
        letter.read()
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.0.state.lock().unwrap().stopped = true;
        self.0.bell.notify_all();
    }
}

/// One answer on its way.
#[derive(Default)]
struct Letter {
    answer: Mutex<Option<u64>>,
    bell: Condvar,
}

impl Letter {
    fn write(&self, answer: u64) {
        *self.answer.lock().unwrap() = Some(answer);
        self.bell.notify_one();
    }

    fn read(&self) -> u64 {
        let missing = |answer: &mut Option<u64>| answer.is_none();
        let answer = self.bell.wait_while(self.answer.lock().unwrap(), missing).unwrap();
        answer.expect("it is no longer missing")
    }
}
