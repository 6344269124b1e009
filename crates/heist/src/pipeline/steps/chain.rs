//! Chains of steps.

use super::{BoxError, Context, Passed, Place, Rest, Step, Steps, Token};
use crate::pipeline::sealed::Sealed;

/// The identity: a pipeline without a stage, whose results are its items.
///
/// ```
/// use heist::pipeline::{Items, Pipeline, Same};
///
/// let copied: Pipeline<Items<_>, Same> = Pipeline::new(1..=3);
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let mut sum = 0;
/// copied.run(&pool, |n| sum += n)?;
/// assert_eq!(sum, 6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Same;

impl Sealed for Same {}

impl<T> Steps<T> for Same {
    type Out = T;
    type State = ();

    const STAGES: usize = 0;
    const ONE_TO_ONE: bool = true;
    const TRACKS: bool = false;
    const SECTIONS: usize = 0;

    #[inline]
    fn apply<const TRACK: bool>(
        &self,
        (): &mut (),
        batch: &mut Vec<T>,
        context: &Context<'_>,
        out: &mut impl FnMut(T) -> Passed,
    ) -> Passed {
        let count = batch.len();
        let mut rest = Rest { items: batch.drain(..), count, context };
        if TRACK {
            rest.items.by_ref().enumerate().try_for_each(|(place, item)| {
                context.set_place(place);
                out(item)
            })
        } else {
            rest.items.try_for_each(out)
        }
    }

    fn resume(
        &self,
        (): &mut (),
        _: Token,
        _: &Context<'_>,
        _: &mut impl FnMut(T) -> Passed,
    ) -> Passed {
        unreachable!("a token names a section of the chain")
    }

    #[inline]
    fn with_all<const TRACK: bool, R>(
        &self,
        (): &mut (),
        batch: &mut Vec<T>,
        _: &Context<'_>,
        f: impl FnOnce(&mut Vec<T>) -> R,
    ) -> Result<R, BoxError> {
        // What `f` leaves is dropped by the caller, who owns the batch.
        Ok(f(batch))
    }

    fn drop_each(self) {}
}

/// The stages `G`, and then the step `K`.
///
/// ```
/// use heist::pipeline::steps::{Filter, Map, Then};
/// use heist::pipeline::{Pipeline, Same};
///
/// let even_squares: Pipeline<_, Then<Then<Same, Filter<_>>, Map<_>>> =
///     Pipeline::new(1..=4).filter(|n| n % 2 == 0).map(|n| n * n);
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let mut sum = 0;
/// even_squares.run(&pool, |square| sum += square)?;
/// assert_eq!(sum, 20);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Then<G, K> {
    pub(super) before: G,
    pub(super) step: K,
}

impl<G, K> Sealed for Then<G, K> {}

impl<G, K> Then<G, K> {
    /// Applies the step to an item, and passes on what it makes of it.
    #[inline(always)]
    fn pass<I>(
        &self,
        state: &mut K::State,
        item: I,
        place: Place<'_>,
        out: &mut impl FnMut(K::Out) -> Passed,
    ) -> Passed
    where
        K: Step<I>,
    {
        match place.guard(|| self.step.call(state, item, place).map_err(Into::into)) {
            Ok(made) => K::emit(made, place, out),
            Err(error) => {
                place.note_failed();
                Err(error)
            }
        }
    }
}

impl<T, G, K> Steps<T> for Then<G, K>
where
    G: Steps<T>,
    K: Step<G::Out>,
{
    type Out = K::Out;
    type State = (G::State, K::State);

    const STAGES: usize = G::STAGES + 1;
    const ONE_TO_ONE: bool = G::ONE_TO_ONE && K::ONE_TO_ONE;
    const TRACKS: bool = G::TRACKS || K::TRACKS;
    const SECTIONS: usize = G::SECTIONS;

    #[inline]
    fn apply<const TRACK: bool>(
        &self,
        state: &mut Self::State,
        batch: &mut Vec<T>,
        context: &Context<'_>,
        out: &mut impl FnMut(K::Out) -> Passed,
    ) -> Passed {
        let (before, own) = state;
        let place = Place { context, stage: Self::STAGES };
        let mut pass = |item| self.pass(own, item, place, out);
        self.before.apply::<TRACK>(before, batch, context, &mut pass)
    }

    fn resume(
        &self,
        state: &mut Self::State,
        token: Token,
        context: &Context<'_>,
        out: &mut impl FnMut(K::Out) -> Passed,
    ) -> Passed {
        let (before, own) = state;
        let place = Place { context, stage: Self::STAGES };
        self.before.resume(before, token, context, &mut |item| self.pass(own, item, place, out))
    }

    fn drop_each(self) {
        self.step.drop_parts();
        self.before.drop_each();
    }
}
