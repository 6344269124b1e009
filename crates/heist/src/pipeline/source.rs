//! Where items come from.

use std::io::{self, BufRead};

use super::Pipeline;
use super::control::Control;
use super::plan::Plan;
use super::sealed::Sealed;
use super::stage::{Complaint, Same};
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

    /// By which those who feed it can be told of the end, wherever the source is.
    #[doc(hidden)]
    type Handle: Send + Sync;

    /// Whom to tell that there is something after a [`Filled::Dry`].
    #[doc(hidden)]
    fn attach(&mut self, control: &Arc<Control>) -> Self::Handle;

    #[doc(hidden)]
    fn close(_: &Self::Handle) {}
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
    type Handle = ();

    fn attach(&mut self, _: &Arc<Control>) {}

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
    type Handle = ();

    fn attach(&mut self, _: &Arc<Control>) {}

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
    type Handle = S::Handle;

    const WEIGHED: bool = true;

    fn fill(&mut self, batch: &mut Vec<S::Item>, most: usize) -> Filled {
        self.source.fill(batch, most)
    }

    fn weight(&self, item: &S::Item) -> u64 {
        (self.weigh)(item) as u64
    }

    fn attach(&mut self, control: &Arc<Control>) -> S::Handle {
        self.source.attach(control)
    }

    fn close(handle: &S::Handle) {
        S::close(handle);
    }
}

impl<I: Iterator> Pipeline<Items<I>> {
    /// From whatever can be iterated over. It may block, and it may panic.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let report = Pipeline::new(vec!["a", "b"]).run(&pool, |item| println!("{item}"))?;
    /// assert_eq!(report.items, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(items: impl IntoIterator<IntoIter = I>) -> Self {
        Self { source: Items(items.into_iter()), steps: Same, plan: Plan::new() }
    }
}

impl<I, T, E> Pipeline<Tried<I>>
where
    I: Iterator<Item = Result<T, E>>,
    E: Into<Complaint>,
{
    /// From whatever can be iterated over and may fail: the first error ends the run, after what came before it.
    ///
    /// ```
    /// use heist::pipeline::{Pipeline, Stage};
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let mut seen = Vec::new();
    /// let source = [Ok(1), Ok(2), Err("the line is dead"), Ok(4)];
    /// let error = Pipeline::try_new(source).ordered().run(&pool, |n| seen.push(n)).unwrap_err();
    /// assert_eq!(error.stage(), Some(Stage::Source));
    /// assert_eq!(seen, [1, 2]);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn try_new(items: impl IntoIterator<IntoIter = I>) -> Self {
        Self { source: Tried(items.into_iter()), steps: Same, plan: Plan::new() }
    }
}

impl<B: BufRead> Pipeline<Tried<io::Lines<B>>> {
    /// The lines of a reader, without their ends. An error of the reader's ends the run.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let numbers = Pipeline::lines("1\n2\n3\n".as_bytes()).try_map(|line| line.parse::<u32>());
    /// let mut sum = 0;
    /// numbers.run(&pool, |n| sum += n)?;
    /// assert_eq!(sum, 6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn lines(reader: B) -> Self {
        Self::try_new(reader.lines())
    }
}
