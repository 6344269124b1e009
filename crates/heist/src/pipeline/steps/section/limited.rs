//! A section whose stages run on few workers at the same time.

use std::collections::BTreeMap;
use std::fmt;

use super::{Lot, Parked, Section, drop_each, emit, process};
use crate::pipeline::Pipeline;
use crate::pipeline::config::Misuse;
use crate::pipeline::deliver::BatchEntry;
use crate::pipeline::sealed::Sealed;
use crate::pipeline::source::Source;
use crate::pipeline::steps::{Context, Counts, Passed, Steps, Token};
use crate::sync::{Mutex, Padded, lock};

/// The stages `G`, and then the stages `H`, which run on few workers at the same time. `X` is where batches wait. See
/// [`Pipeline::limit_workers`].
///
/// ```
/// use heist::pipeline::Pipeline;
/// use heist::pipeline::steps::Limited;
///
/// let stages: Pipeline<_, Limited<_, _, _>> = Pipeline::new(1..=3).limit_workers(1, |stages| stages.map(|n| n * n));
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let mut all = Vec::new();
/// stages.ordered().run(&pool, |result| all.push(result))?;
/// assert_eq!(all, [1, 4, 9]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Limited<G, H, X> {
    before: G,
    stages: H,
    gate: X,
}

impl<G: fmt::Debug, H: fmt::Debug, X> fmt::Debug for Limited<G, H, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { before, stages, .. } = self;
        f.debug_struct("Limited")
            .field("before", before)
            .field("stages", stages)
            .finish_non_exhaustive()
    }
}

/// Where the batches of a [`Limited`] section wait.
#[doc(hidden)]
pub struct Gate<I, W> {
    /// How many batches may be processed at the same time.
    limit: usize,
    state: Padded<Mutex<GateState<I, W>>>,
}

impl<I, W> fmt::Debug for Gate<I, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("limit", &self.limit).finish_non_exhaustive()
    }
}

struct GateState<I, W> {
    /// How many batches are admitted and have not left.
    inside: usize,
    /// The number of the next batch, if one at a time is admitted, in order.
    next: u64,
    /// The batches that may not go on yet, by their numbers.
    waiting: BTreeMap<u64, Waiting<I>>,
    /// The batches that may go on, and that no worker has taken yet.
    admitted: BTreeMap<u64, Waiting<I>>,
    /// What the stages keep from batch to batch, for each batch that may be inside and is not.
    kept: Vec<W>,
}

/// A batch at the gate.
struct Waiting<I> {
    lot: Lot<I>,
    entry: BatchEntry,
    counts: Counts,
}

impl<I, W: Default> Gate<I, W> {
    fn new(limit: usize) -> Self {
        let state = GateState {
            inside: 0,
            next: 0,
            waiting: BTreeMap::new(),
            admitted: BTreeMap::new(),
            kept: Vec::new(),
        };
        Self { limit, state: Padded(Mutex::new(state)) }
    }

    /// Admits a batch, or lets it wait (G1). Returns it with what the stages keep if it may go on.
    fn enter(&self, batch: Waiting<I>, context: &Context<'_>) -> Option<(Waiting<I>, W)> {
        let mut state = lock(&self.state.0);
        if state.may_enter(batch.entry.number, self.limit, self.in_order(context)) {
            state.inside += 1;
            Some((batch, state.kept.pop().unwrap_or_default()))
        } else {
            state.waiting.insert(batch.entry.number, batch);
            None
        }
    }

    /// Takes a batch that was admitted when another one left (G3).
    fn take(&self, number: u64) -> (Waiting<I>, W) {
        let mut state = lock(&self.state.0);
        let batch =
            state.admitted.remove(&number).expect("the token is for a batch that was admitted");
        (batch, state.kept.pop().unwrap_or_default())
    }

    /// Lets a batch leave, and admits the next one if there is one (G2). Returns that one.
    fn leave(&self, number: u64, kept: Option<W>, context: &Context<'_>) -> Option<BatchEntry> {
        let in_order = self.in_order(context);
        let mut state = lock(&self.state.0);
        state.kept.extend(kept);
        state.inside -= 1;
        state.next = number + 1;
        let (&first, _) = state.waiting.first_key_value()?;
        if !state.may_enter(first, self.limit, in_order) {
            return None;
        }
        state.inside += 1;
        let batch = state.waiting.remove(&first)?;
        let entry = batch.entry;
        state.admitted.insert(first, batch);
        Some(entry)
    }

    /// Returns whether batches are admitted one by one, in the order of the source.
    fn in_order(&self, context: &Context<'_>) -> bool {
        self.limit == 1 && context.control().is_ordered()
    }
}

impl<I, W> GateState<I, W> {
    fn may_enter(&self, number: u64, limit: usize, in_order: bool) -> bool {
        self.inside < limit && (!in_order || number == self.next)
    }
}

/// A batch that is inside. It leaves when this is dropped.
struct Inside<'g, 'r, I, W: Default> {
    gate: &'g Gate<I, W>,
    context: &'g Context<'r>,
    section: usize,
    /// What the stages keep, unless a worker has it, or has panicked with it.
    kept: Option<W>,
}

impl<I, W: Default> Drop for Inside<'_, '_, I, W> {
    fn drop(&mut self) {
        let number = self.context.entry().number;
        if let Some(entry) = self.gate.leave(number, self.kept.take(), self.context) {
            self.context.control().make_ready(&[Token { section: self.section, group: 0, entry }]);
        }
    }
}

impl<G, H, X> Sealed for Limited<G, H, X> {}

impl<T, G, H> Steps<T> for Limited<G, H, Gate<G::Out, H::State>>
where
    G: Steps<T>,
    G::Out: Send,
    H: Steps<G::Out>,
{
    type Out = H::Out;
    type State = G::State;

    const STAGES: usize = G::STAGES + H::STAGES;
    const ONE_TO_ONE: bool = G::ONE_TO_ONE && H::ONE_TO_ONE;
    const TRACKS: bool = true;
    const SECTIONS: usize = G::SECTIONS + 1;

    fn apply<const TRACK: bool>(
        &self,
        state: &mut Self::State,
        batch: &mut Vec<T>,
        context: &Context<'_>,
        out: &mut impl FnMut(H::Out) -> Passed,
    ) -> Passed {
        let mut lot = Lot::with_capacity(batch.len());
        self.before.apply::<true>(state, batch, context, &mut |item| {
            lot.push_next(item, context);
            context.check()
        })?;
        self.arrive((Self::SECTIONS, G::STAGES), lot, context, out)
    }

    fn resume(
        &self,
        state: &mut Self::State,
        token: Token,
        context: &Context<'_>,
        out: &mut impl FnMut(H::Out) -> Passed,
    ) -> Passed {
        if token.section == Self::SECTIONS {
            let admitted = self.gate.take(token.entry.number);
            return self.go_on((Self::SECTIONS, G::STAGES), admitted, context, out);
        }
        let mut lot = Lot::with_capacity(token.entry.items);
        self.before.resume(state, token, context, &mut |item| {
            lot.push_next(item, context);
            context.check()
        })?;
        self.arrive((Self::SECTIONS, G::STAGES), lot, context, out)
    }

    fn drop_each(self) {
        drop_each::<T, G, H>(self.before, self.stages, self.gate);
    }
}

impl<I, G, H> Limited<G, H, Gate<I, H::State>>
where
    I: Send,
    H: Steps<I>,
{
    /// Goes on with a batch that has come to the gate of this section, if it is admitted. There are `before` other stages.
    fn arrive(
        &self,
        (section, before): (usize, usize),
        lot: Lot<I>,
        context: &Context<'_>,
        out: &mut impl FnMut(H::Out) -> Passed,
    ) -> Passed {
        let batch = Waiting { lot, entry: context.entry(), counts: context.take_counts() };
        match self.gate.enter(batch, context) {
            Some(admitted) => self.go_on((section, before), admitted, context, out),
            None => Err(Parked.into()),
        }
    }

    /// Processes a batch that was admitted, lets it leave, and passes its results on.
    fn go_on(
        &self,
        (section, before): (usize, usize),
        (batch, mut kept): (Waiting<I>, H::State),
        context: &Context<'_>,
        out: &mut impl FnMut(H::Out) -> Passed,
    ) -> Passed {
        let Waiting { mut lot, counts, .. } = batch;
        context.add_counts(counts);
        let mut inside = Inside { gate: &self.gate, context, section, kept: None };
        let made = process(&self.stages, &mut kept, &mut lot, before, context);
        inside.kept = Some(kept);
        drop(inside);
        emit(made?, context, out)
    }
}

impl<S: Source, G> Pipeline<S, G> {
    /// Adds stages that run on at most so many workers at the same time, whatever the size of the pool: because they write to one
    /// file, or because a service accepts so many connections.
    ///
    /// With 1, they process one batch after the other: in the order of the source if the results are [ordered](Self::ordered),
    /// and otherwise as the batches come. A [`map_init`](Self::map_init) among the stages has as many values as workers are
    /// allowed, instead of one for each worker. So with 1, there is one value for the whole run, or a new one after a panic.
    ///
    /// A batch that may not be processed yet waits, without a worker: its worker processes other batches up to here. The batches
    /// that wait are [in flight](Self::in_flight), so that there is a bound for them. When a batch has left the stages, the one
    /// with the least number comes next.
    ///
    /// The stages must not wait for the run: if one of them [sends](crate::pipeline::Sender::send) to the feed of its own pipeline
    /// and that is full, the batches that would make room may be waiting behind it.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// // Pages are rendered on all workers, and numbered one after the other.
    /// let chapters = ["one", "two", "three"];
    /// let pool = heist::Pool::builder().workers(4).build()?;
    /// let number = |next: &mut u32, text: String| {
    ///     *next += 1;
    ///     format!("{next}: {text}")
    /// };
    /// let mut pages = Vec::new();
    /// Pipeline::new(chapters)
    ///     .batch(1)
    ///     .map(|chapter| chapter.to_uppercase())
    ///     .limit_workers(1, |stages| stages.map_init(|| 0, number))
    ///     .ordered()
    ///     .run(&pool, |page| pages.push(page))?;
    /// assert_eq!(pages, ["1: ONE", "2: TWO", "3: THREE"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// use std::time::Duration;
    /// use heist::pipeline::{Pipeline, Retry, Skip};
    ///
    /// // At most two connections to a service, however many workers there are.
    /// let connections = AtomicUsize::new(0);
    /// let connect = || connections.fetch_add(1, Ordering::Relaxed);
    /// let ask = |_connection: &mut usize, name: &str| match name {
    ///     "nobody" => Err("not found"),
    ///     _ => Ok(name.len()),
    /// };
    /// let retry = Retry::times(1).backoff(Duration::from_micros(10));
    /// let pool = heist::Pool::builder().workers(4).build()?;
    /// let report = Pipeline::new(["ann", "nobody", "bert", "carla"])
    ///     .batch(1)
    ///     .limit_workers(2, |stages| stages.try_map_init(connect, ask).on_error(retry).on_error(Skip))
    ///     .run(&pool, |_| ())?;
    /// assert_eq!((report.results, report.skipped), (3, 1));
    /// assert!(connections.into_inner() <= 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// The settings of a pipeline belong to the pipeline around the stages. (A run returns
    /// [`PipelineError::Misplaced`](crate::pipeline::PipelineError::Misplaced).) Such stages cannot be within other
    /// ones, but behind them:
    ///
    /// ```compile_fail,E0080
    /// # use heist::pipeline::Pipeline;
    /// let _ = Pipeline::new(0..9).limit_workers(2, |outer| outer.limit_workers(1, |inner| inner.map(|n| n + 1)));
    /// ```
    #[allow(
        clippy::type_complexity,
        reason = "as with iterators, the type of a chain says what it is made of"
    )]
    pub fn limit_workers<H>(
        self,
        workers: usize,
        stages: impl FnOnce(Pipeline<Section<G::Out>>) -> Pipeline<Section<G::Out>, H>,
    ) -> Pipeline<S, Limited<G, H, Gate<G::Out, H::State>>>
    where
        G: Steps<S::Item>,
        G::Out: Send,
        H: Steps<G::Out>,
    {
        let invalid = (workers == 0).then_some(Misuse::ZeroWorkers);
        self.with_section("limit_workers", stages, invalid, |before, stages| Limited {
            before,
            stages,
            gate: Gate::new(workers),
        })
    }
}
