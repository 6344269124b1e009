//! A queue under load: one owner (or several threads that push, into an injector), and thieves who take what they get, one by one
//! and in batches.

use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::thread::{self, Builder, ScopedJoinHandle};

use heist_deque::{Full, Injector, Steal, bounded, growable, locked};

use super::tally::Tally;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Queue {
    /// With so many places, a power of two.
    Bounded(usize),
    Growable,
    Locked,
    /// With so many threads that push.
    Injector(usize),
}

/// What is done to a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) queue: Queue,
    pub(crate) items: usize,
    pub(crate) thieves: usize,
    /// After every so many pushes the owner pops,
    pub(crate) every: usize,
    /// in runs of different lengths below this one, so that the deque is now deep and now empty.
    pub(crate) pops: usize,
    /// Every so many steals is one of a batch.
    pub(crate) batches: usize,
}

/// What became of the items.
pub(crate) struct Run {
    pub(crate) tally: Tally,
    pub(crate) popped: AtomicUsize,
    /// By a deque that was full.
    pub(crate) handed_back: AtomicUsize,
    pub(crate) stolen: AtomicUsize,
    pub(crate) retries: AtomicUsize,
    /// Has everything been pushed?
    done: AtomicBool,
}

impl Run {
    fn new(items: usize) -> Self {
        let [popped, handed_back, stolen, retries] = [const { AtomicUsize::new(0) }; 4];
        Self {
            tally: Tally::new(items),
            popped,
            handed_back,
            stolen,
            retries,
            done: AtomicBool::new(false),
        }
    }

    fn mark(&self, item: usize, by: &AtomicUsize) {
        self.tally.mark(item);
        by.fetch_add(1, Relaxed);
    }

    /// A thief: steals one by one or in batches, by turns, until the owner is done and nothing is left.
    fn rob(
        &self,
        plan: &Plan,
        mut one: impl FnMut() -> Steal<usize>,
        mut batch: impl FnMut() -> Steal<usize>,
        mut mine: impl FnMut() -> Option<usize>,
    ) {
        for turn in 0_usize.. {
            let done = self.done.load(Acquire);
            match if turn.is_multiple_of(plan.batches) { batch() } else { one() } {
                Steal::Success(item) => self.mark(item, &self.stolen),
                Steal::Retry => _ = self.retries.fetch_add(1, Relaxed),
                Steal::Empty if done => return,
                Steal::Empty => thread::yield_now(),
            }
            while let Some(item) = mine() {
                self.mark(item, &self.stolen);
            }
        }
    }
}

/// Says so when it is dropped, also if the system has refused a thread: those that there are would wait for ever.
struct Pushed<'r>(&'r AtomicBool);

impl Drop for Pushed<'_> {
    fn drop(&mut self) {
        self.0.store(true, Release);
    }
}

fn wait_for(threads: Vec<ScopedJoinHandle<'_, ()>>) {
    let ended = threads.into_iter().try_for_each(|thread| thread.join());
    ended.expect("these threads do not panic");
}

/// The flavours have the same verbs and no trait. `push` returns what does not fit.
macro_rules! hammer {
    ($plan:expr, $new:expr, $push:expr) => {{
        let (plan, run) = ($plan, Run::new($plan.items));
        let (worker, stealer) = $new;
        thread::scope(|scope| {
            let pushed = Pushed(&run.done);
            // The handles are kept to the end: a race detector forgets a thread without one.
            let mut thieves = Vec::new();
            for _ in 0..plan.thieves {
                let (stealer, run) = (stealer.clone(), &run);
                let rob = move || {
                    let (mine, _) = $new;
                    let batch = || stealer.steal_batch_and_pop(&mine);
                    run.rob(plan, || stealer.steal(), batch, || mine.pop());
                };
                thieves.push(Builder::new().spawn_scoped(scope, rob)?);
            }
            for item in 0..plan.items {
                if let Some(full) = $push(&worker, item) {
                    run.mark(full, &run.handed_back);
                }
                for _ in 0..usize::from(item % plan.every == 0) * (item % plan.pops) {
                    let Some(item) = worker.pop() else { break };
                    run.mark(item, &run.popped);
                }
            }
            while let Some(item) = worker.pop() {
                run.mark(item, &run.popped);
            }
            drop(pushed);
            wait_for(thieves);
            io::Result::Ok(())
        })?;
        Ok(run)
    }};
}

impl Plan {
    /// The error is that of a system that has no more threads.
    pub(crate) fn run(&self) -> io::Result<Run> {
        match self.queue {
            Queue::Bounded(capacity) => hammer!(
                self,
                bounded::new(capacity).expect("a power of two"),
                |worker: &bounded::Worker<usize>, item| worker
                    .push(item)
                    .err()
                    .map(Full::into_inner)
            ),
            Queue::Growable => {
                hammer!(self, growable::new(), |worker: &growable::Worker<usize>, item| {
                    worker.push(item);
                    None
                })
            }
            Queue::Locked => {
                hammer!(self, locked::new(), |worker: &locked::Worker<usize>, item| {
                    worker.push(item);
                    None
                })
            }
            Queue::Injector(pushers) => self.injector(pushers),
        }
    }

    fn injector(&self, pushers: usize) -> io::Result<Run> {
        let run = Run::new(self.items);
        let injector = Injector::new();
        thread::scope(|scope| {
            let pushed = Pushed(&run.done);
            let rob = || {
                let (mine, _) = growable::new();
                let batch = || injector.steal_batch_and_pop(&mine);
                run.rob(self, || injector.steal(), batch, || mine.pop());
            };
            let thieves = (0..self.thieves).map(|_| Builder::new().spawn_scoped(scope, rob));
            let thieves = thieves.collect::<Result<_, _>>()?;
            let push = |part: usize| {
                let injector = &injector;
                move || (part..self.items).step_by(pushers).for_each(|item| injector.push(item))
            };
            let pushers = (0..pushers).map(|part| Builder::new().spawn_scoped(scope, push(part)));
            wait_for(pushers.collect::<Result<_, _>>()?);
            drop(pushed);
            wait_for(thieves);
            io::Result::Ok(())
        })?;
        Ok(run)
    }
}
