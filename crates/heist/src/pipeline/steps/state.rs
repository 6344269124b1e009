//! Stages whose functions have a value of their own for each worker.

use std::convert::Infallible;

use super::{BoxError, Contained, Passed, Place, Step, Steps, Then};
use crate::panic::contain;
use crate::pipeline::Pipeline;
use crate::pipeline::sealed::Sealed;
use crate::pipeline::source::Source;

/// A stage whose function has a value for each worker. See [`Pipeline::map_init`].
///
/// ```
/// use heist::pipeline::Pipeline;
/// use heist::pipeline::steps::{MapInit, Then};
///
/// let stage: Pipeline<_, Then<_, MapInit<_, _>>> = Pipeline::new(["a", "b"]).map_init(String::new, |text, word| {
///     text.clear();
///     text.push_str(word);
///     text.to_uppercase()
/// });
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let mut all = Vec::new();
/// stage.ordered().run(&pool, |result| all.push(result))?;
/// assert_eq!(all, ["A", "B"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MapInit<N, F> {
    init: N,
    f: F,
}

impl<N, F> Sealed for MapInit<N, F> {}

impl<I, N, W, F, U> Step<I> for MapInit<N, F>
where
    N: Fn() -> W + Send + Sync,
    W: Send,
    F: Fn(&mut W, I) -> U + Send + Sync,
{
    type Out = U;
    type Made = U;
    type Error = Infallible;
    type State = Kept<W>;

    const ONE_TO_ONE: bool = true;

    #[inline(always)]
    fn call(&self, state: &mut Kept<W>, item: I, _: Place<'_>) -> Result<U, Infallible> {
        let item = Contained::hold(item);
        let value = state.0.0.get_or_insert_with(&self.init);
        Ok((self.f)(value, item.take()))
    }

    #[inline(always)]
    fn emit(made: U, _: Place<'_>, out: &mut impl FnMut(U) -> Passed) -> Passed {
        out(made)
    }

    fn drop_parts(self) {
        contain(|| drop(self.f));
        contain(|| drop(self.init));
    }
}

/// A stage whose function has a value for each worker and may fail. See [`Pipeline::try_map_init`].
///
/// ```
/// use heist::pipeline::Pipeline;
/// use heist::pipeline::steps::{TryMapInit, Then};
///
/// let stage: Pipeline<_, Then<_, TryMapInit<_, _>>> = Pipeline::new(["1", "2"]).try_map_init(Vec::new, |seen, text| {
///     seen.push(text);
///     text.parse::<u32>()
/// });
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let mut all = Vec::new();
/// stage.ordered().run(&pool, |result| all.push(result))?;
/// assert_eq!(all, [1, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TryMapInit<N, F> {
    init: N,
    f: F,
}

impl<N, F> Sealed for TryMapInit<N, F> {}

impl<I, N, W, F, U, E> Step<I> for TryMapInit<N, F>
where
    N: Fn() -> W + Send + Sync,
    W: Send,
    F: Fn(&mut W, I) -> Result<U, E> + Send + Sync,
    E: Into<BoxError>,
{
    type Out = U;
    type Made = U;
    type Error = E;
    type State = Kept<W>;

    const ONE_TO_ONE: bool = true;

    #[inline(always)]
    fn call(&self, state: &mut Kept<W>, item: I, _: Place<'_>) -> Result<U, E> {
        let item = Contained::hold(item);
        let value = state.0.0.get_or_insert_with(&self.init);
        (self.f)(value, item.take())
    }

    #[inline(always)]
    fn emit(made: U, _: Place<'_>, out: &mut impl FnMut(U) -> Passed) -> Passed {
        out(made)
    }

    fn drop_parts(self) {
        contain(|| drop(self.f));
        contain(|| drop(self.init));
    }
}

/// The value of one worker, once it has processed an item.
#[derive(Debug)]
pub struct Kept<W>(Contained<W>);

impl<W> Default for Kept<W> {
    fn default() -> Self {
        Self(Contained::default())
    }
}

impl<S: Source, G> Pipeline<S, G> {
    /// Like [`map`](Self::map), with a value that the function may change: a buffer, a connection, a cache.
    ///
    /// Each worker of the run makes its own value with `init`, when it processes its first item. The worker is not
    /// always on the same thread of the pool, but on one at a time. A call that panics may leave its value in any state, so
    /// that the worker makes a new one for its next item, if there is one: in an [ordered](Self::ordered) pipeline, the batches
    /// before the failed one are still processed.
    ///
    /// The values are dropped with the run, one by one: before [`run`](Self::run) returns, on the thread that has called it.
    /// With [`results`](Self::results), it is the last thread that has to do with the run, after the iterator was dropped. A
    /// panic in such a drop ends there.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// // Thumbnails: each worker uses one buffer for all its pictures.
    /// let pictures = (0..20).map(|n| vec![n as u8; 64 * 64]);
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let thumbnail = |row: &mut Vec<u32>, picture: Vec<u8>| {
    ///     row.clear();
    ///     row.extend(picture.chunks(64).map(|line| line.iter().map(|&p| u32::from(p)).sum::<u32>() / 64));
    ///     row.iter().step_by(8).map(|&p| p as u8).collect::<Vec<u8>>()
    /// };
    /// let mut thumbnails = Vec::new();
    /// Pipeline::new(pictures)
    ///     .batch(1)
    ///     .map_init(|| Vec::with_capacity(64), thumbnail)
    ///     .ordered()
    ///     .run(&pool, |small| thumbnails.push(small))?;
    /// assert_eq!((thumbnails.len(), &thumbnails[7]), (20, &vec![7; 8]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn map_init<N, W, F, U>(self, init: N, f: F) -> Pipeline<S, Then<G, MapInit<N, F>>>
    where
        G: Steps<S::Item>,
        N: Fn() -> W + Send + Sync,
        W: Send,
        F: Fn(&mut W, G::Out) -> U + Send + Sync,
    {
        self.then(MapInit { init, f })
    }

    /// Like [`map_init`](Self::map_init), with a function that may fail. An error ends the run, unless
    /// [`on_error`](Self::on_error) follows. The value is kept after an error.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// // One scratch buffer for each worker, in which records are decoded.
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let decode = |scratch: &mut String, record: &[u8]| {
    ///     scratch.clear();
    ///     scratch.push_str(std::str::from_utf8(record)?);
    ///     Ok::<usize, std::str::Utf8Error>(scratch.chars().count())
    /// };
    /// let records = [&b"caf\xc3\xa9"[..], b"tea", b"\xff"];
    /// let error = Pipeline::new(records).try_map_init(String::new, decode).run(&pool, |_| ()).unwrap_err();
    /// assert_eq!(error.item(), Some(2));
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn try_map_init<N, W, F, U, E>(
        self,
        init: N,
        f: F,
    ) -> Pipeline<S, Then<G, TryMapInit<N, F>>>
    where
        G: Steps<S::Item>,
        N: Fn() -> W + Send + Sync,
        W: Send,
        F: Fn(&mut W, G::Out) -> Result<U, E> + Send + Sync,
        E: Into<BoxError>,
    {
        self.then(TryMapInit { init, f })
    }
}
