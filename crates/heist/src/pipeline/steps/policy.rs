//! The policies: what becomes of an item whose stage has failed.

use std::time::Duration;

use super::{Contained, Place};
use crate::panic::contain;
use crate::pipeline::error::Stage;
use crate::pipeline::sealed::Sealed;

/// What to do with an item of type `I` whose stage has failed with an `E`: [`Skip`], [`Retry`], [`Stop`] or
/// [`DeadLetter`], or an `Option` of one of these, where `None` is [`Stop`]. It cannot be implemented outside of this crate.
///
/// ```
/// use heist::pipeline::steps::Policy;
/// use heist::pipeline::{Pipeline, Skip};
///
/// type Error = std::num::ParseIntError;
///
/// /// Returns how many items a policy leaves out.
/// fn skipped<P: Policy<&'static str, Error>>(policy: P) -> Result<u64, Box<dyn std::error::Error>> {
///     let pool = heist::Pool::builder().workers(2).build()?;
///     let numbers = Pipeline::new(["1", "x"]).try_map(str::parse::<u32>).on_error(policy);
///     Ok(numbers.run(&pool, |_| ())?.skipped)
/// }
///
/// assert_eq!(skipped(Skip)?, 1);
/// assert_eq!(skipped(Some(Skip))?, 1);
/// assert!(skipped(None::<Skip>).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no policy for the errors of this stage",
    label = "not a policy for items of type `{I}` and errors of type `{E}`",
    note = "the policies are `Stop`, `Skip`, `Retry`, `DeadLetter` and an `Option` of one of them",
    note = "`Retry` and `DeadLetter` need items that are `Clone`, and `DeadLetter` a function of a `Dead<{I}, {E}>`"
)]
pub trait Policy<I, E>: Send + Sync + Sealed {
    /// Whether the run may go on without a result of an item.
    #[doc(hidden)]
    const LEAVES_OUT: bool;

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

/// An error ends the run. This is what happens without [`on_error`](crate::pipeline::Pipeline::on_error).
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
    const LEAVES_OUT: bool = false;

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
    const LEAVES_OUT: bool = true;

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
/// well, its error ends the run, or goes to the [`on_error`](crate::pipeline::Pipeline::on_error) that follows.
///
/// There may be a [pause](Self::backoff) before each further call. It takes one of the run's workers: the batch waits, and so do
/// the batches behind it in order, while another thread goes on with the worker's other tasks. So a pause should be short, or
/// few items should need one. If the run fails or is cancelled, a pause ends at once, and the function is not called again.
///
/// The items must be `Clone`, because the stage takes them: each item is cloned before every call but the last one, also
/// before the first. If a clone is expensive, use an `Arc`.
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
/// let retry = Retry::times(2).backoff(Duration::from_millis(1));
/// let crawl = Pipeline::new(["/", "/gone"]).try_map(fetch).on_error(retry).on_error(Skip).ordered();
/// let mut pages = Vec::new();
/// let report = crawl.run(&pool, |page| pages.push(page))?;
/// assert_eq!(pages, ["<html>"]);
/// assert_eq!((report.retried, report.skipped), (3, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "a policy does nothing until it is passed to `on_error`"]
pub struct Retry {
    times: u32,
    backoff: Duration,
    max_backoff: Duration,
}

impl Retry {
    /// Has the function called again up to this many times, without pauses.
    ///
    /// ```
    /// use heist::pipeline::{Pipeline, Retry};
    ///
    /// let pool = heist::Pool::builder().workers(1).build()?;
    /// let calls = std::sync::atomic::AtomicU32::new(0);
    /// let third = |_| match calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
    ///     2 => Ok(()),
    ///     _ => Err("not yet"),
    /// };
    /// let report = Pipeline::new(0..1).try_map(third).on_error(Retry::times(5)).run(&pool, |()| ())?;
    /// assert_eq!(report.retried, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn times(times: u32) -> Self {
        Self { times, backoff: Duration::ZERO, max_backoff: Duration::MAX }
    }

    /// Sets the pause before the first further call. Each pause after that is twice as long as the one before. The default is
    /// no pause.
    ///
    /// ```
    /// use std::time::Duration;
    /// use heist::pipeline::Retry;
    ///
    /// // After 10, 20 and 40 milliseconds.
    /// let retry = Retry::times(3).backoff(Duration::from_millis(10));
    /// # let _ = retry;
    /// ```
    pub const fn backoff(mut self, first: Duration) -> Self {
        self.backoff = first;
        self
    }

    /// Sets the longest pause. The default is no limit.
    ///
    /// ```
    /// use std::time::Duration;
    /// use heist::pipeline::Retry;
    ///
    /// // After 10, 20, 25 and 25 milliseconds.
    /// let retry = Retry::times(4).backoff(Duration::from_millis(10)).max_backoff(Duration::from_millis(25));
    /// # let _ = retry;
    /// ```
    pub const fn max_backoff(mut self, longest: Duration) -> Self {
        self.max_backoff = longest;
        self
    }
}

impl Sealed for Retry {}

impl<I: Clone, E> Policy<I, E> for Retry {
    // If nobody wants the results any more, there may be none, but those of the batch are discarded then.
    const LEAVES_OUT: bool = false;

    fn decide<M>(
        &self,
        item: I,
        place: Place<'_>,
        mut attempt: impl FnMut(I) -> Result<M, E>,
    ) -> Result<Option<M>, E> {
        let item = Contained::hold(item);
        let mut pause = self.backoff;
        for _ in 0..self.times {
            match attempt(item.value().clone()) {
                Ok(made) => return Ok(Some(without(item, made))),
                Err(error) => drop(error),
            }
            place.pause(pause.min(self.max_backoff));
            if !place.is_wanted() {
                // The batch ends here: `OnError::emit` looks whether it is wanted.
                return Ok(None);
            }
            place.count_retried();
            pause = pause.saturating_mul(2);
        }
        attempt(item.take()).map(Some)
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
    /// [`map_batch`](crate::pipeline::Pipeline::map_batch).
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
    const LEAVES_OUT: bool = true;

    fn decide<M>(
        &self,
        item: I,
        place: Place<'_>,
        mut attempt: impl FnMut(I) -> Result<M, E>,
    ) -> Result<Option<M>, E> {
        let item = Contained::hold(item);
        match attempt(item.value().clone()) {
            Ok(made) => Ok(Some(without(item, made))),
            Err(error) => {
                place.count_skipped();
                let (item, stage) = (item.take(), place.stage());
                let (index, batch) = (place.item(), place.batch());
                (self.0)(Dead { item, error, index, batch, stage });
                Ok(None)
            }
        }
    }

    fn drop_parts(self) {
        contain(|| drop(self.0));
    }
}

impl<P> Sealed for Option<P> {}

impl<I, E, P: Policy<I, E>> Policy<I, E> for Option<P> {
    const LEAVES_OUT: bool = P::LEAVES_OUT;

    #[inline]
    fn decide<M>(
        &self,
        item: I,
        place: Place<'_>,
        attempt: impl FnMut(I) -> Result<M, E>,
    ) -> Result<Option<M>, E> {
        match self {
            Some(policy) => policy.decide(item, place, attempt),
            None => Stop.decide(item, place, attempt),
        }
    }

    fn drop_parts(self) {
        if let Some(policy) = self {
            policy.drop_parts();
        }
    }
}

/// Drops an item that was kept for a further call, and returns the result. If that panics, the result is dropped without a
/// second panic.
fn without<I, M>(item: Contained<I>, made: M) -> M {
    let made = Contained::hold(made);
    drop(item.take());
    made.take()
}
