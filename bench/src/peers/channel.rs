//! A pool written with crossbeam-channel: threads that receive boxed closures. An answer comes through a channel of
//! the standard library, which is faster here than one of crossbeam's.

use std::sync::mpsc;
use std::thread::Builder;

use crossbeam_channel::{Sender, unbounded};

use super::{Job, Pool, answer, granted};

/// The pool. Its threads end when it is dropped and all tasks are done.
pub(crate) struct Workers(Sender<Job>);

impl Pool for Workers {
    const NAME: &'static str = "channel";

    fn new(workers: usize) -> Self {
        let (sender, receiver) = unbounded::<Job>();
        for _ in 0..workers {
            let receiver = receiver.clone();
            let work = move || receiver.into_iter().for_each(|job| job());
            granted(Builder::new().spawn(work));
        }
        Self(sender)
    }

    #[inline]
    fn spawn(&self, task: impl FnOnce() + Send + 'static) {
        self.0.send(Box::new(task)).expect("the workers live as long as the sender");
    }

    fn ask(&self, question: u64) -> u64 {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.spawn(move || _ = sender.send(answer(question)));
        receiver.recv().expect("the answer does not panic")
    }
}
