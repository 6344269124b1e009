//! Stages whose functions cannot fail.

use std::convert::Infallible;

use super::{Contained, Passed, Place, Step, Steps, Then, emit_all, emit_some};
use crate::panic::contain;
use crate::pipeline::Pipeline;
use crate::pipeline::sealed::Sealed;
use crate::pipeline::source::Source;

/// A stage that applies a function to each item. See [`Pipeline::map`].
///
/// ```
/// use heist::pipeline::Pipeline;
/// use heist::pipeline::steps::{Map, Then};
///
/// let stage: Pipeline<_, Then<_, Map<_>>> = Pipeline::new(1..=3).map(|n| n * n);
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let mut all = Vec::new();
/// stage.ordered().run(&pool, |result| all.push(result))?;
/// assert_eq!(all, [1, 4, 9]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Map<F>(F);

impl<F> Sealed for Map<F> {}

impl<I, F, U> Step<I> for Map<F>
where
    F: Fn(I) -> U + Send + Sync,
{
    type Out = U;
    type Made = U;
    type Error = Infallible;
    type State = ();

    const ONE_TO_ONE: bool = true;

    #[inline(always)]
    fn call(&self, (): &mut (), item: I, _: Place<'_>) -> Result<U, Infallible> {
        Ok((self.0)(item))
    }

    #[inline(always)]
    fn emit(made: U, _: Place<'_>, out: &mut impl FnMut(U) -> Passed) -> Passed {
        out(made)
    }

    fn drop_parts(self) {
        contain(|| drop(self.0));
    }
}

/// A stage that keeps some of the items. See [`Pipeline::filter`].
///
/// ```
/// use heist::pipeline::Pipeline;
/// use heist::pipeline::steps::{Filter, Then};
///
/// let stage: Pipeline<_, Then<_, Filter<_>>> = Pipeline::new(1..=4).filter(|n| n % 2 == 0);
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let mut all = Vec::new();
/// stage.ordered().run(&pool, |result| all.push(result))?;
/// assert_eq!(all, [2, 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Filter<F>(F);

impl<F> Sealed for Filter<F> {}

impl<I, F> Step<I> for Filter<F>
where
    F: Fn(&I) -> bool + Send + Sync,
{
    type Out = I;
    type Made = Option<I>;
    type Error = Infallible;
    type State = ();

    const ONE_TO_ONE: bool = false;

    #[inline(always)]
    fn call(&self, (): &mut (), item: I, _: Place<'_>) -> Result<Option<I>, Infallible> {
        let item = Contained::hold(item);
        let keeps = (self.0)(item.value());
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

/// A stage that makes a result of some of the items. See [`Pipeline::filter_map`].
///
/// ```
/// use heist::pipeline::Pipeline;
/// use heist::pipeline::steps::{FilterMap, Then};
///
/// let stage: Pipeline<_, Then<_, FilterMap<_>>> = Pipeline::new(["1", "x"]).filter_map(|text| text.parse::<u32>().ok());
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let mut all = Vec::new();
/// stage.ordered().run(&pool, |result| all.push(result))?;
/// assert_eq!(all, [1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FilterMap<F>(F);

impl<F> Sealed for FilterMap<F> {}

impl<I, F, U> Step<I> for FilterMap<F>
where
    F: Fn(I) -> Option<U> + Send + Sync,
{
    type Out = U;
    type Made = Option<U>;
    type Error = Infallible;
    type State = ();

    const ONE_TO_ONE: bool = false;

    #[inline(always)]
    fn call(&self, (): &mut (), item: I, _: Place<'_>) -> Result<Option<U>, Infallible> {
        Ok((self.0)(item))
    }

    #[inline(always)]
    fn emit(made: Option<U>, place: Place<'_>, out: &mut impl FnMut(U) -> Passed) -> Passed {
        emit_some(made, place, out)
    }

    fn drop_parts(self) {
        contain(|| drop(self.0));
    }
}

/// A stage that makes any number of results of each item. See [`Pipeline::flat_map`].
///
/// ```
/// use heist::pipeline::Pipeline;
/// use heist::pipeline::steps::{FlatMap, Then};
///
/// let stage: Pipeline<_, Then<_, FlatMap<_>>> = Pipeline::new(["a b", "c"]).flat_map(|line: &'static str| line.split(' '));
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let mut all = Vec::new();
/// stage.ordered().run(&pool, |result| all.push(result))?;
/// assert_eq!(all, ["a", "b", "c"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FlatMap<F>(F);

impl<F> Sealed for FlatMap<F> {}

impl<I, F, U> Step<I> for FlatMap<F>
where
    F: Fn(I) -> U + Send + Sync,
    U: IntoIterator,
{
    type Out = U::Item;
    type Made = U;
    type Error = Infallible;
    type State = ();

    const ONE_TO_ONE: bool = false;

    #[inline(always)]
    fn call(&self, (): &mut (), item: I, _: Place<'_>) -> Result<U, Infallible> {
        Ok((self.0)(item))
    }

    #[inline(always)]
    fn emit(made: U, place: Place<'_>, out: &mut impl FnMut(U::Item) -> Passed) -> Passed {
        emit_all(made, place, out)
    }

    fn drop_parts(self) {
        contain(|| drop(self.0));
    }
}

/// A stage that shows each item to a function. See [`Pipeline::inspect`].
///
/// ```
/// use heist::pipeline::Pipeline;
/// use heist::pipeline::steps::{Inspect, Then};
///
/// let stage: Pipeline<_, Then<_, Inspect<_>>> = Pipeline::new(1..=2).inspect(|n| assert!(*n < 3));
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let mut all = Vec::new();
/// stage.ordered().run(&pool, |result| all.push(result))?;
/// assert_eq!(all, [1, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Inspect<F>(F);

impl<F> Sealed for Inspect<F> {}

impl<I, F> Step<I> for Inspect<F>
where
    F: Fn(&I) + Send + Sync,
{
    type Out = I;
    type Made = I;
    type Error = Infallible;
    type State = ();

    const ONE_TO_ONE: bool = true;

    #[inline(always)]
    fn call(&self, (): &mut (), item: I, _: Place<'_>) -> Result<I, Infallible> {
        let item = Contained::hold(item);
        (self.0)(item.value());
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
    pub fn map<F, U>(self, f: F) -> Pipeline<S, Then<G, Map<F>>>
    where
        G: Steps<S::Item>,
        F: Fn(G::Out) -> U + Send + Sync,
    {
        self.then(Map(f))
    }

    /// Keeps the items for which the function returns `true`, and drops the other ones, on the pool.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// // Which requests of a log took longer than a second?
    /// let log = "GET / 12\nGET /report 1840\nPOST /login 95\nGET /export 2210\n";
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let mut slow = Vec::new();
    /// Pipeline::lines(log.as_bytes())
    ///     .filter(|line| line.rsplit(' ').next().and_then(|ms| ms.parse().ok()).is_some_and(|ms: u32| ms > 1000))
    ///     .ordered()
    ///     .run(&pool, |line| slow.push(line))?;
    /// assert_eq!(slow, ["GET /report 1840", "GET /export 2210"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn filter<F>(self, f: F) -> Pipeline<S, Then<G, Filter<F>>>
    where
        G: Steps<S::Item>,
        F: Fn(&G::Out) -> bool + Send + Sync,
    {
        self.then(Filter(f))
    }

    /// Applies a function to each item, on the pool, and keeps what is in a `Some`.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// // The settings of a file, without its comments and empty lines.
    /// let file = "# server\nport = 80\n\nhost = localhost\n";
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let mut settings = Vec::new();
    /// let pair = |line: String| {
    ///     let (key, value) = line.split_once('=')?;
    ///     Some((key.trim().to_owned(), value.trim().to_owned()))
    /// };
    /// Pipeline::lines(file.as_bytes()).filter_map(pair).ordered().run(&pool, |pair| settings.push(pair))?;
    /// assert_eq!(settings[1], ("host".into(), "localhost".into()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn filter_map<F, U>(self, f: F) -> Pipeline<S, Then<G, FilterMap<F>>>
    where
        G: Steps<S::Item>,
        F: Fn(G::Out) -> Option<U> + Send + Sync,
    {
        self.then(FilterMap(f))
    }

    /// Applies a function to each item, on the pool. Each element of what it returns is a result, in this order.
    ///
    /// All results of a [batch](Self::batch) are in memory together. If an item can have very many, make the
    /// batches small. If the run ends early, the iterator is dropped as one value.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// // How often does each word occur?
    /// let text = "the cat and the dog\nand the bird\n";
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let mut counts = std::collections::BTreeMap::new();
    /// Pipeline::lines(text.as_bytes())
    ///     .flat_map(|line| line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    ///     .run(&pool, |word| *counts.entry(word).or_insert(0) += 1)?;
    /// assert_eq!((counts["the"], counts["and"], counts["dog"]), (3, 2, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn flat_map<F, U>(self, f: F) -> Pipeline<S, Then<G, FlatMap<F>>>
    where
        G: Steps<S::Item>,
        F: Fn(G::Out) -> U + Send + Sync,
        U: IntoIterator,
    {
        self.then(FlatMap(f))
    }

    /// Calls a function with a reference to each item, on the pool, and passes the item on.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// use heist::pipeline::Pipeline;
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let bytes = AtomicU64::new(0);
    /// let pages = (0..10).map(|n| vec![b' '; n * 100]);
    /// Pipeline::new(pages)
    ///     .inspect(|page| _ = bytes.fetch_add(page.len() as u64, Ordering::Relaxed))
    ///     .map(|page| page.len())
    ///     .run(&pool, |_| ())?;
    /// assert_eq!(bytes.into_inner(), 4500);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn inspect<F>(self, f: F) -> Pipeline<S, Then<G, Inspect<F>>>
    where
        G: Steps<S::Item>,
        F: Fn(&G::Out) + Send + Sync,
    {
        self.then(Inspect(f))
    }
}
