//! A stage with a policy for its errors.

use super::{
    Passed, Place, Policy, Retry, Step, Steps, Then, TryFilter, TryFilterMap, TryFlatMap,
    TryInspect, TryMap, TryMapInit,
};
use crate::pipeline::Pipeline;
use crate::pipeline::sealed::Sealed;
use crate::pipeline::source::Source;

/// A stage whose function returns a `Result`, or one whose only policy is a [`Retry`], for [`Pipeline::on_error`].
///
/// ```
/// use heist::pipeline::steps::{Fallible, OnError, TryMap};
/// use heist::pipeline::{Retry, Skip};
///
/// /// Compiles for a stage that may have a policy, and whose items may be retried before it applies.
/// fn may_have_policy<K: Fallible>() {}
///
/// may_have_policy::<TryMap<fn(&str) -> Result<u32, std::num::ParseIntError>>>();
/// may_have_policy::<OnError<TryMap<fn(u32) -> Result<u32, String>>, Retry>>();
/// ```
#[diagnostic::on_unimplemented(
    message = "no error of this stage is left for a policy",
    label = "not a `try_` stage for single items, nor one whose last policy is `Retry`",
    note = "`on_error` follows a `try_` stage, or an `on_error` with `Retry`, directly",
    note = "`try_map_batch` has no policies: return the error as a part of the result, and filter the results"
)]
pub trait Fallible: Sealed {}

impl<F> Fallible for TryMap<F> {}
impl<F> Fallible for TryFilter<F> {}
impl<F> Fallible for TryFilterMap<F> {}
impl<F> Fallible for TryFlatMap<F> {}
impl<F> Fallible for TryInspect<F> {}
impl<N, F> Fallible for TryMapInit<N, F> {}
impl<K> Fallible for OnError<K, Retry> {}
impl<K> Fallible for OnError<K, Option<Retry>> {}
/// A stage with a policy for its errors. See [`Pipeline::on_error`].
///
/// ```
/// use heist::pipeline::steps::{OnError, Then, TryMap};
/// use heist::pipeline::{Pipeline, Skip};
///
/// let numbers: Pipeline<_, Then<_, OnError<TryMap<_>, Skip>>> =
///     Pipeline::new(["1", "x"]).try_map(str::parse::<u32>).on_error(Skip);
/// let pool = heist::Pool::builder().workers(2).build()?;
/// assert_eq!(numbers.run(&pool, |n| assert_eq!(n, 1))?.skipped, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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

    const ONE_TO_ONE: bool = K::ONE_TO_ONE && !P::LEAVES_OUT;
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
    /// Sets what happens when the last stage, one of the `try_` stages, returns an error: [`Stop`](super::Stop) the run, [`Skip`](super::Skip)
    /// the item, [`Retry`], or pass the item to a [`DeadLetter`](super::DeadLetter) function. Without it, an error ends the run.
    ///
    /// Another policy may follow [`Retry`]: what fails in spite of it is for that one. A panic always ends the run. An `Option`
    /// of a policy can be chosen while the program runs: `None` is [`Stop`](super::Stop).
    ///
    /// [`try_map_batch`](Self::try_map_batch) has no policies, because its function may have used some of its items.
    ///
    /// ```
    /// use std::time::Duration;
    /// use heist::pipeline::{Dead, DeadLetter, Pipeline, Retry};
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let report = Pipeline::new(["1", "2", "x"])
    ///     .try_map(str::parse::<u32>)
    ///     .on_error(Retry::times(1).backoff(Duration::from_micros(50)))
    ///     .on_error(DeadLetter(|dead: Dead<&str, _>| eprintln!("no number: {}", dead.item)))
    ///     .map(|n| n + 1)
    ///     .run(&pool, |_| ())?;
    /// assert_eq!((report.results, report.skipped, report.retried), (2, 1, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// No error is left for a policy after another one than `Retry`:
    ///
    /// ```compile_fail,E0277
    /// use heist::pipeline::{Pipeline, Skip, Stop};
    ///
    /// let _ = Pipeline::new(["1", "x"]).try_map(str::parse::<u32>).on_error(Stop).on_error(Skip);
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
