//! A pool written with the standard library alone: a queue in a mutex, and a condition variable.

#![expect(clippy::disallowed_types, reason = "no model checks this; it is a peer")]

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::Builder;

use super::{Job, Pool, answer, granted};

/// The pool. Its threads end when it is dropped and all tasks are done.
pub(crate) struct Workers(Arc<Queue>);

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    stopped: bool,
}

impl Queue {
    /// Waits for a job. Returns `None` after the end.
    fn next(&self) -> Option<Job> {
        let idle = |state: &mut State| state.jobs.is_empty() && !state.stopped;
        let mut state = self.wake.wait_while(self.state.lock().unwrap(), idle).unwrap();
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
        self.0.wake.notify_one();
    }

    fn ask(&self, question: u64) -> u64 {
        let answered = Arc::<Answer>::default();
        let sent = Arc::clone(&answered);
        self.spawn(move || sent.set(answer(question)));
        answered.wait()
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.0.state.lock().unwrap().stopped = true;
        self.0.wake.notify_all();
    }
}

/// An answer for a waiting thread.
#[derive(Default)]
struct Answer {
    answer: Mutex<Option<u64>>,
    wake: Condvar,
}

impl Answer {
    fn set(&self, answer: u64) {
        *self.answer.lock().unwrap() = Some(answer);
        self.wake.notify_one();
    }

    fn wait(&self) -> u64 {
        let missing = |answer: &mut Option<u64>| answer.is_none();
        let answer = self.wake.wait_while(self.answer.lock().unwrap(), missing).unwrap();
        answer.expect("the wait ends when there is an answer")
    }
}
