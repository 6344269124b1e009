//! A pipeline of some shape: how it is drawn by lot, run, and compared with a loop.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use heist::pipeline::{Distribution, Pipeline, PipelineError, Report, Source, Steps};
use heist::{CancelToken, Pool};

use super::check::check;
use super::die::Die;

/// How long what was running may take to end. It takes some microseconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// The beginning of what a planned panic or error says.
pub(crate) const PLANNED: &str = "planned";

/// A number on its way. Each holds a clone of its run's `Arc`, which so counts those that are somewhere.
struct Item {
    number: u64,
    alive: Arc<()>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Origin {
    Iterator,
    TriedIterator,
    Senders(u64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Target {
    Sink,
    Iterator,
}

/// What goes wrong, if anything.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    Nothing,
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
    /// Only if it is asked for: the pool is of no use afterwards.
    PoolStops,
    PoolStopsNow,
}

const FAULTS: [Fault; 11] = [
    Fault::Nothing,
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
pub(crate) struct Shape {
    pub(crate) items: u64,
    pub(crate) origin: Origin,
    pub(crate) target: Target,
    pub(crate) distribution: Distribution,
    pub(crate) steals: bool,
    pub(crate) ordered: bool,
    pub(crate) batch: usize,
    pub(crate) in_flight: usize,
    pub(crate) weight: Option<usize>,
    pub(crate) fault: Fault,
    /// At which item it goes wrong, or at which result.
    pub(crate) at: u64,
}

/// What came out, and how it ended.
pub(crate) struct Taken {
    pub(crate) results: Vec<u64>,
    /// Nothing, if the results were dropped.
    pub(crate) end: Option<Result<Report, PipelineError>>,
    /// Did a sender hear that nobody takes its items any more?
    pub(crate) refused: bool,
}

/// What is left of a run that has ended.
pub(crate) struct Rest {
    alive: Arc<()>,
    of: Shape,
}

impl Rest {
    fn is_gone(&self) -> Result<(), String> {
        match Arc::strong_count(&self.alive) - 1 {
            0 => Ok(()),
            left => Err(format!("{left} items are left, of {:?}", self.of)),
        }
    }

    /// Waits until nothing is left. Not on a thread of the pool, which may be needed for it.
    pub(crate) fn settle(self) -> Result<(), String> {
        let patience = Instant::now() + PATIENCE;
        while self.is_gone().is_err() && Instant::now() < patience {
            thread::yield_now();
        }
        self.is_gone()
    }
}

/// What the two stages make of a number.
pub(crate) fn processed(number: u64) -> u64 {
    3 * number + 1
}

pub(crate) fn weight(number: u64) -> usize {
    1 + number as usize % 5
}

/// The heaviest of all items.
pub(crate) const HEAVIEST: usize = 5;

fn planned(is_so: bool) -> Result<(), String> {
    if is_so { Err(format!("{PLANNED} error")) } else { Ok(()) }
}

fn panic_if(is_so: bool) {
    if is_so {
        // As `panic!` does it, but that nothing is printed.
        resume_unwind(Box::new(format!("{PLANNED} panic")));
    }
}

impl Shape {
    pub(crate) fn random(die: &mut Die) -> Self {
        // Half of them go well.
        let fault = if die.roll(2) == 0 { Fault::Nothing } else { die.pick(&FAULTS) };
        let senders = Origin::Senders(1 + die.roll(3));
        let origins = [Origin::Iterator, Origin::TriedIterator, senders, senders];
        let origin = match fault {
            Fault::SourceFails => Origin::TriedIterator,
            Fault::SourcePanics => die.pick(&origins[..2]),
            _ => die.pick(&origins),
        };
        let target = match fault {
            Fault::SinkFails | Fault::SinkPanics | Fault::SinkCancels => Target::Sink,
            Fault::ResultsAreDropped => Target::Iterator,
            _ => die.pick(&[Target::Sink, Target::Iterator]),
        };
        let items = die.pick(&[0, 1, 10, 100, 1000]) + die.roll(20);
        Self {
            items,
            origin,
            target,
            distribution: die.pick(&Distribution::ALL),
            steals: die.roll(4) > 0,
            ordered: die.roll(2) == 0,
            batch: die.pick(&[1, 2, 7, 64]),
            in_flight: die.pick(&[1, 2, 5, 256]),
            weight: die.pick(&[None, None, Some(1), Some(10), Some(1000)]),
            fault,
            at: die.roll(items.max(1)),
        }
    }

    /// The same, with a pool that is stopped meanwhile.
    pub(crate) fn stopped(self, die: &mut Die) -> Self {
        Self { fault: die.pick(&[Fault::PoolStops, Fault::PoolStopsNow]), ..self }
    }

    /// Runs it. If something is wrong: what.
    pub(crate) fn run(&self, pool: &Pool) -> Result<Rest, String> {
        let rest = Rest { alive: Arc::new(()), of: *self };
        let taken = self.take(pool, &rest.alive);
        check(self, &taken).map_err(|wrong| format!("{wrong}, in {self:?}"))?;
        // Batches that are running when an iterator has ended, or is dropped, end on their own; a call waits for them.
        if self.target == Target::Sink {
            rest.is_gone()?;
        }
        Ok(rest)
    }

    fn take(&self, pool: &Pool, alive: &Arc<()>) -> Taken {
        let shape = *self;
        let alive = Arc::clone(alive);
        let items = (0..self.items).map(move |number| {
            panic_if(shape.goes_wrong(Fault::SourcePanics, number));
            Item { number, alive: Arc::clone(&alive) }
        });
        match self.origin {
            Origin::Iterator => self.weighed(pool, Pipeline::new(items)),
            Origin::TriedIterator => {
                let tried = items.map(move |item| {
                    planned(shape.goes_wrong(Fault::SourceFails, item.number)).map(|()| item)
                });
                self.weighed(pool, Pipeline::try_new(tried))
            }
            Origin::Senders(count) => self.fed(pool, items, count),
        }
    }

    fn goes_wrong(&self, fault: Fault, number: u64) -> bool {
        self.fault == fault && number == self.at
    }

    /// By threads, which send the items in turn.
    fn fed(
        &self,
        pool: &Pool,
        items: impl Iterator<Item = Item> + Clone + Send,
        senders: u64,
    ) -> Taken {
        let (sender, pipeline) = Pipeline::fed(NonZero::new(self.in_flight.min(16)).unwrap());
        // With this one around, only what comes from outside ends the run.
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
            let taken = self.weighed(pool, pipeline);
            drop(held);
            // All of them are joined: a race detector forgets a thread that is not.
            let sent = senders.into_iter().map(|thread| thread.join().expect("no panic"));
            let refused = sent.filter(|sent| !sent).count() > 0;
            Taken { refused, ..taken }
        })
    }

    fn weighed<S>(&self, pool: &Pool, pipeline: Pipeline<S>) -> Taken
    where
        S: Source<Item = Item> + Send + 'static,
    {
        match self.weight {
            Some(limit) => self.built(pool, pipeline.weigh(|item| weight(item.number), limit)),
            None => self.built(pool, pipeline),
        }
    }

    fn built<S>(&self, pool: &Pool, pipeline: Pipeline<S>) -> Taken
    where
        S: Source<Item = Item> + Send + 'static,
    {
        let (shape, token) = (*self, CancelToken::new());
        let mut pipeline = pipeline
            .batch(self.batch)
            .in_flight(self.in_flight)
            .distribute(self.distribution)
            .steal(self.steals)
            .cancel_on(&token);
        if self.ordered {
            pipeline = pipeline.ordered();
        }
        let cancel = token.clone();
        let pipeline = pipeline
            .map(move |item| {
                panic_if(shape.goes_wrong(Fault::FirstMapPanics, item.number));
                if shape.goes_wrong(Fault::StageCancels, item.number) {
                    cancel.cancel();
                }
                item
            })
            .try_map(move |item| {
                planned(shape.goes_wrong(Fault::SecondMapFails, item.number))?;
                Ok::<_, String>(Item { number: processed(item.number), alive: item.alive })
            });
        if !self.is_ended_from_outside() {
            return self.collected(pool, pipeline, &token);
        }
        thread::scope(|scope| {
            let outside = scope.spawn(|| self.end_from_outside(pool, &token));
            let taken = self.collected(pool, pipeline, &token);
            outside.join().expect("no panic");
            taken
        })
    }

    pub(crate) fn is_ended_from_outside(&self) -> bool {
        matches!(self.fault, Fault::OtherThreadCancels | Fault::PoolStops | Fault::PoolStopsNow)
    }

    /// After some time.
    fn end_from_outside(&self, pool: &Pool, token: &CancelToken) {
        (0..self.at).for_each(|_| thread::yield_now());
        match self.fault {
            Fault::PoolStops => pool.stop(),
            Fault::PoolStopsNow => pool.stop_now(),
            _ => token.cancel(),
        }
    }

    fn collected<S, G>(&self, pool: &Pool, pipeline: Pipeline<S, G>, token: &CancelToken) -> Taken
    where
        S: Source<Item = Item> + Send + 'static,
        G: Steps<Item, Out = Item> + Send + 'static,
    {
        let mut results = Vec::new();
        let end = match self.target {
            Target::Sink => Some(pipeline.try_run(pool, |item| {
                let number = results.len() as u64;
                panic_if(self.goes_wrong(Fault::SinkPanics, number));
                planned(self.goes_wrong(Fault::SinkFails, number))?;
                if self.goes_wrong(Fault::SinkCancels, number) {
                    token.cancel();
                }
                results.push(item.number);
                Ok::<_, String>(())
            })),
            Target::Iterator => self.pulled(pool, pipeline, &mut results).transpose(),
        };
        Taken { results, end, refused: false }
    }

    fn pulled<S, G>(
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
            if self.goes_wrong(Fault::ResultsAreDropped, numbers.len() as u64) {
                return Ok(None);
            }
            numbers.push(result?.number);
        }
        Ok(Some(results.report()))
    }
}
