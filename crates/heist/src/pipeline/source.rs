//! Where items come from.

use super::control::Control;
use super::sealed::Sealed;
use super::stage::Complaint;
use crate::sync::Arc;

/// Where the items of a pipeline come from.
///
/// Made by [`Pipeline::new`](super::Pipeline::new) and its kind; nothing else can be one.
pub trait Source: Sealed {
    /// What comes from it.
    type Item;

    /// Has each item a weight?
    #[doc(hidden)]
    const WEIGHED: bool = false;

    /// Adds at most so many items, at least one, to a batch. It may block, panic, and run code of the user's.
    #[doc(hidden)]
    fn fill(&mut self, batch: &mut Vec<Self::Item>, most: usize) -> Filled;

    #[doc(hidden)]
    fn weight(&self, _: &Self::Item) -> u64 {
        0
    }

    /// Whom to tell that there is something after a [`Filled::Dry`].
    #[doc(hidden)]
    fn attach(&mut self, _: &Arc<Control>) {}
}

/// What a source has to say after its items.
#[derive(Debug)]
pub enum Filled {
    /// There may be more.
    More,
    /// There is nothing at the moment, and the pipeline will be told when there is.
    Dry,
    /// There will be nothing more.
    End,
    /// Likewise.
    Failed(Complaint),
}

/// See [`Pipeline::new`](super::Pipeline::new).
#[derive(Debug)]
pub struct Items<I>(pub(super) I);

impl<I> Sealed for Items<I> {}

impl<I: Iterator> Source for Items<I> {
    type Item = I::Item;

    #[inline]
    fn fill(&mut self, batch: &mut Vec<I::Item>, most: usize) -> Filled {
        let before = batch.len();
        // Where the iterator is known to tell its length, this is a loop without a look at the room.
        batch.extend(self.0.by_ref().take(most));
        if batch.len() - before < most { Filled::End } else { Filled::More }
    }
}

/// See [`Pipeline::try_new`](super::Pipeline::try_new).
#[derive(Debug)]
pub struct Tried<I>(pub(super) I);

impl<I> Sealed for Tried<I> {}

impl<I, T, E> Source for Tried<I>
where
    I: Iterator<Item = Result<T, E>>,
    E: Into<Complaint>,
{
    type Item = T;

    fn fill(&mut self, batch: &mut Vec<T>, most: usize) -> Filled {
        for _ in 0..most {
            match self.0.next() {
                Some(Ok(item)) => batch.push(item),
                Some(Err(error)) => return Filled::Failed(error.into()),
                None => return Filled::End,
            }
        }
        Filled::More
    }
}

/// See [`Pipeline::weigh`](super::Pipeline::weigh).
#[derive(Debug)]
pub struct Weighed<S, W> {
    pub(super) source: S,
    pub(super) weigh: W,
}

impl<S, W> Sealed for Weighed<S, W> {}

impl<S, W> Source for Weighed<S, W>
where
    S: Source,
    W: Fn(&S::Item) -> usize,
{
    type Item = S::Item;

    const WEIGHED: bool = true;

    fn fill(&mut self, batch: &mut Vec<S::Item>, most: usize) -> Filled {
        self.source.fill(batch, most)
    }

    fn weight(&self, item: &S::Item) -> u64 {
        (self.weigh)(item) as u64
    }

    fn attach(&mut self, control: &Arc<Control>) {
        self.source.attach(control);
    }
}
