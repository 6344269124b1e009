//! Several sources as one: [`Pipeline::merge`].

use super::{Filled, NoReader, Source};
use crate::pipeline::Pipeline;
use crate::pipeline::config::Config;
use crate::pipeline::control::Control;
use crate::pipeline::sealed::Sealed;
use crate::pipeline::steps::Same;
use crate::sync::Arc;

/// Several sources whose items are taken in turn. See [`Pipeline::merge`].
///
/// ```
/// use heist::pipeline::{Items, Merge, Pipeline};
///
/// type Shards = Merge<Items<std::vec::IntoIter<u64>>>;
///
/// fn all_shards(shards: Vec<Vec<u64>>) -> Pipeline<Shards> {
///     Pipeline::merge_all(shards.into_iter().map(Pipeline::new))
/// }
///
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let report = all_shards(vec![vec![1, 2], vec![], vec![3]]).run(&pool, |_| ())?;
/// assert_eq!(report.items, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Merge<S> {
    /// The sources that have not ended.
    sources: Vec<S>,
    /// The one whose turn it is.
    at: usize,
    /// How many items it yields before it is the turn of the next one. Zero if its turn has not begun.
    left: usize,
}

impl<S: Source> Merge<S> {
    fn new(sources: Vec<S>) -> Self {
        Self { sources, at: 0, left: 0 }
    }

    pub(super) fn into_sources(self) -> Vec<S> {
        self.sources
    }

    fn end_turn(&mut self) {
        self.left = 0;
        self.at = if self.at + 1 < self.sources.len() { self.at + 1 } else { 0 };
    }

    /// Drops the source whose turn it is, because it has ended.
    fn remove(&mut self) {
        self.left = 0;
        self.sources.remove(self.at).drop_each();
        if self.at == self.sources.len() {
            self.at = 0;
        }
    }
}

impl<S> Sealed for Merge<S> {}

impl<S: Source> Source for Merge<S> {
    type Item = S::Item;
    type Handle = Vec<S::Handle>;
    type Reader = NoReader;

    fn fill(&mut self, batch: &mut Vec<S::Item>, most: usize, stop: &impl Fn() -> bool) -> Filled {
        let full = batch.len() + most;
        // How many sources have said, one after the other, that they have no items.
        let mut pending = 0;
        while batch.len() < full {
            let alone = self.sources.len() == 1;
            let Some(source) = self.sources.get_mut(self.at) else { return Filled::End };
            if self.left == 0 {
                // A source that is several ones itself yields an item of each.
                self.left = source.parts();
            }
            let (before, room) = (batch.len(), full - batch.len());
            let filled = source.fill(batch, if alone { room } else { room.min(self.left) }, stop);
            let added = batch.len() - before;
            self.left = self.left.saturating_sub(added);
            if added > 0 {
                pending = 0;
            }
            match filled {
                // It was to stop.
                Filled::More if added == 0 => return Filled::More,
                Filled::More if self.left == 0 => self.end_turn(),
                Filled::More => {}
                Filled::End => self.remove(),
                Filled::Failed(error) => return Filled::Failed(error),
                Filled::Pending => {
                    pending += 1;
                    self.end_turn();
                }
            }
            // Each of them will announce new items.
            if pending > 0 && pending >= self.sources.len() {
                return Filled::Pending;
            }
        }
        Filled::More
    }

    fn size(&self) -> Option<u64> {
        self.sources.iter().try_fold(0_u64, |sum, source| sum.checked_add(source.size()?))
    }

    fn set_batch(&mut self, items: usize) {
        self.sources.iter_mut().for_each(|source| source.set_batch(items));
    }

    fn parts(&self) -> usize {
        self.sources.iter().map(Source::parts).sum()
    }

    fn attach(&mut self, control: &Arc<Control>) -> Self::Handle {
        self.sources.iter_mut().map(|source| source.attach(control)).collect()
    }

    fn close(handles: &Self::Handle) {
        handles.iter().for_each(S::close);
    }

    fn refuse(handles: &Self::Handle) {
        handles.iter().for_each(S::refuse);
    }

    fn drop_each(self) {
        self.sources.into_iter().for_each(S::drop_each);
    }
}

/// One of two sources. See [`Pipeline::merge`].
///
/// ```
/// use heist::pipeline::{Either, Feed, Items, Merge, Pipeline};
///
/// /// Old jobs, and new ones.
/// type Jobs = Merge<Either<Items<std::vec::IntoIter<String>>, Feed<String>>>;
///
/// fn jobs(old: Vec<String>, new: Pipeline<Feed<String>>) -> Pipeline<Jobs> {
///     Pipeline::new(old).merge(new)
/// }
///
/// let (sender, new) = Pipeline::fed(std::num::NonZero::new(10).unwrap());
/// sender.send("new".to_owned())?;
/// drop(sender);
/// let pool = heist::Pool::builder().workers(2).build()?;
/// assert_eq!(jobs(vec!["old".to_owned()], new).run(&pool, |_| ())?.items, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub enum Either<A, B> {
    /// The first one.
    Left(A),
    /// The second one.
    Right(B),
}

/// Calls the same method of either.
macro_rules! either {
    ($either:expr, $source:ident => $call:expr) => {
        match $either {
            Either::Left($source) => $call,
            Either::Right($source) => $call,
        }
    };
}

impl<A, B> Sealed for Either<A, B> {}

impl<A, B> Source for Either<A, B>
where
    A: Source,
    B: Source<Item = A::Item>,
{
    type Item = A::Item;
    type Handle = Either<A::Handle, B::Handle>;
    type Reader = NoReader;

    fn fill(&mut self, batch: &mut Vec<A::Item>, most: usize, stop: &impl Fn() -> bool) -> Filled {
        either!(self, source => source.fill(batch, most, stop))
    }

    fn size(&self) -> Option<u64> {
        either!(self, source => source.size())
    }

    fn set_batch(&mut self, items: usize) {
        either!(self, source => source.set_batch(items));
    }

    fn parts(&self) -> usize {
        either!(self, source => source.parts())
    }

    fn attach(&mut self, control: &Arc<Control>) -> Self::Handle {
        match self {
            Self::Left(source) => Either::Left(source.attach(control)),
            Self::Right(source) => Either::Right(source.attach(control)),
        }
    }

    fn close(handle: &Self::Handle) {
        match handle {
            Either::Left(handle) => A::close(handle),
            Either::Right(handle) => B::close(handle),
        }
    }

    fn refuse(handle: &Self::Handle) {
        match handle {
            Either::Left(handle) => A::refuse(handle),
            Either::Right(handle) => B::refuse(handle),
        }
    }

    fn drop_each(self) {
        either!(self, source => source.drop_each());
    }
}

impl<S: Source, G> Pipeline<S, G> {
    /// Also takes the items of another pipeline, in turn: one of this source, one of the other, and so on. The stages and the
    /// settings are those of this pipeline. The other one has neither, and its items are of the same type.
    ///
    /// * *Order.* The items of each source keep their order. A source that has no items at the moment, because
    ///   [senders](Pipeline::fed) have sent none, is passed over. So the order of all items is fixed if no source is fed.
    ///   [`ordered`](Self::ordered) results come in the order in which the items were taken, and indices count them in that order.
    /// * *Fairness.* If pipelines are merged one after the other, or merged ones with each other, each source has one item in a
    ///   round. (In the round in which one of them ends, another one may have two.) See [`merge_all`](Pipeline::merge_all) for many
    ///   sources.
    /// * *Bounds.* Nothing is read ahead: what is [in flight](Self::in_flight) is counted for all sources together.
    /// * *End.* A source that ends is dropped, and the run goes on with the others. It ends with the last one.
    /// * *Failure.* If one source fails or panics, the run fails, as that of any source. The other ones are dropped.
    ///
    /// A source that blocks keeps the others waiting. With [`flush_after`](Self::flush_after), each iterator or reader is read by a
    /// thread of its own instead, and items are taken in the order in which they come. (There, none can be fed: a thread that sends
    /// can have a clone of the [`Sender`](crate::pipeline::Sender).)
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// // What one access log says after the other, of two servers.
    /// let (first, second) = ("GET /\nGET /a\nGET /b\n", "POST /login\n");
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let mut requests = Vec::new();
    /// Pipeline::lines(first.as_bytes())
    ///     .merge(Pipeline::lines(second.as_bytes()))
    ///     .map(|line| line.split(' ').nth(1).map(str::to_owned))
    ///     .ordered()
    ///     .run(&pool, |path| requests.extend(path))?;
    /// assert_eq!(requests, ["/", "/login", "/a", "/b"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Two programs whose output is shown as it comes:
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use std::process::{Command, Stdio};
    /// use std::time::Duration;
    /// use heist::pipeline::Pipeline;
    ///
    /// let start = |script| Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn();
    /// let mut programs = [start("echo one")?, start("echo two")?];
    /// let [first, second] = programs.each_mut().map(|program| program.stdout.take().unwrap());
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let mut shown = Vec::new();
    /// Pipeline::lines(first)
    ///     .merge(Pipeline::lines(second))
    ///     .flush_after(Duration::from_millis(20))
    ///     .run(&pool, |line| shown.push(line))?;
    /// shown.sort();
    /// assert_eq!(shown, ["one", "two"]);
    /// # programs.iter_mut().try_for_each(|program| program.wait().map(drop))?;
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// The run fails with a [`PipelineError::Misplaced`] if the other pipeline has settings, or if this one has weights or is
    /// flushed before it is merged.
    ///
    /// [`PipelineError::Misplaced`]: crate::pipeline::PipelineError::Misplaced
    pub fn merge<T>(self, other: Pipeline<T>) -> Pipeline<Merge<Either<S, T>>, G>
    where
        T: Source<Item = S::Item>,
    {
        let Self { source, steps, mut config } = self;
        config.replace_source("merge");
        config.add_part(&other.config, "merge");
        let sources = vec![Either::Left(source), Either::Right(other.source)];
        Pipeline { source: Merge::new(sources), steps, config }
    }
}

impl<S: Source> Pipeline<Merge<S>> {
    /// Makes a pipeline of the sources of several pipelines, whose items are taken in turn: one of each. Everything else is as
    /// with [`merge`](Self::merge). Without any source, the run ends at once.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// // The parts of a table, one of each at a time.
    /// let parts = ["a;1\nb;2\n", "c;3\n", "", "d;4\ne;5\nf;6\n"];
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let mut names = Vec::new();
    /// Pipeline::merge_all(parts.map(|part| Pipeline::lines(part.as_bytes())))
    ///     .try_map(|row| row.split_once(';').map(|(name, _)| name.to_owned()).ok_or("one column"))
    ///     .ordered()
    ///     .run(&pool, |name| names.push(name))?;
    /// assert_eq!(names, ["a", "c", "d", "b", "e", "f"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn merge_all(pipelines: impl IntoIterator<Item = Pipeline<S>>) -> Self {
        let (mut sources, mut config) = (Vec::new(), Config::new());
        for pipeline in pipelines {
            config.add_part(&pipeline.config, "merge_all");
            sources.push(pipeline.source);
        }
        Self { source: Merge::new(sources), steps: Same, config }
    }
}
