//! One pipeline with random parameters and at most one planned fault: how it is drawn, built and run.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use heist::pipeline::{Distribution, Pipeline, PipelineError, Report, Source, Steps};
use heist::{CancelToken, Pool};

use super::check::check;
use crate::planned::PLANNED;
use crate::rng::Rng;
use crate::{Error, Violation};

/// How long batches that still run when a pipeline ends may take. They take some microseconds.
const DROP_TIMEOUT: Duration = Duration::from_secs(20);

/// An item of a pipeline. Each holds a clone of the `Arc` of its run, whose count therefore tells how many
/// items exist.
struct Item {
    number: u64,
    alive: Arc<()>,
}

/// Where the items come from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Origin {
    Iterator,
    /// An iterator of results.
    TryIterator,
    /// This many threads, which send the items.
    Senders(u64),
}

/// Where the results go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Target {
    Sink,
    Iterator,
}

/// What goes wrong, if anything.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fault {
    None,
    SourceFails,
    SourcePanics,
    FirstMapPanics,
    SecondMapFails,
    SinkFails,
    SinkPanics,
    StageCancels,
    SinkCancels,
    OtherThreadCancels,
    ResultsAreDropped,
    /// Only on a pool that no other pipeline needs.
    PoolStops,
    /// Only on a pool that no other pipeline needs.
    PoolStopsNow,
}

/// The faults that leave the pool running.
const FAULTS: [Fault; 11] = [
    Fault::None,
    Fault::SourceFails,
    Fault::SourcePanics,
    Fault::FirstMapPanics,
    Fault::SecondMapFails,
    Fault::SinkFails,
    Fault::SinkPanics,
    Fault::StageCancels,
    Fault::SinkCancels,
    Fault::OtherThreadCancels,
    Fault::ResultsAreDropped,
];

/// A pipeline, and what goes wrong with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) items: u64,
    pub(super) origin: Origin,
    pub(super) target: Target,
    pub(super) distribution: Distribution,
    pub(super) steals: bool,
    pub(super) ordered: bool,
    pub(super) batch: usize,
    pub(super) in_flight: usize,
    /// The limit of the weight in flight, if items are weighed.
    pub(super) max_weight: Option<usize>,
    pub(super) fault: Fault,
    /// The number of the item, or of the result, at which the fault occurs.
    pub(super) fault_at: u64,
}

/// What came out of a pipeline, and how it ended.
pub(super) struct Outcome {
    pub(super) results: Vec<u64>,
    /// `None` if the results were dropped before the end.
    pub(super) end: Option<Result<Report, PipelineError>>,
    /// Whether a send failed because the pipeline takes no more items.
    pub(super) refused: bool,
}

/// The items that a pipeline may have left behind.
pub(super) struct Leftovers {
    alive: Arc<()>,
    case: Case,
}

impl Leftovers {
    fn check_dropped(&self) -> Result<(), Error> {
        match Arc::strong_count(&self.alive) - 1 {
            0 => Ok(()),
            left => {
                Err(Violation::Result(format!("{left} items were never dropped"))
                    .in_case(&self.case))
            }
        }
    }

    /// Waits until no item is left. Must not be called on a thread of the pool, which may have to drop the
    /// items.
    pub(super) fn wait_until_dropped(self) -> Result<(), Error> {
        let deadline = Instant::now() + DROP_TIMEOUT;
        while self.check_dropped().is_err() && Instant::now() < deadline {
            thread::yield_now();
        }
        self.check_dropped()
    }
}

/// Returns what the two stages make of a number.
pub(super) fn processed(number: u64) -> u64 {
    3 * number + 1
}

fn weight(number: u64) -> usize {
    1 + number as usize % HEAVIEST
}

/// The weight of the heaviest item.
pub(super) const HEAVIEST: usize = 5;

/// Returns a planned error if `fails` is set.
fn fail_if(fails: bool) -> Result<(), String> {
    if fails { Err(format!("{PLANNED} error")) } else { Ok(()) }
}

/// Panics as `panic!` does if `panics` is set, but without calling the panic hook: nothing is printed.
fn panic_if(panics: bool) {
    if panics {
        resume_unwind(Box::new(format!("{PLANNED} panic")));
    }
}

impl Case {
    pub(super) fn random(rng: &mut Rng) -> Self {
        // At least half of them have no fault.
        let fault = if rng.one_in(2) { Fault::None } else { rng.pick(&FAULTS) };
        let senders = Origin::Senders(1 + rng.below(3));
        let origins = [Origin::Iterator, Origin::TryIterator, senders, senders];
        let origin = match fault {
            Fault::SourceFails => Origin::TryIterator,
            Fault::SourcePanics => rng.pick(&origins[..2]),
            _ => rng.pick(&origins),
        };
        let target = match fault {
            Fault::SinkFails | Fault::SinkPanics | Fault::SinkCancels => Target::Sink,
            Fault::ResultsAreDropped => Target::Iterator,
            _ => rng.pick(&[Target::Sink, Target::Iterator]),
        };
        let items = rng.pick(&[0, 1, 10, 100, 1000]) + rng.below(20);
        Self {
            items,
            origin,
            target,
            distribution: rng.pick(&Distribution::ALL),
            steals: rng.below(4) > 0,
            ordered: rng.one_in(2),
            batch: rng.pick(&[1, 2, 7, 64]),
            in_flight: rng.pick(&[1, 2, 5, 256]),
            max_weight: rng.pick(&[None, None, Some(1), Some(10), Some(1000)]),
            fault,
            fault_at: rng.below(items.max(1)),
        }
    }

    /// Returns the same case with another fault: its pool is stopped while it runs.
    pub(super) fn on_stopping_pool(self, rng: &mut Rng) -> Self {
        Self { fault: rng.pick(&[Fault::PoolStops, Fault::PoolStopsNow]), ..self }
    }

    /// Runs the pipeline and checks its outcome.
    pub(super) fn run(&self, pool: &Pool) -> Result<Leftovers, Error> {
        let leftovers = Leftovers { alive: Arc::new(()), case: *self };
        let outcome = self.run_from_origin(pool, &leftovers.alive);
        check(self, &outcome).map_err(|violation| violation.in_case(self))?;
        // A call with a sink waits for the batches that are running when it ends. With an iterator, they
        // end on their own after the iterator has ended or was dropped.
        if self.target == Target::Sink {
            leftovers.check_dropped()?;
        }
        Ok(leftovers)
    }

    fn run_from_origin(&self, pool: &Pool, alive: &Arc<()>) -> Outcome {
        let case = *self;
        let alive = Arc::clone(alive);
        let items = (0..self.items).map(move |number| {
            panic_if(case.faults_at(Fault::SourcePanics, number));
            Item { number, alive: Arc::clone(&alive) }
        });
        match self.origin {
            Origin::Iterator => self.run_weighed(pool, Pipeline::new(items)),
            Origin::TryIterator => {
                let results = items.map(move |item| {
                    fail_if(case.faults_at(Fault::SourceFails, item.number)).map(|()| item)
                });
                self.run_weighed(pool, Pipeline::try_new(results))
            }
            Origin::Senders(count) => self.run_fed(pool, items, count),
        }
    }

    fn faults_at(&self, fault: Fault, number: u64) -> bool {
        self.fault == fault && number == self.fault_at
    }

    /// Runs the pipeline on items that threads send, each every `senders`-th of them.
    fn run_fed(
        &self,
        pool: &Pool,
        items: impl Iterator<Item = Item> + Clone + Send,
        senders: u64,
    ) -> Outcome {
        let (sender, pipeline) = Pipeline::fed(NonZero::new(self.in_flight.min(16)).unwrap());
        // As long as this sender exists the source has no end: only the planned fault can end the run.
        let held = self.is_ended_from_outside().then(|| sender.clone());
        thread::scope(|scope| {
            let send = |first: u64| {
                let (sender, items) = (sender.clone(), items.clone());
                scope.spawn(move || {
                    let mut items = items.skip(first as usize).step_by(senders as usize);
                    items.all(|item| sender.send(item).is_ok())
                })
            };
            let senders: Vec<_> = (0..senders).map(send).collect();
            drop(sender);
            let outcome = self.run_weighed(pool, pipeline);
            drop(held);
            // `filter` and `count` join all of them: ThreadSanitizer forgets a thread that is not joined.
            let sent = senders.into_iter().map(|thread| thread.join().expect("no sender panics"));
            let refused = sent.filter(|sent| !sent).count() > 0;
            Outcome { refused, ..outcome }
        })
    }

    fn run_weighed<S>(&self, pool: &Pool, pipeline: Pipeline<S>) -> Outcome
    where
        S: Source<Item = Item> + Send + 'static,
    {
        match self.max_weight {
            Some(limit) => self.run_stages(pool, pipeline.weigh(|item| weight(item.number), limit)),
            None => self.run_stages(pool, pipeline),
        }
    }

    fn run_stages<S>(&self, pool: &Pool, pipeline: Pipeline<S>) -> Outcome
    where
        S: Source<Item = Item> + Send + 'static,
    {
        let (case, token) = (*self, CancelToken::new());
        let mut pipeline = pipeline
            .batch(self.batch)
            .in_flight(self.in_flight)
            .distribute(self.distribution)
            .steal(self.steals)
            .cancel_on(&token);
        if self.ordered {
            pipeline = pipeline.ordered();
        }
        let stage_token = token.clone();
        let pipeline = pipeline
            .map(move |item| {
                panic_if(case.faults_at(Fault::FirstMapPanics, item.number));
                if case.faults_at(Fault::StageCancels, item.number) {
                    stage_token.cancel();
                }
                item
            })
            .try_map(move |item| {
                fail_if(case.faults_at(Fault::SecondMapFails, item.number))?;
                Ok::<_, String>(Item { number: processed(item.number), alive: item.alive })
            });
        if !self.is_ended_from_outside() {
            return self.run_to_target(pool, pipeline, &token);
        }
        thread::scope(|scope| {
            let other = scope.spawn(|| self.end_from_outside(pool, &token));
            let outcome = self.run_to_target(pool, pipeline, &token);
            other.join().expect("the other thread does not panic");
            outcome
        })
    }

    /// Returns whether another thread ends the run.
    pub(super) fn is_ended_from_outside(&self) -> bool {
        matches!(self.fault, Fault::OtherThreadCancels | Fault::PoolStops | Fault::PoolStopsNow)
    }

    /// Ends the run after some time.
    fn end_from_outside(&self, pool: &Pool, token: &CancelToken) {
        (0..self.fault_at).for_each(|_| thread::yield_now());
        match self.fault {
            Fault::PoolStops => pool.stop(),
            Fault::PoolStopsNow => pool.stop_now(),
            _ => token.cancel(),
        }
    }

    fn run_to_target<S, G>(
        &self,
        pool: &Pool,
        pipeline: Pipeline<S, G>,
        token: &CancelToken,
    ) -> Outcome
    where
        S: Source<Item = Item> + Send + 'static,
        G: Steps<Item, Out = Item> + Send + 'static,
    {
        let mut results = Vec::new();
        let end = match self.target {
            Target::Sink => Some(pipeline.try_run(pool, |item| {
                let number = results.len() as u64;
                panic_if(self.faults_at(Fault::SinkPanics, number));
                fail_if(self.faults_at(Fault::SinkFails, number))?;
                if self.faults_at(Fault::SinkCancels, number) {
                    token.cancel();
                }
                results.push(item.number);
                Ok::<_, String>(())
            })),
            Target::Iterator => self.iterate(pool, pipeline, &mut results).transpose(),
        };
        Outcome { results, end, refused: false }
    }

    /// Takes the results from an iterator, and returns the report unless the iterator is dropped before its
    /// end.
    fn iterate<S, G>(
        &self,
        pool: &Pool,
        pipeline: Pipeline<S, G>,
        numbers: &mut Vec<u64>,
    ) -> Result<Option<Report>, PipelineError>
    where
        S: Source<Item = Item> + Send + 'static,
        G: Steps<Item, Out = Item> + Send + 'static,
    {
        let mut results = pipeline.results(pool)?;
        for result in &mut results {
            if self.faults_at(Fault::ResultsAreDropped, numbers.len() as u64) {
                return Ok(None);
            }
            numbers.push(result?.number);
        }
        Ok(Some(results.report()))
    }
}
