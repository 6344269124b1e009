//! The stages of a pipeline: what a worker does with the items of a batch.

use std::cell::Cell;
use std::error::Error;
use std::mem;
use std::vec::Drain;

use crate::panic::{contain, contain_each};
use crate::pipeline::Pipeline;
use crate::pipeline::sealed::Sealed;
use crate::pipeline::source::Source;

/// An error that the user's code returned.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// The number of the stage that has failed or panicked, or zero.
pub(crate) type FailedStage = Cell<usize>;

/// The stages that process items of type `T` on the pool, each applied to the results of the one before.
///
/// Stages are made by [`Pipeline::map`] and similar methods. The trait cannot be implemented outside of this
/// crate.
pub trait Steps<T>: Send + Sync + Sealed {
    /// The type of the results.
    type Out;

    /// The number of stages.
    #[doc(hidden)]
    const STAGES: usize;

    /// Takes the items out of the batch, and passes the result of each to `out`. Notes in `failed` which
    /// stage has failed or panicked.
    #[doc(hidden)]
    fn apply(
        &self,
        batch: &mut Vec<T>,
        failed: &FailedStage,
        out: &mut impl FnMut(Self::Out) -> Result<(), BoxError>,
    ) -> Result<(), BoxError>;

    /// Drops the functions one by one, because the drop of each may panic. The panics end here.
    #[doc(hidden)]
    fn drop_each(self);
}

/// Notes the number of its stage as the failed one when it is dropped, which happens only if the stage
/// panics.
struct StageGuard<'m>(&'m FailedStage, usize);

impl Drop for StageGuard<'_> {
    fn drop(&mut self) {
        self.0.set(self.1);
    }
}

impl StageGuard<'_> {
    /// Calls the stage's function. This costs nothing if the function does not panic.
    #[inline(always)]
    fn call<R>(self, f: impl FnOnce() -> R) -> R {
        let result = f();
        mem::forget(self);
        result
    }
}

/// The items of a batch that have not been processed yet. If a stage fails or panics, they are dropped one by
/// one: the thread may be unwinding, and then a panic of one of them must not get any further.
struct Rest<'b, T>(Drain<'b, T>);

impl<T> Drop for Rest<'_, T> {
    #[inline]
    fn drop(&mut self) {
        contain_each(self.0.by_ref());
    }
}

/// The identity: a pipeline without a stage, whose results are its items.
#[derive(Debug)]
pub struct Same;

impl Sealed for Same {}

impl<T> Steps<T> for Same {
    type Out = T;

    const STAGES: usize = 0;

    #[inline]
    fn apply(
        &self,
        batch: &mut Vec<T>,
        _: &FailedStage,
        out: &mut impl FnMut(T) -> Result<(), BoxError>,
    ) -> Result<(), BoxError> {
        Rest(batch.drain(..)).0.try_for_each(out)
    }

    fn drop_each(self) {}
}

/// A stage that applies a function to each item. See [`Pipeline::map`].
#[derive(Debug)]
pub struct Map<G, F> {
    before: G,
    f: F,
}

impl<G, F> Sealed for Map<G, F> {}

impl<T, G, F, U> Steps<T> for Map<G, F>
where
    G: Steps<T>,
    F: Fn(G::Out) -> U + Send + Sync,
{
    type Out = U;

    const STAGES: usize = G::STAGES + 1;

    #[inline]
    fn apply(
        &self,
        batch: &mut Vec<T>,
        failed: &FailedStage,
        out: &mut impl FnMut(U) -> Result<(), BoxError>,
    ) -> Result<(), BoxError> {
        self.before.apply(batch, failed, &mut |item| {
            out(StageGuard(failed, Self::STAGES).call(|| (self.f)(item)))
        })
    }

    fn drop_each(self) {
        contain(|| drop(self.f));
        self.before.drop_each();
    }
}

/// A stage that applies a function that may fail to each item. See [`Pipeline::try_map`].
#[derive(Debug)]
pub struct TryMap<G, F> {
    before: G,
    f: F,
}

impl<G, F> Sealed for TryMap<G, F> {}

impl<T, G, F, U, E> Steps<T> for TryMap<G, F>
where
    G: Steps<T>,
    F: Fn(G::Out) -> Result<U, E> + Send + Sync,
    E: Into<BoxError>,
{
    type Out = U;

    const STAGES: usize = G::STAGES + 1;

    #[inline]
    fn apply(
        &self,
        batch: &mut Vec<T>,
        failed: &FailedStage,
        out: &mut impl FnMut(U) -> Result<(), BoxError>,
    ) -> Result<(), BoxError> {
        self.before.apply(batch, failed, &mut |item| {
            let guard = StageGuard(failed, Self::STAGES);
            match guard.call(|| (self.f)(item).map_err(Into::into)) {
                Ok(result) => out(result),
                Err(error) => {
                    failed.set(Self::STAGES);
                    Err(error)
                }
            }
        })
    }

    fn drop_each(self) {
        contain(|| drop(self.f));
        self.before.drop_each();
    }
}

/// A stage that applies a function to each batch. See [`Pipeline::map_batch`].
#[derive(Debug)]
pub struct MapBatch<F> {
    f: F,
}

impl<F> Sealed for MapBatch<F> {}

impl<T, F, U> Steps<T> for MapBatch<F>
where
    F: Fn(&mut Vec<T>) -> U + Send + Sync,
{
    type Out = U;

    const STAGES: usize = 1;

    #[inline]
    fn apply(
        &self,
        batch: &mut Vec<T>,
        failed: &FailedStage,
        out: &mut impl FnMut(U) -> Result<(), BoxError>,
    ) -> Result<(), BoxError> {
        out(StageGuard(failed, Self::STAGES).call(|| (self.f)(batch)))
    }

    fn drop_each(self) {
        contain(|| drop(self.f));
    }
}

impl<S: Source, G> Pipeline<S, G> {
    /// Applies a function to each item, on the pool.
    ///
    /// It can be called several times. Each further function is applied to the result of the one before, on
    /// the same worker and at once.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let mut results = Vec::new();
    /// let words = Pipeline::new(1..=3).map(|n| n * 10).map(|n| n.to_string());
    /// words.ordered().run(&pool, |word| results.push(word))?;
    /// assert_eq!(results, ["10", "20", "30"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn map<F, U>(self, f: F) -> Pipeline<S, Map<G, F>>
    where
        G: Steps<S::Item>,
        F: Fn(G::Out) -> U + Send + Sync,
    {
        let Self { source, steps, config } = self;
        Pipeline { source, steps: Map { before: steps, f }, config }
    }

    /// Applies a function that may fail to each item, on the pool. An error ends the run, and the
    /// [`PipelineError`] says in which batch it occurred.
    ///
    /// [`PipelineError`]: crate::pipeline::PipelineError
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let parsed = Pipeline::new(["1", "two", "3"]).batch(1).try_map(|text| text.parse::<u32>());
    /// let error = parsed.ordered().run(&pool, |_| ()).unwrap_err();
    /// assert_eq!(error.to_string(), "map 1 failed in batch 1: invalid digit found in string");
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn try_map<F, U, E>(self, f: F) -> Pipeline<S, TryMap<G, F>>
    where
        G: Steps<S::Item>,
        F: Fn(G::Out) -> Result<U, E> + Send + Sync,
        E: Into<BoxError>,
    {
        let Self { source, steps, config } = self;
        Pipeline { source, steps: TryMap { before: steps, f }, config }
    }
}

impl<S: Source> Pipeline<S> {
    /// Applies a function to each batch as a whole, on the pool. There is one result for each batch. The
    /// items that the function leaves in the batch are dropped.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let sums = Pipeline::new(1..=100).batch(25).map_batch(|batch| batch.iter().sum::<u32>());
    /// let mut results = Vec::new();
    /// sums.ordered().run(&pool, |sum| results.push(sum))?;
    /// assert_eq!(results, [325, 950, 1575, 2200]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn map_batch<F, U>(self, f: F) -> Pipeline<S, MapBatch<F>>
    where
        F: Fn(&mut Vec<S::Item>) -> U + Send + Sync,
    {
        let Self { source, config, .. } = self;
        Pipeline { source, steps: MapBatch { f }, config }
    }
}
