//! Queues of every flavour under load.

mod load;

use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Instant;

use crate::rng::Rng;
use crate::{Error, Monitor, Size, Subject, random};
use load::Run;

/// The queue that is tested.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Queue {
    /// A bounded deque with this capacity, a power of two.
    Bounded(usize),
    Growable,
    Locked,
    /// An injector into which so many threads push.
    Injector(usize),
}

/// One owner pushes numbered items and pops some of them back, and thieves steal the rest. Into an
/// injector, several threads push. Every item must come out exactly once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    queue: Queue,
    items: usize,
    thieves: usize,
    /// The owner pops after every so many pushes.
    pop_interval: usize,
    /// The owner pops fewer items than this at a time, and a different number each time: the deque is
    /// sometimes deep and sometimes empty.
    max_pops: usize,
    /// A thief steals a batch in one of so many steals.
    batch_interval: usize,
}

impl Case {
    pub(crate) fn random(rng: &mut Rng, max_items: u64) -> Self {
        let queues = [
            Queue::Bounded(1 << rng.below(9)),
            Queue::Growable,
            Queue::Locked,
            Queue::Injector(1 + rng.below(3) as usize),
        ];
        Self {
            queue: rng.pick(&queues),
            items: rng.below(max_items) as usize,
            thieves: rng.below(5) as usize + 1,
            pop_interval: rng.pick(&[1, 2, 7, 100]),
            max_pops: rng.pick(&[1, 3, 11, 64]),
            batch_interval: rng.pick(&[1, 2, 4, 1000]),
        }
    }

    /// Runs the case, and returns how many items it had.
    pub(crate) fn run(&self) -> Result<u64, Error> {
        self.load_and_check()?;
        Ok(self.items as u64)
    }

    fn load_and_check(&self) -> Result<Run, Error> {
        let run = self.load()?;
        run.items.check("items").map_err(|violation| violation.in_case(self))?;
        Ok(run)
    }
}

/// Puts each kind of queue under load, then runs random cases.
pub(crate) fn run(seed: u64, size: Size, monitor: &Monitor<'_>) -> Result<(), Error> {
    let items = size.choose(200_000, 2_000_000);
    let thieves = thread::available_parallelism().map_or(2, |n| n.get().max(2));
    let mut first_error = Ok(());
    // The others run as well after one that fails: which of them fail helps to find the reason.
    for queue in [Queue::Bounded(256), Queue::Growable, Queue::Locked, Queue::Injector(2)] {
        let case = Case { queue, items, thieves, pop_interval: 7, max_pops: 11, batch_interval: 4 };
        let start = Instant::now();
        match case.load_and_check() {
            Ok(run) => monitor.report(&describe(&case, &run, start)),
            Err(error) => {
                monitor.report(&format!("{queue:?}: WRONG: {error}"));
                first_error = first_error.and(Err(error));
            }
        }
    }
    first_error?;
    random::run_some(Subject::Queues, seed, size, monitor)
}

fn describe(case: &Case, run: &Run, start: Instant) -> String {
    format!(
        "{:?}: {} items, {} thieves, {} popped, {} handed back, {} stolen, {} retries, {:.0} ms",
        case.queue,
        case.items,
        case.thieves,
        run.popped.load(Relaxed),
        run.handed_back.load(Relaxed),
        run.stolen.load(Relaxed),
        run.retries.load(Relaxed),
        start.elapsed().as_secs_f64() * 1e3,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_cases_are_right() {
        for seed in 0..150 {
            let case = Case::random(&mut Rng::new(seed), 300);
            assert_eq!(case.run(), Ok(case.items as u64), "seed {seed}");
        }
    }
}
