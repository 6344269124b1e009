//! The stages of a pipeline: what a worker does with the items of a batch.
//!
//! * One result for each item: [`map`](Pipeline::map), [`inspect`](Pipeline::inspect), and [`map_init`](Pipeline::map_init) with
//!   a value for each worker.
//! * None or one, or any number: [`filter`](Pipeline::filter), [`filter_map`](Pipeline::filter_map) and
//!   [`flat_map`](Pipeline::flat_map).
//! * One for each batch: [`map_batch`](Pipeline::map_batch).
//! * Few workers at a time, or the items of a key in order: [`limit_workers`](Pipeline::limit_workers) and
//!   [`group_by_key`](Pipeline::group_by_key), with any of these stages in them.
//!
//! All but the last two are also there for functions that may fail: [`try_map`](Pipeline::try_map) and so on. What becomes of their errors is
//! decided by [`on_error`](Pipeline::on_error), except for [`try_map_batch`](Pipeline::try_map_batch).
//!
//! A chain of stages is a type: [`Then`] is a chain with one more [`Step`] at its end, and [`Same`] is the chain
//! without any. The compiler sees the whole chain, so that a stage costs no more than a call of its function, and a
//! pipeline pays for nothing that it does not use:
//!
//! * [`Steps::State`] is what a worker keeps from batch to batch. It takes no space unless there is a
//!   [`MapInit`] in the chain.
//! * The place of the item in its batch is only written down for each item if a step needs it ([`Steps::TRACKS`]).
//!   Otherwise it is computed from what is left of the batch when a stage has failed.
//! * After each result, a worker looks whether the batch is still wanted. A step that makes none of an item, or many,
//!   looks itself.

mod batch;
mod chain;
mod context;
mod each;
mod on_error;
mod policy;
mod section;
mod state;
mod tried;

use std::error::Error;
use std::vec::Drain;

use super::Pipeline;
#[doc(hidden)]
pub use super::control::Token;
use super::sealed::Sealed;
use super::source::Source;
use crate::panic::{contain, contain_each, drop_each};
pub use batch::{MapBatch, TryMapBatch};
pub use chain::{Same, Then};
#[doc(hidden)]
pub use context::{Context, Place};
pub(super) use context::{Counts, Discarded};
pub use each::{Filter, FilterMap, FlatMap, Inspect, Map};
pub use on_error::{Fallible, OnError};
pub use policy::{Dead, DeadLetter, Policy, Retry, Skip, Stop};
pub use section::{Grouped, Limited, Section};
pub(super) use section::{Parked, Part};
pub use state::{MapInit, TryMapInit};
pub use tried::{TryFilter, TryFilterMap, TryFlatMap, TryInspect, TryMap};

/// An error that the user's code returned.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// What a step passes on to the next one, or the reason why the batch ends here.
pub(crate) type Passed = Result<(), BoxError>;

/// The stages that process items of type `T` on the pool, each applied to the results of the one before.
///
/// Stages are made by [`Pipeline::map`] and similar methods. The trait cannot be implemented outside of this
/// crate.
///
/// ```
/// use heist::Pool;
/// use heist::pipeline::{Items, Pipeline, PipelineError, Steps};
///
/// /// Runs the stages on a few words, and returns the results in order.
/// fn results<G>(
///     pool: &Pool,
///     pipeline: Pipeline<Items<std::array::IntoIter<&'static str, 2>>, G>,
/// ) -> Result<Vec<G::Out>, PipelineError>
/// where
///     G: Steps<&'static str, Out: Send>,
/// {
///     let mut all = Vec::new();
///     pipeline.ordered().run(pool, |result| all.push(result))?;
///     Ok(all)
/// }
///
/// let pool = Pool::builder().workers(2).build()?;
/// assert_eq!(results(&pool, Pipeline::new(["one", "three"]).map(str::len))?, [3, 5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Steps<T>: Send + Sync + Sealed {
    /// The type of the results.
    type Out;

    /// What each worker keeps from batch to batch. It is dropped without a panic.
    #[doc(hidden)]
    type State: Default + Send;

    /// The number of stages.
    #[doc(hidden)]
    const STAGES: usize;

    /// Whether there is exactly one result for each item.
    #[doc(hidden)]
    const ONE_TO_ONE: bool;

    /// Whether a step needs to know the place of its item while it processes it.
    #[doc(hidden)]
    const TRACKS: bool;

    /// The number of sections in the chain, in which a batch may have to wait.
    #[doc(hidden)]
    const SECTIONS: usize;

    /// Takes the items out of the batch, and passes the result of each to `out`. Notes in the context which
    /// stage has failed or panicked, and at which item. `TRACK` is [`TRACKS`](Self::TRACKS) of the whole chain.
    #[doc(hidden)]
    fn apply<const TRACK: bool>(
        &self,
        state: &mut Self::State,
        batch: &mut Vec<T>,
        context: &Context<'_>,
        out: &mut impl FnMut(Self::Out) -> Passed,
    ) -> Passed;

    /// Goes on with a batch, or a part of it, that has waited in a section, as [`apply`](Self::apply) does.
    #[doc(hidden)]
    fn resume(
        &self,
        state: &mut Self::State,
        token: Token,
        context: &Context<'_>,
        out: &mut impl FnMut(Self::Out) -> Passed,
    ) -> Passed;

    /// Calls `f` with all results of the batch. It drops those that `f` leaves, one by one.
    #[doc(hidden)]
    fn with_all<const TRACK: bool, R>(
        &self,
        state: &mut Self::State,
        batch: &mut Vec<T>,
        context: &Context<'_>,
        f: impl FnOnce(&mut Vec<Self::Out>) -> R,
    ) -> Result<R, BoxError> {
        let mut all = Leftovers(Vec::with_capacity(batch.len()));
        self.apply::<TRACK>(state, batch, context, &mut |result| {
            all.0.push(result);
            context.check()
        })?;
        Ok(f(&mut all.0))
    }

    /// Drops the functions one by one, because the drop of each may panic. The panics end here.
    #[doc(hidden)]
    fn drop_each(self);
}

/// One stage, which processes each item by itself. It cannot be implemented outside of this crate.
///
/// ```
/// use heist::pipeline::Pipeline;
/// use heist::pipeline::steps::{Map, Step};
///
/// /// Returns the type of what a step makes of a `u32`.
/// fn made_of_number<K: Step<u32>>(_: impl FnOnce() -> K) -> &'static str {
///     std::any::type_name::<K::Out>()
/// }
///
/// let never: fn() -> Map<fn(u32) -> String> = || unreachable!("only its type is asked for");
/// assert_eq!(made_of_number(never), "alloc::string::String");
/// ```
pub trait Step<I>: Send + Sync + Sealed {
    /// The type of the results.
    type Out;

    /// What the user's function has made of an item: no result, one or several.
    #[doc(hidden)]
    type Made;

    /// The error of the user's function.
    #[doc(hidden)]
    type Error: Into<BoxError>;

    /// See [`Steps::State`].
    #[doc(hidden)]
    type State: Default + Send;

    /// See [`Steps::ONE_TO_ONE`].
    #[doc(hidden)]
    const ONE_TO_ONE: bool;

    /// See [`Steps::TRACKS`].
    #[doc(hidden)]
    const TRACKS: bool = false;

    /// Calls the user's function. If it panics, the caller notes that.
    #[doc(hidden)]
    fn call(
        &self,
        state: &mut Self::State,
        item: I,
        place: Place<'_>,
    ) -> Result<Self::Made, Self::Error>;

    /// Passes on what the user's function has made.
    #[doc(hidden)]
    fn emit(
        made: Self::Made,
        place: Place<'_>,
        out: &mut impl FnMut(Self::Out) -> Passed,
    ) -> Passed;

    /// Drops the function. A panic ends here.
    #[doc(hidden)]
    fn drop_parts(self);
}

/// The items of a batch that have not been processed yet. If a stage fails or panics, they are dropped one by
/// one: the thread may be unwinding, and then a panic of one of them must not get any further.
struct Rest<'b, 'c, T> {
    items: Drain<'b, T>,
    count: usize,
    context: &'c Context<'c>,
}

impl<T> Drop for Rest<'_, '_, T> {
    #[inline]
    fn drop(&mut self) {
        self.context.set_place((self.count - self.items.len()).wrapping_sub(1));
        contain_each(self.items.by_ref());
    }
}

/// Items that a stage had collected. They are dropped as those in [`Rest`] are.
struct Leftovers<T>(Vec<T>);

impl<T> Drop for Leftovers<T> {
    fn drop(&mut self) {
        contain_each(self.0.drain(..));
    }
}

/// A value of the user that is dropped without a panic, because the thread may be unwinding. While other code of the user runs,
/// an item is in one: if it were a variable, and that code and its destructor panicked, the process would abort.
#[derive(Debug)]
struct Contained<T>(Option<T>);

impl<T> Contained<T> {
    #[inline(always)]
    fn hold(value: T) -> Self {
        Self(Some(value))
    }

    #[inline(always)]
    fn value(&self) -> &T {
        self.0.as_ref().expect("it is there until it is taken")
    }

    /// Returns the value. From now on, its drop may panic.
    #[inline(always)]
    fn take(mut self) -> T {
        self.0.take().expect("it is there until it is taken")
    }
}

impl<T> Drop for Contained<T> {
    #[inline(always)]
    fn drop(&mut self) {
        // A value without a destructor costs nothing.
        if std::mem::needs_drop::<T>() {
            if let Some(value) = self.0.take() {
                contain(|| drop(value));
            }
        }
    }
}

impl<T> Default for Contained<T> {
    fn default() -> Self {
        Self(None)
    }
}

/// Passes on the items of an iterator, which is the user's code.
fn emit_all<T>(
    items: impl IntoIterator<Item = T>,
    place: Place<'_>,
    out: &mut impl FnMut(T) -> Passed,
) -> Passed {
    let mut items = Contained(Some(place.guard(|| items.into_iter())));
    while let Some(item) = place.guard(|| items.0.as_mut().and_then(Iterator::next)) {
        out(item)?;
    }
    place.guard(|| drop(items.0.take()));
    place.check()
}

/// Passes on the item, if there is one.
#[inline(always)]
fn emit_some<T>(item: Option<T>, place: Place<'_>, out: &mut impl FnMut(T) -> Passed) -> Passed {
    match item {
        Some(item) => out(item),
        None => place.check(),
    }
}

/// Drops what a function has left in a batch one by one. The first panic goes on.
fn drop_left<T>(items: &mut Vec<T>) {
    if let Err(payload) = drop_each(items.drain(..)) {
        std::panic::resume_unwind(payload);
    }
}

impl<S: Source, G> Pipeline<S, G> {
    /// Adds a step at the end of the chain.
    fn then<K>(self, step: K) -> Pipeline<S, Then<G, K>>
    where
        G: Steps<S::Item>,
        K: Step<G::Out>,
    {
        let Self { source, steps, config } = self;
        Pipeline { source, steps: Then { before: steps, step }, config }
    }
}
