//! What the tests of pipelines share: all configurations, a door that blocks threads, a count of the items in
//! flight, and planned failures.

use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use heist::pipeline::{Distribution, Pipeline, PipelineError, Source, Stage};
use heist::{CancelToken, Pool};

use super::{Ledger, Tracked, eventually};

/// A configuration of a pipeline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) distribution: Distribution,
    pub(crate) ordered: bool,
    pub(crate) steals: bool,
}

/// Returns all configurations.
pub(crate) fn ways() -> impl Iterator<Item = Way> + Clone {
    let switches = [(false, false), (false, true), (true, false), (true, true)];
    Distribution::ALL.into_iter().flat_map(move |distribution| {
        switches.into_iter().map(move |(ordered, steals)| Way { distribution, ordered, steals })
    })
}

/// Returns the configurations with stealing: a blocked worker keeps no batch from the others.
pub(crate) fn stealing_ways() -> impl Iterator<Item = Way> {
    ways().filter(|way| way.steals)
}

/// Returns the configurations with stealing and ordered results.
pub(crate) fn ordered_ways() -> impl Iterator<Item = Way> {
    stealing_ways().filter(|way| way.ordered)
}

impl Way {
    pub(crate) fn of<S: Source, G>(self, pipeline: Pipeline<S, G>) -> Pipeline<S, G> {
        let pipeline = pipeline.distribute(self.distribution).steal(self.steals);
        if self.ordered { pipeline.ordered() } else { pipeline }
    }

    /// Returns whether the source runs on a thread of its own and continues while all workers are
    /// blocked.
    pub(crate) fn has_producer(self) -> bool {
        self.distribution != Distribution::Pull
    }

    /// Panics unless these are all the results, in order if the configuration is ordered. `expected` is
    /// sorted.
    pub(crate) fn assert_all<T: Ord + Debug>(self, mut results: Vec<T>, expected: &[T]) {
        if !self.ordered {
            results.sort_unstable();
        }
        assert_eq!(results, expected, "{self:?}");
    }

    /// Panics unless these are some of the results `0..of`, each at most once. If the configuration is
    /// ordered, they must be the first ones.
    pub(crate) fn assert_some(self, mut results: Vec<usize>, of: usize) {
        if self.ordered {
            let first: Vec<_> = (0..results.len()).collect();
            assert_eq!(results, first, "{self:?}");
        }
        results.sort_unstable();
        assert!(results.windows(2).all(|pair| pair[0] < pair[1]), "doubled: {self:?} {results:?}");
        assert!(results.last().is_none_or(|last| *last < of), "{self:?} {results:?}");
    }
}

/// Blocks threads until it is opened. A thread that waits too long panics.
#[derive(Debug, Default)]
pub(crate) struct Door {
    open: AtomicBool,
    came: AtomicUsize,
}

impl Door {
    pub(crate) fn pass(&self) {
        self.came.fetch_add(1, Ordering::AcqRel);
        eventually("the door opens", || self.open.load(Ordering::Acquire));
    }

    pub(crate) fn open(&self) {
        self.open.store(true, Ordering::Release);
    }

    /// Waits until this many calls of `pass` have started.
    pub(crate) fn wait_for(&self, threads: usize) {
        eventually("enough threads reach the door", || {
            self.came.load(Ordering::Acquire) >= threads
        });
    }
}

/// Opens a door however a test ends, such that no thread stays blocked.
pub(crate) struct OpenOnDrop<'d>(pub(crate) &'d Door);

impl Drop for OpenOnDrop<'_> {
    fn drop(&mut self) {
        self.0.open();
    }
}

/// Counts what is in flight: taken from a source, and not delivered yet.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    taken: AtomicUsize,
    delivered: AtomicUsize,
    most: AtomicUsize,
}

impl Traffic {
    /// Records items that were taken from the source. To be called before the pipeline can see them.
    pub(crate) fn take(&self, amount: usize) {
        let taken = self.taken.fetch_add(amount, Ordering::AcqRel) + amount;
        // A delivery between the two operations makes the number smaller, which can only be in the
        // pipeline's favour.
        let now = taken.saturating_sub(self.delivered.load(Ordering::Acquire));
        self.most.fetch_max(now, Ordering::AcqRel);
    }

    pub(crate) fn deliver(&self, amount: usize) {
        self.delivered.fetch_add(amount, Ordering::AcqRel);
    }

    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }

    pub(crate) fn delivered(&self) -> usize {
        self.delivered.load(Ordering::Acquire)
    }

    /// Returns the largest number that was ever in flight.
    pub(crate) fn most(&self) -> usize {
        self.most.load(Ordering::Acquire)
    }
}

/// An item and its result. The result is made together with the item, such that both are dropped exactly
/// once even if the item is never processed.
pub(crate) type TrackedItem = (Tracked, Tracked);

/// Returns tracked items, and a ledger in which all items and results must be dropped once at the end.
pub(crate) fn tracked_items(count: usize) -> (Ledger, Vec<TrackedItem>) {
    let ledger = Ledger::new(2 * count);
    let tracked_items = (0..count).map(|n| (ledger.item(n), ledger.item(count + n))).collect();
    (ledger, tracked_items)
}

/// Processes an item: drops it and returns the result.
pub(crate) fn into_result((item, result): TrackedItem) -> Tracked {
    drop(item);
    result
}

/// How a stage fails.
#[derive(Clone, Copy, Debug)]
pub(crate) enum How {
    Error,
    Panic,
}

/// A failure at a certain item.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) stage: Stage,
    pub(crate) how: How,
    pub(crate) item: usize,
}

impl Fault {
    /// Fails if the stage and the item are those of the fault.
    pub(crate) fn check(self, stage: Stage, item: usize) -> Result<(), String> {
        if (stage, item) != (self.stage, self.item) {
            return Ok(());
        }
        match self.how {
            How::Error => Err(format!("planned: {item}")),
            How::Panic => panic!("planned: {item}"),
        }
    }

    /// Panics unless the error describes this fault.
    pub(crate) fn assert_told(self, error: &PipelineError, batch: usize) {
        let batch = (self.item / batch) as u64;
        assert_eq!((error.stage(), error.batch()), (Some(self.stage), Some(batch)), "{self:?}");
        assert_eq!(error.item(), Some(self.item as u64), "{self:?}");
        let said = match (self.how, error) {
            (How::Error, PipelineError::Failed { source, .. }) => source.to_string(),
            (How::Panic, PipelineError::Panicked { panic, .. }) => panic.message().to_owned(),
            _ => panic!("{self:?}: {error:?}"),
        };
        assert_eq!(said, format!("planned: {}", self.item));
    }
}

/// Panics unless the pool still runs tasks and pipelines.
pub(crate) fn assert_works(pool: &Pool) {
    assert_eq!(pool.spawn(|| 1).join().expect("a result"), 1);
    let mut results = Vec::new();
    let doubled = Pipeline::new(0..20).batch(3).map(|n| 2 * n).ordered();
    doubled.run(pool, |n| results.push(n)).expect("an end");
    assert_eq!(results, (0..20).map(|n| 2 * n).collect::<Vec<_>>());
}

/// Panics unless the run was cancelled.
pub(crate) fn assert_cancelled<T: Debug>(outcome: Result<T, PipelineError>) {
    assert!(matches!(outcome, Err(PipelineError::Cancelled { .. })), "{outcome:?}");
}

/// Cancels a token however a test ends, such that no run continues forever.
pub(crate) struct CancelOnDrop<'t>(pub(crate) &'t CancelToken);

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
