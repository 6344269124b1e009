//! What becomes of an item whose stage has failed.

use std::time::Duration;

use super::{
    Passed, Place, Step, Steps, Then, TryFilter, TryFilterMap, TryFlatMap, TryInspect, TryMap,
    TryMapInit,
};
use crate::panic::contain;
use crate::pipeline::Pipeline;
use crate::pipeline::error::Stage;
use crate::pipeline::sealed::Sealed;
use crate::pipeline::source::Source;

/// A stage whose function returns a `Result`, for [`Pipeline::on_error`].
pub trait Fallible: Sealed {}

impl<F> Fallible for TryMap<F> {}
impl<F> Fallible for TryFilter<F> {}
impl<F> Fallible for TryFilterMap<F> {}
impl<F> Fallible for TryFlatMap<F> {}
impl<F> Fallible for TryInspect<F> {}
impl<N, F> Fallible for TryMapInit<N, F> {}
impl<K, P> Fallible for OnError<K, P> {}

/// What to do with an item of type `I` whose stage has failed with an `E`: [`Skip`], [`Retry`], [`Stop`] or
/// [`DeadLetter`]. It cannot be implemented outside of this crate.
pub trait Policy<I, E>: Send + Sync + Sealed {
    /// Makes the result of an item by calls of `attempt`. Returns `None` if there is none and the run goes on.
    #[doc(hidden)]
    fn decide<M>(
        &self,
        item: I,
        place: Place<'_>,
        attempt: impl FnMut(I) -> Result<M, E>,
    ) -> Result<Option<M>, E>;

    /// Drops the functions of the policy. Panics end here.
    #[doc(hidden)]
    fn drop_parts(self);
}

/// An error ends the run. This is what happens without [`on_error`](Pipeline::on_error).
///
/// ```
/// use heist::pipeline::{Pipeline, Stop};
///
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let numbers = Pipeline::new(["1", "x"]).try_map(str::parse::<u32>).on_error(Stop);
/// assert_eq!(numbers.run(&pool, |_| ()).unwrap_err().item(), Some(1));
/// # Ok::<(), heist::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Stop;

impl Sealed for Stop {}

impl<I, E> Policy<I, E> for Stop {
    #[inline]
    fn decide<M>(
        &self,
        item: I,
        _: Place<'_>,
        mut attempt: impl FnMut(I) -> Result<M, E>,
    ) -> Result<Option<M>, E> {
        attempt(item).map(Some)
    }

    fn drop_parts(self) {}
}

/// An item that fails has no result, and its error is dropped. [`Report::skipped`] counts such items.
///
/// [`Report::skipped`]: crate::pipeline::Report::skipped
///
/// ```
/// use heist::pipeline::{Pipeline, Skip};
///
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let numbers = Pipeline::new(["1", "x", "3"]).try_map(str::parse::<u32>).on_error(Skip);
/// let mut sum = 0;
/// let report = numbers.run(&pool, |n| sum += n)?;
/// assert_eq!((sum, report.skipped), (4, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Skip;

impl Sealed for Skip {}

impl<I, E> Policy<I, E> for Skip {
    #[inline]
    fn decide<M>(
        &self,
        item: I,
        place: Place<'_>,
        mut attempt: impl FnMut(I) -> Result<M, E>,
    ) -> Result<Option<M>, E> {
        Ok(match attempt(item) {
            Ok(made) => Some(made),
            Err(error) => {
                place.count_skipped();
                drop(error);
                None
            }
        })
    }

    fn drop_parts(self) {}
}

/// The function is called again for an item that has failed, up to this many `times`. If the last call fails as
/// well, its error ends the run, or goes to the [`on_error`](Pipeline::on_error) that follows.
///
/// There is a pause before each further call: `backoff` before the first, and twice as long as the last one before
/// each other one. The batch waits meanwhile, and so do the batches behind it in order, while another thread goes on with
/// the worker's other tasks. So a pause should be short, or few items should need one. If the run fails or is cancelled, a pause ends at once.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use std::time::Duration;
/// use heist::pipeline::{Pipeline, Retry, Skip};
///
/// // A crawl of two pages. The first request of all fails, and the second page does not exist.
/// let requests = AtomicU32::new(0);
/// let fetch = |page: &str| match (requests.fetch_add(1, Ordering::Relaxed), page) {
///     (0, _) => Err("timeout"),
///     (_, "/") => Ok("<html>"),
///     _ => Err("not found"),
/// };
/// let pool = heist::Pool::builder().workers(1).build()?;
/// let retry = Retry { times: 2, backoff: Duration::from_millis(1) };
/// let crawl = Pipeline::new(["/", "/gone"]).try_map(fetch).on_error(retry).on_error(Skip).ordered();
/// let mut pages = Vec::new();
/// let report = crawl.run(&pool, |page| pages.push(page))?;
/// assert_eq!(pages, ["<html>"]);
/// assert_eq!((report.retried, report.skipped), (3, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    /// How often the function is called again at most.
    pub times: u32,
    /// The pause before the first further call. Each pause after that is twice as long as the one before.
    pub backoff: Duration,
}

impl Sealed for Retry {}

impl<I: Clone, E> Policy<I, E> for Retry {
    fn decide<M>(
        &self,
        item: I,
        place: Place<'_>,
        mut attempt: impl FnMut(I) -> Result<M, E>,
    ) -> Result<Option<M>, E> {
        let mut pause = self.backoff;
        for _ in 0..self.times {
            match attempt(item.clone()) {
                Ok(made) => return Ok(Some(made)),
                // If the results are not wanted any more, it does not matter what becomes of the item.
                Err(error) if !place.is_wanted() => return Err(error),
                Err(error) => drop(error),
            }
            place.count_retried();
            place.pause(pause);
            pause = pause.saturating_mul(2);
        }
        attempt(item).map(Some)
    }

    fn drop_parts(self) {}
}

/// An item that fails has no result. It is passed to a function instead, with its error. [`Report::skipped`] counts
/// such items.
///
/// The function is called on the pool, possibly by several workers at once and in any order. The items must be
/// `Clone`, because the stage takes them: if a clone is expensive, use an `Arc`.
///
/// [`Report::skipped`]: crate::pipeline::Report::skipped
///
/// ```
/// use std::sync::Mutex;
/// use heist::pipeline::{Dead, DeadLetter, Pipeline};
///
/// let rejected = Mutex::new(Vec::new());
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let numbers = Pipeline::new(["1", "x", "3"])
///     .try_map(str::parse::<u32>)
///     .on_error(DeadLetter(|dead: Dead<_, _>| rejected.lock().unwrap().push((dead.item, dead.index))));
/// let report = numbers.run(&pool, |_| ())?;
/// assert_eq!(*rejected.lock().unwrap(), [("x", Some(1))]);
/// assert_eq!((report.results, report.skipped), (2, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DeadLetter<D>(
    /// The function that gets the items that have failed.
    pub D,
);

/// An item that has failed. See [`DeadLetter`].
///
/// ```
/// use heist::pipeline::{Dead, DeadLetter, Pipeline};
///
/// let print = |dead: Dead<&str, std::num::ParseIntError>| eprintln!("{}: {}", dead.item, dead.error);
/// let pool = heist::Pool::builder().workers(2).build()?;
/// Pipeline::new(["1", "x"]).try_map(str::parse::<u32>).on_error(DeadLetter(print)).run(&pool, |_| ())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Dead<I, E> {
    /// The item, as it came to the stage.
    pub item: I,
    /// The error.
    pub error: E,
    /// The index in the source of the item that it was made of, counted from 0. `None` after a
    /// [`map_batch`](Pipeline::map_batch).
    pub index: Option<u64>,
    /// The number of the batch, counted from 0.
    pub batch: u64,
    /// The stage that has failed.
    pub stage: Stage,
}

impl<D> Sealed for DeadLetter<D> {}

impl<I: Clone, E, D> Policy<I, E> for DeadLetter<D>
where
    D: Fn(Dead<I, E>) + Send + Sync,
{
    fn decide<M>(
        &self,
        item: I,
        place: Place<'_>,
        mut attempt: impl FnMut(I) -> Result<M, E>,
    ) -> Result<Option<M>, E> {
        match attempt(item.clone()) {
            Ok(made) => Ok(Some(made)),
            Err(error) => {
                place.count_skipped();
                let (index, batch, stage) = (place.item(), place.batch(), place.stage());
                (self.0)(Dead { item, error, index, batch, stage });
                Ok(None)
            }
        }
    }

    fn drop_parts(self) {
        contain(|| drop(self.0));
    }
}

/// A stage with a policy for its errors. See [`Pipeline::on_error`].
#[derive(Debug)]
pub struct OnError<K, P> {
    step: K,
    policy: P,
}

impl<K, P> Sealed for OnError<K, P> {}

impl<I, K, P> Step<I> for OnError<K, P>
where
    K: Step<I>,
    P: Policy<I, K::Error>,
{
    type Out = K::Out;
    type Made = Option<K::Made>;
    type Error = K::Error;
    type State = K::State;

    const ONE_TO_ONE: bool = false;
    const TRACKS: bool = true;

    #[inline]
    fn call(
        &self,
        state: &mut K::State,
        item: I,
        place: Place<'_>,
    ) -> Result<Option<K::Made>, K::Error> {
        self.policy.decide(item, place, |item| self.step.call(state, item, place))
    }

    #[inline]
    fn emit(
        made: Option<K::Made>,
        place: Place<'_>,
        out: &mut impl FnMut(K::Out) -> Passed,
    ) -> Passed {
        match made {
            Some(made) => K::emit(made, place, out),
            None => place.check(),
        }
    }

    fn drop_parts(self) {
        self.policy.drop_parts();
        self.step.drop_parts();
    }
}

impl<S: Source, G, K> Pipeline<S, Then<G, K>> {
    /// Sets what happens when the last stage, one of the `try_` stages, returns an error: [`Stop`] the run, [`Skip`]
    /// the item, [`Retry`], or pass the item to a [`DeadLetter`] function. Without it, an error ends the run.
    ///
    /// Several policies may follow each other: what fails in spite of the first one is for the second. A panic
    /// always ends the run.
    ///
    /// ```
    /// use std::time::Duration;
    /// use heist::pipeline::{Dead, DeadLetter, Pipeline, Retry};
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let report = Pipeline::new(["1", "2", "x"])
    ///     .try_map(str::parse::<u32>)
    ///     .on_error(Retry { times: 1, backoff: Duration::ZERO })
    ///     .on_error(DeadLetter(|dead: Dead<&str, _>| eprintln!("no number: {}", dead.item)))
    ///     .map(|n| n + 1)
    ///     .run(&pool, |_| ())?;
    /// assert_eq!((report.results, report.skipped, report.retried), (2, 1, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_error<P>(self, policy: P) -> Pipeline<S, Then<G, OnError<K, P>>>
    where
        G: Steps<S::Item>,
        K: Step<G::Out> + Fallible,
        P: Policy<G::Out, K::Error>,
    {
        let Self { source, steps: Then { before, step }, config } = self;
        let step = OnError { step, policy };
        Pipeline { source, steps: Then { before, step }, config }
    }
}
