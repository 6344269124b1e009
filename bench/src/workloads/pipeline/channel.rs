//! A pipeline written with crossbeam-channel: a thread that splits the source, workers, and the sink on the calling
//! thread, with bounded channels between them. For ordered results, the thread of the sink keeps what is not due
//! yet.

use std::collections::VecDeque;
use std::thread;

use crossbeam_channel::bounded;

use super::job::{BATCH, Job, Sink};
use crate::peers::channel::Workers;
use crate::peers::{Pool, global};

/// The entry with one batch in each message.
pub(super) const NAME: &str = Workers::NAME;

/// The entry with many batches in each message.
pub(super) const PACKED: &str = "channel-64";

/// The number of batches in such a message.
const PACK: usize = 64;

/// The capacity of either channel, in batches. Among the fastest of those tried, from 4 to 4096, in a few rounds on
/// a machine that was not quiet.
const CAPACITY: usize = 512;

pub(super) fn run<S: Sink>(job: Job) -> S {
    let mut sink = S::default();
    through(job, 1, S::ORDERED, |batch| job.work(batch), |result| sink.take(result));
    sink
}

pub(super) fn run_packed<S: Sink>(job: Job) -> S {
    let mut sink = S::default();
    let work = |pack: &[u64]| pack.chunks(BATCH).map(|batch| job.work(batch)).collect();
    let deliver = |results: Vec<u64>| results.into_iter().for_each(|result| sink.take(result));
    through(job, PACK, S::ORDERED, work, deliver);
    sink
}

/// Runs with messages of this many batches, each with its number.
fn through<R: Send>(
    job: Job,
    batches: usize,
    ordered: bool,
    work: impl Fn(&[u64]) -> R + Sync,
    mut deliver: impl FnMut(R),
) {
    let (to_workers, buffers) = bounded::<(usize, Vec<u64>)>(CAPACITY / batches);
    let (to_sink, results) = bounded(CAPACITY / batches);
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut buffers = job.buffers(batches).enumerate();
            let sent = buffers.try_for_each(|buffer| to_workers.send(buffer));
            sent.expect("the workers receive until the end");
        });
        for _ in 0..global::WORKERS {
            let (buffers, to_sink, work) = (buffers.clone(), to_sink.clone(), &work);
            scope.spawn(move || {
                for (number, buffer) in buffers {
                    to_sink.send((number, work(&buffer))).expect("the sink receives until the end");
                }
            });
        }
        drop((buffers, to_sink));
        if ordered {
            let mut order = Order::new();
            results
                .into_iter()
                .for_each(|(number, result)| order.put(number, result, &mut deliver));
        } else {
            results.into_iter().for_each(|(_, result)| deliver(result));
        }
    });
}

/// Puts results into order.
struct Order<R> {
    /// The number of the first result that has not been delivered.
    due: usize,
    /// The result with the number `due`, if it is there, and those after it.
    waiting: VecDeque<Option<R>>,
}

impl<R> Order<R> {
    fn new() -> Self {
        Self { due: 0, waiting: VecDeque::new() }
    }

    /// Delivers the results that are due now.
    fn put(&mut self, number: usize, result: R, mut deliver: impl FnMut(R)) {
        let place = number - self.due;
        if place >= self.waiting.len() {
            self.waiting.resize_with(place + 1, || None);
        }
        self.waiting[place] = Some(result);
        while let Some(result) = self.waiting.front_mut().and_then(Option::take) {
            self.waiting.pop_front();
            self.due += 1;
            deliver(result);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_put_in_order() {
        let mut order = Order::new();
        let mut seen = Vec::new();
        for number in [1, 0, 4, 2, 5, 6, 3, 7] {
            order.put(number, number * 10, |result| seen.push(result));
        }
        assert_eq!(seen, [0, 10, 20, 30, 40, 50, 60, 70]);
        assert!(order.waiting.is_empty());
    }
}
