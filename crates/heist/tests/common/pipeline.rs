//! What the tests of pipelines share: all the ways to run one, a door that holds up what wants to
//! pass, a count of what is on its way, and faults that lie in wait.

use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use heist::pipeline::{Distribution, Pipeline, PipelineError, Source, Stage};
use heist::{CancelToken, Pool};

use super::{Ledger, Tracked, eventually};

/// A way to run a pipeline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) distribution: Distribution,
    pub(crate) ordered: bool,
    pub(crate) steals: bool,
}

/// All of them.
pub(crate) fn ways() -> impl Iterator<Item = Way> + Clone {
    let switches = [(false, false), (false, true), (true, false), (true, true)];
    Distribution::ALL.into_iter().flat_map(move |distribution| {
        switches.into_iter().map(move |(ordered, steals)| Way { distribution, ordered, steals })
    })
}

/// Those in which a worker that is held up keeps no batch from the others.
pub(crate) fn stealing_ways() -> impl Iterator<Item = Way> {
    ways().filter(|way| way.steals)
}

/// Those of them in which results come in order.
pub(crate) fn ordered_ways() -> impl Iterator<Item = Way> {
    stealing_ways().filter(|way| way.ordered)
}

impl Way {
    pub(crate) fn of<S: Source, G>(self, pipeline: Pipeline<S, G>) -> Pipeline<S, G> {
        let pipeline = pipeline.distribute(self.distribution).steal(self.steals);
        if self.ordered { pipeline.ordered() } else { pipeline }
    }

    /// Has the source a thread of its own, so that it goes on while all workers are held up?
    pub(crate) fn has_producer(self) -> bool {
        self.distribution != Distribution::Pull
    }

    /// Panics unless these are all the results, in order if this is an ordered way. What is expected
    /// is sorted.
    pub(crate) fn assert_all<T: Ord + Debug>(self, mut results: Vec<T>, expected: &[T]) {
        if !self.ordered {
            results.sort_unstable();
        }
        assert_eq!(results, expected, "{self:?}");
    }

    /// Panics unless these are some of the results `0..of`, none of them twice; the first of them, if
    /// this is an ordered way.
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

/// Closed until it is opened. Who waits in vain panics.
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

    /// Waits until so many have come here.
    pub(crate) fn wait_for(&self, visitors: usize) {
        eventually("somebody comes to the door", || self.came.load(Ordering::Acquire) >= visitors);
    }
}

/// OpenOnDrop a door however a test ends, so that nobody is left behind it.
pub(crate) struct OpenOnDrop<'d>(pub(crate) &'d Door);

impl Drop for OpenOnDrop<'_> {
    fn drop(&mut self) {
        self.0.open();
    }
}

/// How much is on its way: taken from a source, and not delivered.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    taken: AtomicUsize,
    delivered: AtomicUsize,
    most: AtomicUsize,
}

impl Traffic {
    /// Before what is taken can be seen elsewhere.
    pub(crate) fn take(&self, amount: usize) {
        let taken = self.taken.fetch_add(amount, Ordering::AcqRel) + amount;
        // A delivery between the two is the pipeline's gain: it had not counted on it.
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

    /// The most that was ever on its way.
    pub(crate) fn most(&self) -> usize {
        self.most.load(Ordering::Acquire)
    }
}

/// An item, and what will come of it: so both count as dropped once, though the item may never get
/// as far as to become something.
pub(crate) type TrackedItem = (Tracked, Tracked);

/// The tracked_items, and a book in which all of them must be at the end.
pub(crate) fn tracked_items(count: usize) -> (Ledger, Vec<TrackedItem>) {
    let ledger = Ledger::new(2 * count);
    let tracked_items = (0..count).map(|n| (ledger.item(n), ledger.item(count + n))).collect();
    (ledger, tracked_items)
}

/// What is done with a item: the item goes, the result stays.
pub(crate) fn into_result((item, result): TrackedItem) -> Tracked {
    drop(item);
    result
}

/// How something goes wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) enum How {
    Error,
    Panic,
}

/// Something that goes wrong at a certain item.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) stage: Stage,
    pub(crate) how: How,
    pub(crate) item: usize,
}

impl Fault {
    /// Goes wrong, if it is here and now.
    pub(crate) fn check(self, stage: Stage, item: usize) -> Result<(), String> {
        if (stage, item) != (self.stage, self.item) {
            return Ok(());
        }
        match self.how {
            How::Error => Err(format!("planned: {item}")),
            How::Panic => panic!("planned: {item}"),
        }
    }

    /// Panics unless this is what the error says.
    pub(crate) fn assert_told(self, error: &PipelineError, batch: usize) {
        let batch = (self.item / batch) as u64;
        assert_eq!((error.stage(), error.batch()), (Some(self.stage), Some(batch)), "{self:?}");
        let said = match (self.how, error) {
            (How::Error, PipelineError::Failed { source, .. }) => source.to_string(),
            (How::Panic, PipelineError::Panicked { panic, .. }) => panic.message().to_owned(),
            _ => panic!("{self:?}: {error:?}"),
        };
        assert_eq!(said, format!("planned: {}", self.item));
    }
}

/// Panics unless the pool does its work, pipelines and all.
pub(crate) fn assert_works(pool: &Pool) {
    assert_eq!(pool.spawn(|| 1).join().expect("a result"), 1);
    let mut results = Vec::new();
    let doubled = Pipeline::new(0..20).batch(3).map(|n| 2 * n).ordered();
    doubled.run(pool, |n| results.push(n)).expect("an end");
    assert_eq!(results, (0..20).map(|n| 2 * n).collect::<Vec<_>>());
}

/// Panics unless the run was cancelled.
pub(crate) fn assert_cancelled<T: Debug>(outcome: Result<T, PipelineError>) {
    assert!(matches!(outcome, Err(PipelineError::Cancelled)), "{outcome:?}");
}

/// CancelOnDrop a token however a test ends, so that no run goes on for ever.
pub(crate) struct CancelOnDrop<'t>(pub(crate) &'t CancelToken);

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
