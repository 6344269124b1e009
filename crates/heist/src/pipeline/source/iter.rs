//! Sources that iterate.

use super::{Filled, NoReader, Source};
use crate::pipeline::Pipeline;
use crate::pipeline::config::Config;
use crate::pipeline::control::Control;
use crate::pipeline::sealed::Sealed;
use crate::pipeline::steps::{BoxError, Same};
use crate::sync::Arc;

/// The items of an iterator. See [`Pipeline::new`].
///
/// ```
/// use heist::pipeline::{Items, Pipeline};
///
/// fn numbers(to: u32) -> Pipeline<Items<std::ops::Range<u32>>> {
///     Pipeline::new(0..to)
/// }
///
/// let pool = heist::Pool::builder().workers(2).build()?;
/// assert_eq!(numbers(5).run(&pool, |_| ())?.items, 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Items<I>(I);

impl<I> Sealed for Items<I> {}

impl<I: Iterator> Source for Items<I> {
    type Item = I::Item;
    type Handle = ();
    type Reader = NoReader;

    fn attach(&mut self, _: &Arc<Control>) {}

    fn size(&self) -> Option<u64> {
        self.0.size_hint().1.map(|items| items as u64)
    }

    #[inline]
    fn fill(&mut self, batch: &mut Vec<I::Item>, most: usize, stop: &impl Fn() -> bool) -> Filled {
        batch.reserve(most.min(self.0.size_hint().0));
        for _ in 0..most {
            if stop() {
                break;
            }
            match self.0.next() {
                Some(item) => batch.push(item),
                None => return Filled::End,
            }
        }
        Filled::More
    }
}

/// The items of an iterator over results. See [`Pipeline::try_new`].
///
/// ```
/// use std::io::{BufRead, Lines};
/// use heist::pipeline::{Pipeline, Tried};
///
/// fn lines<R: BufRead>(reader: R) -> Pipeline<Tried<Lines<R>>> {
///     Pipeline::try_new(reader.lines())
/// }
///
/// let pool = heist::Pool::builder().workers(2).build()?;
/// assert_eq!(lines("a\nb\n".as_bytes()).run(&pool, |_| ())?.items, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Tried<I>(I);

impl<I> Sealed for Tried<I> {}

impl<I, T, E> Source for Tried<I>
where
    I: Iterator<Item = Result<T, E>>,
    E: Into<BoxError>,
{
    type Item = T;
    type Handle = ();
    type Reader = NoReader;

    fn attach(&mut self, _: &Arc<Control>) {}

    fn size(&self) -> Option<u64> {
        self.0.size_hint().1.map(|items| items as u64)
    }

    fn fill(&mut self, batch: &mut Vec<T>, most: usize, stop: &impl Fn() -> bool) -> Filled {
        for _ in 0..most {
            if stop() {
                break;
            }
            match self.0.next() {
                Some(Ok(item)) => batch.push(item),
                Some(Err(error)) => return Filled::Failed(error.into()),
                None => return Filled::End,
            }
        }
        Filled::More
    }
}

impl<I: Iterator> Pipeline<Items<I>> {
    /// Makes a pipeline from anything that can be iterated over. The iterator may block, and it may panic.
    ///
    /// A call of the iterator's `next` cannot be interrupted. If it blocks, [`run`](Self::run) does not return
    /// before that call has, even if the run is [cancelled](Self::cancel_on) or has failed, because the iterator
    /// may borrow from the caller. Where it may block for ever, use a [`Sender`](crate::pipeline::Sender), or
    /// [`results`](Self::results), which does not wait.
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
        Self { source: Items(items.into_iter()), steps: Same, config: Config::new() }
    }
}

impl<I, T, E> Pipeline<Tried<I>>
where
    I: Iterator<Item = Result<T, E>>,
    E: Into<BoxError>,
{
    /// Makes a pipeline from an iterator over results. The first error ends the run. If the pipeline is
    /// [ordered](Self::ordered), the items before it are processed and delivered first. If not, some of them may be
    /// dropped.
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
        Self { source: Tried(items.into_iter()), steps: Same, config: Config::new() }
    }
}
