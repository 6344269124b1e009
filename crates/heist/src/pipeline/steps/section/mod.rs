//! Sections: stages with a rule of their own about which workers process a batch, and when. [`limited`] bounds their number, and
//! [`grouped`] keeps the items of a key in order.
//!
//! A batch that may not go on yet waits in the section, and its worker does something else. The batch is in flight as before.
//! `../../README.md` has the protocol (steps G1 to G4).

mod grouped;
mod limited;

use std::error::Error;
use std::fmt;
use std::marker::PhantomData;
use std::vec::IntoIter;

use super::{BoxError, Context, Leftovers, Passed, Same, Steps};
use crate::panic::{contain, contain_each};
use crate::pipeline::Pipeline;
use crate::pipeline::config::{Config, Misuse};
use crate::pipeline::control::Control;
use crate::pipeline::deliver::BatchEntry;
use crate::pipeline::sealed::Sealed;
use crate::pipeline::source::{Filled, NoReader, Source};
use crate::sync::Arc;
pub use grouped::Grouped;
pub use limited::Limited;

/// The stages of a section get their items from here. See [`Pipeline::limit_workers`] and [`Pipeline::group_by_key`].
///
/// ```
/// use heist::pipeline::steps::{Section, Steps};
/// use heist::pipeline::Pipeline;
///
/// /// The same stages for several pipelines.
/// fn trimmed(lines: Pipeline<Section<String>>) -> Pipeline<Section<String>, impl Steps<String, Out = String>> {
///     lines.map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
/// }
///
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let mut lines = Vec::new();
/// Pipeline::lines(" a\n\n b".as_bytes()).limit_workers(1, trimmed).run(&pool, |line| lines.push(line))?;
/// assert_eq!(lines, ["a", "b"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Section<I>(PhantomData<fn() -> I>);

impl<I> Section<I> {
    /// Returns what the user's closure adds stages to.
    fn pipeline() -> Pipeline<Self> {
        Pipeline { source: Self(PhantomData), steps: Same, config: Config::new() }
    }
}

impl<I> fmt::Debug for Section<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Section")
    }
}

impl<I> Sealed for Section<I> {}

impl<I> Source for Section<I> {
    type Item = I;
    type Handle = ();
    type Reader = NoReader;

    fn fill(&mut self, _: &mut Vec<I>, _: usize, _: &impl Fn() -> bool) -> Filled {
        Filled::Failed("the stages of a section are run by the pipeline around it: return them from the closure".into())
    }

    fn attach(&mut self, _: &Arc<Control>) {}
}

impl<S: Source, G> Pipeline<S, G> {
    /// Adds the stages that the user's closure returns as a section, for the method of that name.
    fn with_section<H, X>(
        self,
        name: &'static str,
        stages: impl FnOnce(Pipeline<Section<G::Out>>) -> Pipeline<Section<G::Out>, H>,
        invalid: Option<Misuse>,
        section: impl FnOnce(G, H) -> X,
    ) -> Pipeline<S, X>
    where
        G: Steps<S::Item>,
        H: Steps<G::Out>,
    {
        const {
            assert!(
                H::SECTIONS == 0,
                "a section of a pipeline cannot be in another section: put one behind the other"
            )
        };
        let Self { source, steps, mut config } = self;
        let inner = stages(Section::pipeline());
        if let Some(misuse) = invalid {
            config.note(misuse);
        }
        config.add_part(&inner.config, name);
        Pipeline { source, steps: section(steps, inner.steps), config }
    }
}

/// What is processed of a batch: all of it, or a part of it in a section.
#[derive(Debug)]
pub(crate) struct Part<'r> {
    /// The number of stages before those that process it.
    pub(super) before: usize,
    /// Which items these are, by their places. `None` for all items of the batch.
    pub(super) origins: Option<&'r [Origin]>,
    /// What is delivered of the batch.
    pub(super) entry: BatchEntry,
}

impl Part<'_> {
    /// Returns the part that is the whole batch.
    pub(crate) fn whole(entry: BatchEntry) -> Self {
        Self { before: 0, origins: None, entry }
    }
}

/// Which item of its batch an item in a section is, or was made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    /// How many items of the batch have come to the section before it.
    pub(super) order: usize,
    /// The place in the batch of the item of the source, or [`ALL_ITEMS`].
    pub(super) place: usize,
}

/// Says that a batch waits in a section, or that other workers have parts of it. Some worker will go on with it.
#[derive(Debug)]
pub(crate) struct Parked;

impl fmt::Display for Parked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the batch waits in a section")
    }
}

impl Error for Parked {}

/// Items that have come to a section.
struct Lot<I> {
    items: Leftovers<I>,
    origins: Vec<Origin>,
}

impl<I> Lot<I> {
    fn with_capacity(items: usize) -> Self {
        Self { items: Leftovers(Vec::with_capacity(items)), origins: Vec::with_capacity(items) }
    }

    fn push(&mut self, item: I, origin: Origin) {
        self.items.0.push(item);
        self.origins.push(origin);
    }

    /// Adds an item that has come to the section as the next one of its batch.
    fn push_next(&mut self, item: I, context: &Context<'_>) {
        let origin = Origin { order: self.origins.len(), place: context.origin().place };
        self.push(item, origin);
    }
}

/// What a section has made, each result with the item of which it was made.
type Made<U> = Leftovers<(Origin, U)>;

/// Tells the context of the batch what the context of a section has noted, however the section is left.
struct Inner<'o, 'r> {
    context: Context<'o>,
    outer: &'o Context<'r>,
}

impl Drop for Inner<'_, '_> {
    fn drop(&mut self) {
        self.outer.take_over(&self.context);
    }
}

/// Applies the stages of a section, of which there are `before` others, to items.
fn process<I, H: Steps<I>>(
    stages: &H,
    state: &mut H::State,
    lot: &mut Lot<I>,
    before: usize,
    context: &Context<'_>,
) -> Result<Made<H::Out>, BoxError> {
    context.check()?;
    let part = Part { before, origins: Some(&lot.origins), entry: context.entry() };
    let inner = Inner { context: context.of_part(&part), outer: context };
    let mut made = Leftovers(Vec::with_capacity(lot.items.0.len()));
    stages.apply::<true>(state, &mut lot.items.0, &inner.context, &mut |result| {
        made.0.push((inner.context.origin(), result));
        inner.context.check()
    })?;
    Ok(made)
}

/// Passes on what a section has made of a batch.
fn emit<U>(mut made: Made<U>, context: &Context<'_>, out: &mut impl FnMut(U) -> Passed) -> Passed {
    context.check()?;
    let mut rest = Emitted(std::mem::take(&mut made.0).into_iter());
    for (origin, item) in rest.0.by_ref() {
        context.set_place(origin.place);
        out(item)?;
    }
    Ok(())
}

/// Results that have not been passed on yet. They are dropped one by one: the thread may be unwinding.
struct Emitted<U>(IntoIter<(Origin, U)>);

impl<U> Drop for Emitted<U> {
    fn drop(&mut self) {
        contain_each(self.0.by_ref());
    }
}

/// Drops the parts of a section one by one. Panics end here.
fn drop_each<T, G: Steps<T>, H: Steps<G::Out>>(before: G, stages: H, waiting: impl Sized) {
    // What waits drops its items one by one.
    contain(|| drop(waiting));
    stages.drop_each();
    before.drop_each();
}
