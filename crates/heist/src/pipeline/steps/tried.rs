//! Stages whose functions may fail. What becomes of an error is decided in `on_error`.

use super::{BoxError, Contained, Passed, Place, Step, Steps, Then, emit_all, emit_some};
use crate::panic::contain;
use crate::pipeline::Pipeline;
use crate::pipeline::sealed::Sealed;
use crate::pipeline::source::Source;

/// A stage that applies a function that may fail to each item. See [`Pipeline::try_map`].
///
/// ```
/// use heist::pipeline::Pipeline;
/// use heist::pipeline::steps::{TryMap, Then};
///
/// let stage: Pipeline<_, Then<_, TryMap<_>>> = Pipeline::new(["1", "2"]).try_map(str::parse::<u32>);
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let mut all = Vec::new();
/// stage.ordered().run(&pool, |result| all.push(result))?;
/// assert_eq!(all, [1, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TryMap<F>(F);

impl<F> Sealed for TryMap<F> {}

impl<I, F, U, E> Step<I> for TryMap<F>
where
    F: Fn(I) -> Result<U, E> + Send + Sync,
    E: Into<BoxError>,
{
    type Out = U;
    type Made = U;
    type Error = E;
    type State = ();

    const ONE_TO_ONE: bool = true;

    #[inline(always)]
    fn call(&self, (): &mut (), item: I, _: Place<'_>) -> Result<U, E> {
        (self.0)(item)
    }

    #[inline(always)]
    fn emit(made: U, _: Place<'_>, out: &mut impl FnMut(U) -> Passed) -> Passed {
        out(made)
    }

    fn drop_parts(self) {
        contain(|| drop(self.0));
    }
}

/// A stage that keeps some of the items, or fails. See [`Pipeline::try_filter`].
///
/// ```
/// use heist::pipeline::Pipeline;
/// use heist::pipeline::steps::{TryFilter, Then};
///
/// let stage: Pipeline<_, Then<_, TryFilter<_>>> = Pipeline::new(["1", "2"]).try_filter(|text| text.parse::<u32>().map(|n| n > 1));
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let mut all = Vec::new();
/// stage.ordered().run(&pool, |result| all.push(result))?;
/// assert_eq!(all, ["2"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TryFilter<F>(F);

impl<F> Sealed for TryFilter<F> {}

impl<I, F, E> Step<I> for TryFilter<F>
where
    F: Fn(&I) -> Result<bool, E> + Send + Sync,
    E: Into<BoxError>,
{
    type Out = I;
    type Made = Option<I>;
    type Error = E;
    type State = ();

    const ONE_TO_ONE: bool = false;

    #[inline(always)]
    fn call(&self, (): &mut (), item: I, _: Place<'_>) -> Result<Option<I>, E> {
        let item = Contained::hold(item);
        let keeps = (self.0)(item.value())?;
        Ok(keeps.then_some(item.take()))
    }

    #[inline(always)]
    fn emit(made: Option<I>, place: Place<'_>, out: &mut impl FnMut(I) -> Passed) -> Passed {
        emit_some(made, place, out)
    }

    fn drop_parts(self) {
        contain(|| drop(self.0));
    }
}

/// A stage that makes a result of some of the items, or fails. See [`Pipeline::try_filter_map`].
///
/// ```
/// use heist::pipeline::Pipeline;
/// use heist::pipeline::steps::{TryFilterMap, Then};
///
/// let stage: Pipeline<_, Then<_, TryFilterMap<_>>> = Pipeline::new(["1", ""]).try_filter_map(|text| {
///     if text.is_empty() { Ok(None) } else { text.parse::<u32>().map(Some) }
/// });
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let mut all = Vec::new();
/// stage.ordered().run(&pool, |result| all.push(result))?;
/// assert_eq!(all, [1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TryFilterMap<F>(F);

impl<F> Sealed for TryFilterMap<F> {}

impl<I, F, U, E> Step<I> for TryFilterMap<F>
where
    F: Fn(I) -> Result<Option<U>, E> + Send + Sync,
    E: Into<BoxError>,
{
    type Out = U;
    type Made = Option<U>;
    type Error = E;
    type State = ();

    const ONE_TO_ONE: bool = false;

    #[inline(always)]
    fn call(&self, (): &mut (), item: I, _: Place<'_>) -> Result<Option<U>, E> {
        (self.0)(item)
    }

    #[inline(always)]
    fn emit(made: Option<U>, place: Place<'_>, out: &mut impl FnMut(U) -> Passed) -> Passed {
        emit_some(made, place, out)
    }

    fn drop_parts(self) {
        contain(|| drop(self.0));
    }
}

/// A stage that makes any number of results of each item, or fails. See [`Pipeline::try_flat_map`].
///
/// ```
/// use heist::pipeline::Pipeline;
/// use heist::pipeline::steps::{TryFlatMap, Then};
///
/// let stage: Pipeline<_, Then<_, TryFlatMap<_>>> = Pipeline::new(["2", "1"]).try_flat_map(|text| text.parse::<u32>().map(|n| 0..n));
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let mut all = Vec::new();
/// stage.ordered().run(&pool, |result| all.push(result))?;
/// assert_eq!(all, [0, 1, 0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TryFlatMap<F>(F);

impl<F> Sealed for TryFlatMap<F> {}

impl<I, F, U, E> Step<I> for TryFlatMap<F>
where
    F: Fn(I) -> Result<U, E> + Send + Sync,
    U: IntoIterator,
    E: Into<BoxError>,
{
    type Out = U::Item;
    type Made = U;
    type Error = E;
    type State = ();

    const ONE_TO_ONE: bool = false;

    #[inline(always)]
    fn call(&self, (): &mut (), item: I, _: Place<'_>) -> Result<U, E> {
        (self.0)(item)
    }

    #[inline(always)]
    fn emit(made: U, place: Place<'_>, out: &mut impl FnMut(U::Item) -> Passed) -> Passed {
        emit_all(made, place, out)
    }

    fn drop_parts(self) {
        contain(|| drop(self.0));
    }
}

/// A stage that shows each item to a function that may fail. See [`Pipeline::try_inspect`].
///
/// ```
/// use heist::pipeline::Pipeline;
/// use heist::pipeline::steps::{TryInspect, Then};
///
/// let stage: Pipeline<_, Then<_, TryInspect<_>>> = Pipeline::new(["1", "2"]).try_inspect(|text| text.parse::<u32>().map(drop));
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let mut all = Vec::new();
/// stage.ordered().run(&pool, |result| all.push(result))?;
/// assert_eq!(all, ["1", "2"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TryInspect<F>(F);

impl<F> Sealed for TryInspect<F> {}

impl<I, F, E> Step<I> for TryInspect<F>
where
    F: Fn(&I) -> Result<(), E> + Send + Sync,
    E: Into<BoxError>,
{
    type Out = I;
    type Made = I;
    type Error = E;
    type State = ();

    const ONE_TO_ONE: bool = true;

    #[inline(always)]
    fn call(&self, (): &mut (), item: I, _: Place<'_>) -> Result<I, E> {
        let item = Contained::hold(item);
        (self.0)(item.value())?;
        Ok(item.take())
    }

    #[inline(always)]
    fn emit(made: I, _: Place<'_>, out: &mut impl FnMut(I) -> Passed) -> Passed {
        out(made)
    }

    fn drop_parts(self) {
        contain(|| drop(self.0));
    }
}

impl<S: Source, G> Pipeline<S, G> {
    /// Applies a function that may fail to each item, on the pool. An error ends the run, unless
    /// [`on_error`](Self::on_error) follows, and the [`PipelineError`] says at which item it occurred.
    ///
    /// [`PipelineError`]: crate::pipeline::PipelineError
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let parsed = Pipeline::new(["1", "two", "3"]).try_map(|text| text.parse::<u32>());
    /// let error = parsed.ordered().run(&pool, |_| ()).unwrap_err();
    /// assert_eq!(error.to_string(), "stage 1 failed at item 1 (batch 0): invalid digit found in string");
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn try_map<F, U, E>(self, f: F) -> Pipeline<S, Then<G, TryMap<F>>>
    where
        G: Steps<S::Item>,
        F: Fn(G::Out) -> Result<U, E> + Send + Sync,
        E: Into<BoxError>,
    {
        self.then(TryMap(f))
    }

    /// Like [`filter`](Self::filter), with a function that may fail. An error ends the run, unless
    /// [`on_error`](Self::on_error) follows.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// // Only the positive ones of some amounts, which should all be numbers.
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let positive = |text: &&str| text.parse::<i32>().map(|amount| amount > 0);
    /// let amounts = Pipeline::new(["5", "-3", "8"]).try_filter(positive).ordered();
    /// assert_eq!(amounts.results(&pool)?.collect::<Result<Vec<_>, _>>()?, ["5", "8"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_filter<F, E>(self, f: F) -> Pipeline<S, Then<G, TryFilter<F>>>
    where
        G: Steps<S::Item>,
        F: Fn(&G::Out) -> Result<bool, E> + Send + Sync,
        E: Into<BoxError>,
    {
        self.then(TryFilter(f))
    }

    /// Like [`filter_map`](Self::filter_map), with a function that may fail. An error ends the run, unless
    /// [`on_error`](Self::on_error) follows.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// // Empty lines are no readings, and anything but a number is an error.
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let reading = |line: String| match line.trim() {
    ///     "" => Ok(None),
    ///     text => text.parse::<f64>().map(Some),
    /// };
    /// let mut sum = 0.0;
    /// Pipeline::lines("1.5\n\n2.5\n".as_bytes()).try_filter_map(reading).run(&pool, |n| sum += n)?;
    /// assert_eq!(sum, 4.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_filter_map<F, U, E>(self, f: F) -> Pipeline<S, Then<G, TryFilterMap<F>>>
    where
        G: Steps<S::Item>,
        F: Fn(G::Out) -> Result<Option<U>, E> + Send + Sync,
        E: Into<BoxError>,
    {
        self.then(TryFilterMap(f))
    }

    /// Like [`flat_map`](Self::flat_map), with a function that may fail. An error ends the run, unless
    /// [`on_error`](Self::on_error) follows. An item that fails has no results.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// // All fields of some records, which should be numbers.
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let fields = |line: String| line.split(',').map(str::parse).collect::<Result<Vec<u32>, _>>();
    /// let records = Pipeline::lines("1,2\n3,x\n".as_bytes()).try_flat_map(fields);
    /// let error = records.run(&pool, |_| ()).unwrap_err();
    /// assert_eq!(error.item(), Some(1)); // the second line
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn try_flat_map<F, U, E>(self, f: F) -> Pipeline<S, Then<G, TryFlatMap<F>>>
    where
        G: Steps<S::Item>,
        F: Fn(G::Out) -> Result<U, E> + Send + Sync,
        U: IntoIterator,
        E: Into<BoxError>,
    {
        self.then(TryFlatMap(f))
    }

    /// Like [`inspect`](Self::inspect), with a function that may fail. An error ends the run, unless
    /// [`on_error`](Self::on_error) follows.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// // A check that passes its item on.
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let check = |page: &Vec<u8>| if page.is_empty() { Err("an empty page") } else { Ok(()) };
    /// let pages = Pipeline::new([vec![1], vec![], vec![2]]).try_inspect(check);
    /// let error = pages.run(&pool, |_| ()).unwrap_err();
    /// assert_eq!(error.to_string(), "stage 1 failed at item 1 (batch 0): an empty page");
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn try_inspect<F, E>(self, f: F) -> Pipeline<S, Then<G, TryInspect<F>>>
    where
        G: Steps<S::Item>,
        F: Fn(&G::Out) -> Result<(), E> + Send + Sync,
        E: Into<BoxError>,
    {
        self.then(TryInspect(f))
    }
}
