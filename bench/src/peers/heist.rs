//! heist, with each of its strategies: work stealing is what is measured, the other two are baselines.

use std::marker::PhantomData;

use heist::{Pin, Stats, Strategy};

use super::{Pool, STACK, answer, granted, traced};

pub(crate) type Stealing = Heist<WorkStealing>;
pub(crate) type Locked = Heist<LockedDeques>;
pub(crate) type Global = Heist<GlobalQueue>;

/// Distinguishes the strategies by type, because the other pools differ by type as well.
pub(crate) trait Choice: Send + Sync + 'static {
    const NAME: &'static str;
    const STRATEGY: Strategy;
    /// The number of trace events that a pool keeps for each thread. It is zero unless stated, whatever the
    /// environment says, so that the environment does not change what is measured.
    const EVENTS: usize = 0;

    /// Where the workers are pinned.
    fn pin() -> Pin {
        Pin::None
    }
}

pub(crate) struct WorkStealing;
pub(crate) struct LockedDeques;
pub(crate) struct GlobalQueue;

/// Work stealing with one processor for each worker.
pub(crate) struct Pinned;

/// Work stealing in a pool that keeps a trace.
pub(crate) struct Traced;

impl Choice for WorkStealing {
    const NAME: &'static str = "heist";
    const STRATEGY: Strategy = Strategy::WorkStealing;
}

impl Choice for LockedDeques {
    const NAME: &'static str = "heist-locked";
    const STRATEGY: Strategy = Strategy::LockedDeques;
}

impl Choice for GlobalQueue {
    const NAME: &'static str = "heist-global";
    const STRATEGY: Strategy = Strategy::GlobalQueue;
}

impl Choice for Pinned {
    const NAME: &'static str = "heist-pinned";
    const STRATEGY: Strategy = Strategy::WorkStealing;

    fn pin() -> Pin {
        Pin::InOrder
    }
}

impl Choice for Traced {
    const NAME: &'static str = "traced";
    const STRATEGY: Strategy = Strategy::WorkStealing;
    const EVENTS: usize = traced::EVENTS;
}

pub(crate) struct Heist<C>(heist::Pool, PhantomData<C>);

impl<C> Heist<C> {
    /// Runs a closure on a worker, and waits for it.
    #[inline]
    pub(crate) fn install<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
        self.0.install(f)
    }

    /// Returns the pool itself, for calls that other pools do not have.
    pub(crate) fn pool(&self) -> &heist::Pool {
        &self.0
    }

    pub(crate) fn stats(&self) -> Stats {
        self.0.stats()
    }
}

impl<C: Choice> Heist<C> {
    fn with_events(workers: usize, events: usize) -> Self {
        let builder = heist::Pool::builder().workers(workers).strategy(C::STRATEGY).pin(C::pin());
        let pool = builder.stack_size(STACK).trace(events).build();
        Self(granted(pool), PhantomData)
    }
}

impl<C: Choice> Pool for Heist<C> {
    const NAME: &'static str = C::NAME;

    fn new(workers: usize) -> Self {
        Self::with_events(workers, C::EVENTS)
    }

    fn traced(workers: usize, events: usize) -> Option<Self> {
        Some(Self::with_events(workers, events))
    }

    #[inline]
    fn spawn(&self, task: impl FnOnce() + Send + 'static) {
        drop(self.0.spawn(task));
    }

    fn spawn_batch<F: FnOnce() + Send + 'static>(&self, tasks: impl Iterator<Item = F>) {
        drop(self.0.spawn_batch(tasks));
    }

    fn ours(&self) -> Option<&heist::Pool> {
        Some(&self.0)
    }

    fn ask(&self, question: u64) -> u64 {
        self.0.spawn(move || answer(question)).join().expect("the answer does not panic")
    }
}
