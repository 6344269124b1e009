//! Stages that process each batch as a whole.

use super::{BoxError, Contained, Context, Leftovers, Passed, Place, Steps, Token, drop_left};
use crate::panic::{contain, contain_each};
use crate::pipeline::Pipeline;
use crate::pipeline::sealed::Sealed;
use crate::pipeline::source::Source;

/// A stage that applies a function to each batch. See [`Pipeline::map_batch`].
///
/// ```
/// use heist::pipeline::Pipeline;
/// use heist::pipeline::steps::MapBatch;
///
/// let sums: Pipeline<_, MapBatch<_, _>> =
///     Pipeline::new(1..=4).batch(2).map_batch(|batch: &mut Vec<u32>| batch.iter().sum::<u32>());
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let mut all = Vec::new();
/// sums.ordered().run(&pool, |sum| all.push(sum))?;
/// assert_eq!(all, [3, 7]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MapBatch<G, F> {
    before: G,
    f: F,
}

impl<G, F> Sealed for MapBatch<G, F> {}

impl<T, G, F, U> Steps<T> for MapBatch<G, F>
where
    G: Steps<T>,
    F: Fn(&mut Vec<G::Out>) -> U + Send + Sync,
{
    type Out = U;
    type State = G::State;

    const STAGES: usize = G::STAGES + 1;
    const ONE_TO_ONE: bool = false;
    const TRACKS: bool = G::TRACKS;
    const SECTIONS: usize = G::SECTIONS;

    #[inline]
    fn apply<const TRACK: bool>(
        &self,
        state: &mut Self::State,
        batch: &mut Vec<T>,
        context: &Context<'_>,
        out: &mut impl FnMut(U) -> Passed,
    ) -> Passed {
        let place = Place { context, stage: Self::STAGES };
        let f = |items: &mut Vec<G::Out>| Ok((self.f)(items));
        out(apply_to_all::<T, G, TRACK, U>(&self.before, state, batch, place, &f)?)
    }

    fn resume(
        &self,
        state: &mut Self::State,
        token: Token,
        context: &Context<'_>,
        out: &mut impl FnMut(U) -> Passed,
    ) -> Passed {
        let place = Place { context, stage: Self::STAGES };
        let f = |items: &mut Vec<G::Out>| Ok((self.f)(items));
        out(apply_to_resumed::<T, G, U>(&self.before, state, token, place, &f)?)
    }

    fn drop_each(self) {
        contain(|| drop(self.f));
        self.before.drop_each();
    }
}

/// A stage that applies a function that may fail to each batch. See [`Pipeline::try_map_batch`].
///
/// ```
/// use heist::pipeline::Pipeline;
/// use heist::pipeline::steps::TryMapBatch;
///
/// let sums: Pipeline<_, TryMapBatch<_, _>> = Pipeline::new(["1", "2"])
///     .batch(2)
///     .try_map_batch(|batch| batch.iter().map(|text| text.parse::<u32>()).sum::<Result<u32, _>>());
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let mut all = Vec::new();
/// sums.run(&pool, |sum| all.push(sum))?;
/// assert_eq!(all, [3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TryMapBatch<G, F> {
    before: G,
    f: F,
}

impl<G, F> Sealed for TryMapBatch<G, F> {}

impl<T, G, F, U, E> Steps<T> for TryMapBatch<G, F>
where
    G: Steps<T>,
    F: Fn(&mut Vec<G::Out>) -> Result<U, E> + Send + Sync,
    E: Into<BoxError>,
{
    type Out = U;
    type State = G::State;

    const STAGES: usize = G::STAGES + 1;
    const ONE_TO_ONE: bool = false;
    const TRACKS: bool = G::TRACKS;
    const SECTIONS: usize = G::SECTIONS;

    #[inline]
    fn apply<const TRACK: bool>(
        &self,
        state: &mut Self::State,
        batch: &mut Vec<T>,
        context: &Context<'_>,
        out: &mut impl FnMut(U) -> Passed,
    ) -> Passed {
        let place = Place { context, stage: Self::STAGES };
        let f = |items: &mut Vec<G::Out>| (self.f)(items).map_err(Into::into);
        out(apply_to_all::<T, G, TRACK, U>(&self.before, state, batch, place, &f)?)
    }

    fn resume(
        &self,
        state: &mut Self::State,
        token: Token,
        context: &Context<'_>,
        out: &mut impl FnMut(U) -> Passed,
    ) -> Passed {
        let place = Place { context, stage: Self::STAGES };
        let f = |items: &mut Vec<G::Out>| (self.f)(items).map_err(Into::into);
        out(apply_to_resumed::<T, G, U>(&self.before, state, token, place, &f)?)
    }

    fn drop_each(self) {
        contain(|| drop(self.f));
        self.before.drop_each();
    }
}

/// Applies a function to all results of the stages before it.
fn apply_to_all<T, G: Steps<T>, const TRACK: bool, R>(
    before: &G,
    state: &mut G::State,
    batch: &mut Vec<T>,
    place: Place<'_>,
    f: &impl Fn(&mut Vec<G::Out>) -> Result<R, BoxError>,
) -> Result<R, BoxError> {
    before.with_all::<TRACK, _>(state, batch, place.context, |items| call(items, place, f))?
}

/// Like [`apply_to_all`], with a batch that has waited in a section.
fn apply_to_resumed<T, G: Steps<T>, R>(
    before: &G,
    state: &mut G::State,
    token: Token,
    place: Place<'_>,
    f: &impl Fn(&mut Vec<G::Out>) -> Result<R, BoxError>,
) -> Result<R, BoxError> {
    let mut all = Leftovers(Vec::new());
    before.resume(state, token, place.context, &mut |result| {
        all.0.push(result);
        place.check()
    })?;
    call(&mut all.0, place, f)
}

/// Applies a function to all items, and drops those that it leaves. If that panics, the result is dropped without a second
/// panic. An error of the function comes before a panic of what it leaves.
fn call<I, R>(
    items: &mut Vec<I>,
    place: Place<'_>,
    f: &impl Fn(&mut Vec<I>) -> Result<R, BoxError>,
) -> Result<R, BoxError> {
    place.context.set_all_items();
    place.guard(|| match f(items) {
        Ok(result) => {
            let result = Contained::hold(result);
            drop_left(items);
            Ok(result.take())
        }
        Err(error) => {
            contain_each(items.drain(..));
            place.note_failed();
            Err(error)
        }
    })
}

impl<S: Source, G> Pipeline<S, G> {
    /// Applies a function to each batch as a whole, on the pool: to what the stages before it have made of the items
    /// of one batch of the source, which may be nothing. There is one result for each batch. The items that the
    /// function leaves in the batch are dropped.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// // Columns of a table, in blocks of up to 25 rows.
    /// let csv: String = (1..=100).map(|n| format!("{n},{}\n", n * n)).collect();
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let row = |line: String| {
    ///     let (a, b) = line.split_once(',').ok_or("one column")?;
    ///     Ok::<(u32, u32), Box<dyn std::error::Error + Send + Sync>>((a.parse()?, b.parse()?))
    /// };
    /// let columns = Pipeline::lines(csv.as_bytes())
    ///     .batch(25)
    ///     .try_map(row)
    ///     .map_batch(|rows| rows.drain(..).unzip::<u32, u32, Vec<_>, Vec<_>>());
    /// let mut blocks = Vec::new();
    /// columns.ordered().run(&pool, |block| blocks.push(block))?;
    /// assert_eq!((blocks.len(), blocks[1].0[0], blocks[1].1[0]), (4, 26, 676));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn map_batch<F, U>(self, f: F) -> Pipeline<S, MapBatch<G, F>>
    where
        G: Steps<S::Item>,
        F: Fn(&mut Vec<G::Out>) -> U + Send + Sync,
    {
        let Self { source, steps, config } = self;
        Pipeline { source, steps: MapBatch { before: steps, f }, config }
    }

    /// Like [`map_batch`](Self::map_batch), with a function that may fail. An error ends the run.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let total = |prices: &mut Vec<u32>| prices.drain(..).try_fold(0_u32, u32::checked_add).ok_or("overflow");
    /// let totals = Pipeline::new([1, 2, u32::MAX, 3]).batch(2).try_map_batch(total);
    /// let error = totals.ordered().run(&pool, |_| ()).unwrap_err();
    /// assert_eq!(error.to_string(), "stage 1 failed in batch 1: overflow");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_map_batch<F, U, E>(self, f: F) -> Pipeline<S, TryMapBatch<G, F>>
    where
        G: Steps<S::Item>,
        F: Fn(&mut Vec<G::Out>) -> Result<U, E> + Send + Sync,
        E: Into<BoxError>,
    {
        let Self { source, steps, config } = self;
        Pipeline { source, steps: TryMapBatch { before: steps, f }, config }
    }
}
