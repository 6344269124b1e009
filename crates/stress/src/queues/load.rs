//! The threads of a case: which of them push, pop and steal.

use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::thread::{self, Builder, ScopedJoinHandle};

use heist_deque::{Full, Injector, Steal, bounded, growable, locked};

use super::{Case, Queue};
use crate::exactly_once::ExactlyOnce;

/// What became of the items.
pub(crate) struct Run {
    pub(super) items: ExactlyOnce,
    pub(super) popped: AtomicUsize,
    /// How many items a full deque handed back.
    pub(super) handed_back: AtomicUsize,
    pub(super) stolen: AtomicUsize,
    pub(super) retries: AtomicUsize,
    /// Set when everything has been pushed, and the owner of a deque has popped all that it could.
    pushed: AtomicBool,
}

impl Run {
    fn new(items: usize) -> Self {
        let [popped, handed_back, stolen, retries] = [const { AtomicUsize::new(0) }; 4];
        Self {
            items: ExactlyOnce::new(items),
            popped,
            handed_back,
            stolen,
            retries,
            pushed: AtomicBool::new(false),
        }
    }

    fn record(&self, item: usize, counter: &AtomicUsize) {
        self.items.record(item);
        counter.fetch_add(1, Relaxed);
    }

    /// Runs a thief: steals one item or a batch, by turns, until everything has been pushed and nothing is
    /// left. `pop` takes what a batch has moved into the thief's own deque.
    fn steal_all(
        &self,
        case: &Case,
        mut steal_one: impl FnMut() -> Steal<usize>,
        mut steal_batch: impl FnMut() -> Steal<usize>,
        mut pop: impl FnMut() -> Option<usize>,
    ) {
        for turn in 0_usize.. {
            // Ordering: Acquire, with the Release of `SetOnDrop`. It is loaded before the steal: only an
            // empty queue that is seen after the last push shows that nothing is left.
            let pushed = self.pushed.load(Acquire);
            match if turn % case.batch_interval == 0 { steal_batch() } else { steal_one() } {
                Steal::Success(item) => self.record(item, &self.stolen),
                Steal::Retry => _ = self.retries.fetch_add(1, Relaxed),
                Steal::Empty if pushed => return,
                Steal::Empty => thread::yield_now(),
            }
            while let Some(item) = pop() {
                self.record(item, &self.stolen);
            }
        }
    }
}

/// Sets the flag when dropped. This also happens if the system refuses a thread: without the flag, the
/// thieves that have started would wait for ever.
struct SetOnDrop<'r>(&'r AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Release);
    }
}

fn join_all(threads: Vec<ScopedJoinHandle<'_, ()>>) {
    let ended = threads.into_iter().try_for_each(|thread| thread.join());
    ended.expect("these threads do not panic");
}

/// Runs a case on a deque. This is a macro because the flavours have the same methods but no trait in
/// common. `$push` returns an item that does not fit.
macro_rules! load_deque {
    ($case:expr, $new:expr, $push:expr) => {{
        let (case, run) = ($case, Run::new($case.items));
        let (worker, stealer) = $new;
        thread::scope(|scope| {
            let pushed = SetOnDrop(&run.pushed);
            let mut thieves = Vec::new();
            for _ in 0..case.thieves {
                let (stealer, run) = (stealer.clone(), &run);
                let steal = move || {
                    let (own, _) = $new;
                    let steal_batch = || stealer.steal_batch_and_pop(&own);
                    run.steal_all(case, || stealer.steal(), steal_batch, || own.pop());
                };
                thieves.push(Builder::new().spawn_scoped(scope, steal)?);
            }
            for item in 0..case.items {
                if let Some(item) = $push(&worker, item) {
                    run.record(item, &run.handed_back);
                }
                for _ in 0..usize::from(item % case.pop_interval == 0) * (item % case.max_pops) {
                    let Some(item) = worker.pop() else { break };
                    run.record(item, &run.popped);
                }
            }
            while let Some(item) = worker.pop() {
                run.record(item, &run.popped);
            }
            drop(pushed);
            join_all(thieves);
            io::Result::Ok(())
        })?;
        Ok(run)
    }};
}

impl Case {
    /// Runs the threads to their end. The error is that of a system that refuses a thread.
    pub(super) fn load(&self) -> io::Result<Run> {
        match self.queue {
            Queue::Bounded(capacity) => load_deque!(
                self,
                bounded::new(capacity).expect("a power of two"),
                |worker: &bounded::Worker<usize>, item| worker
                    .push(item)
                    .err()
                    .map(Full::into_inner)
            ),
            Queue::Growable => {
                load_deque!(self, growable::new(), |worker: &growable::Worker<usize>, item| {
                    worker.push(item);
                    None
                })
            }
            Queue::Locked => {
                load_deque!(self, locked::new(), |worker: &locked::Worker<usize>, item| {
                    worker.push(item);
                    None
                })
            }
            Queue::Injector(pushers) => self.load_injector(pushers),
        }
    }

    fn load_injector(&self, pushers: usize) -> io::Result<Run> {
        let run = Run::new(self.items);
        let injector = Injector::new();
        thread::scope(|scope| {
            let pushed = SetOnDrop(&run.pushed);
            let steal = || {
                let (own, _) = growable::new();
                let steal_batch = || injector.steal_batch_and_pop(&own);
                run.steal_all(self, || injector.steal(), steal_batch, || own.pop());
            };
            let thieves = (0..self.thieves).map(|_| Builder::new().spawn_scoped(scope, steal));
            let thieves = thieves.collect::<Result<_, _>>()?;
            let push = |first: usize| {
                let injector = &injector;
                move || (first..self.items).step_by(pushers).for_each(|item| injector.push(item))
            };
            let pushers = (0..pushers).map(|first| Builder::new().spawn_scoped(scope, push(first)));
            join_all(pushers.collect::<Result<_, _>>()?);
            drop(pushed);
            join_all(thieves);
            io::Result::Ok(())
        })?;
        Ok(run)
    }
}
