//! A second sink beside the one of the run: [`Pipeline::tee`].

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::api::pool::Pool;
use crate::panic::{abandon, contain};
use crate::pipeline::Pipeline;
use crate::pipeline::error::PipelineError;
use crate::pipeline::report::Report;
use crate::pipeline::sealed::Sealed;
use crate::pipeline::source::Source;
use crate::pipeline::steps::{BoxError, Steps};

/// What a sink returns: nothing, or a result.
#[doc(hidden)]
pub trait Outcome: Sealed {
    fn into_result(self) -> Result<(), BoxError>;
}

impl Sealed for () {}

impl Outcome for () {
    fn into_result(self) -> Result<(), BoxError> {
        Ok(())
    }
}

impl<E> Sealed for Result<(), E> {}

impl<E: Into<BoxError>> Outcome for Result<(), E> {
    fn into_result(self) -> Result<(), BoxError> {
        self.map_err(Into::into)
    }
}

/// A pipeline with a second sink. See [`Pipeline::tee`].
///
/// ```
/// use heist::pipeline::{Items, Pipeline, Tee};
///
/// type Numbers = Items<std::ops::Range<u32>>;
///
/// fn logged(numbers: Pipeline<Numbers>) -> Tee<Numbers, heist::pipeline::Same, fn(&u32)> {
///     numbers.tee(|n| eprintln!("{n}"))
/// }
///
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let mut sum = 0;
/// logged(Pipeline::new(0..5)).run(&pool, |n| sum += n)?;
/// assert_eq!(sum, 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a pipeline does nothing until it is run"]
pub struct Tee<S, G, F> {
    pipeline: Pipeline<S, G>,
    second: F,
}

impl<S, G, F> fmt::Debug for Tee<S, G, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tee").finish_non_exhaustive()
    }
}

impl<S: Source, G> Pipeline<S, G> {
    /// Also passes each result to a second sink, by reference, before the sink of the run gets it.
    ///
    /// It is called last, before [`run`](Tee::run): all stages and settings come before it.
    ///
    /// * *Order.* The second sink gets what the sink of the run gets, in the same order, each result once. It runs on the same
    ///   thread, and so neither is called while the other one is.
    /// * *Back-pressure.* A second sink that takes its time holds up the first one, and with it the whole run: no more is taken
    ///   from the source than may be [in flight](Self::in_flight). To let it fall behind, have it send clones to another pipeline,
    ///   whose feed has room for as many as it may be behind (see below).
    /// * *Failure.* If it panics, or fails (see [`try_tee`](Self::try_tee)), the run ends with an error of
    ///   [`Stage::Sink`](crate::pipeline::Stage::Sink) at this item, as with a failure of the sink of the run, which does not get
    ///   the result. If the sink of the run fails, the second one has had the result.
    ///
    /// To see items between two stages, in no order, use [`inspect`](Self::inspect). The results of
    /// [an iterator](Self::results) have [`Iterator::inspect`].
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// // Thumbnails are written to a file, and their sizes are added up for the bill.
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let thumbnails = Pipeline::new(0..100_u8).map(|n| vec![n; 16]).ordered();
    /// let (mut bytes, mut file) = (0, Vec::new());
    /// thumbnails
    ///     .tee(|thumbnail| bytes += thumbnail.len())
    ///     .try_run(&pool, |thumbnail| std::io::Write::write_all(&mut file, &thumbnail))?;
    /// assert_eq!((bytes, file.len()), (1600, 1600));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tee<F>(self, second: F) -> Tee<S, G, F>
    where
        G: Steps<S::Item>,
        F: FnMut(&G::Out),
    {
        Tee { pipeline: self, second }
    }

    /// Like [`tee`](Self::tee), with a sink that may fail. Its error ends the run.
    ///
    /// ```
    /// use std::num::NonZero;
    /// use heist::pipeline::Pipeline;
    ///
    /// // An audit that may be a hundred records behind. If it ends early, so does the run.
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let (sender, records) = Pipeline::fed(NonZero::new(100).unwrap());
    /// let (mut stored, mut audited) = (Vec::new(), Vec::new());
    /// std::thread::scope(|scope| {
    ///     let audit = scope.spawn(|| records.ordered().run(&pool, |record: String| audited.push(record)));
    ///     Pipeline::new(0..1000)
    ///         .map(|n| format!("payment {n}"))
    ///         .ordered()
    ///         .try_tee(move |record| sender.send(record.clone()))
    ///         .run(&pool, |record| stored.push(record))?;
    ///     audit.join().unwrap()
    /// })?;
    /// assert!(stored == audited && stored.len() == 1000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_tee<F, E>(self, second: F) -> Tee<S, G, F>
    where
        G: Steps<S::Item>,
        F: FnMut(&G::Out) -> Result<(), E>,
        E: Into<BoxError>,
    {
        Tee { pipeline: self, second }
    }
}

impl<S, G, F> Tee<S, G, F>
where
    S: Source + Send,
    S::Item: Send,
    G: Steps<S::Item>,
    G::Out: Send,
{
    /// Runs the pipeline to its end, as [`Pipeline::run`] does.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let (mut count, mut sum) = (0, 0);
    /// Pipeline::new(0..100).tee(|_| count += 1).run(&pool, |n| sum += n)?;
    /// assert_eq!((count, sum), (100, 4950));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns a [`PipelineError`] as [`Pipeline::run`] does, also if the second sink fails or panics.
    pub fn run<O>(self, pool: &Pool, mut sink: impl FnMut(G::Out)) -> Result<Report, PipelineError>
    where
        F: FnMut(&G::Out) -> O,
        O: Outcome,
    {
        self.try_run(pool, move |result| {
            sink(result);
            Ok::<(), BoxError>(())
        })
    }

    /// Like [`run`](Self::run), with a sink that may fail. Its error ends the run.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let mut seen = Vec::new();
    /// let full = |n: u32| if n == 3 { Err("the disk is full") } else { Ok(()) };
    /// let error = Pipeline::new(0..10).ordered().tee(|n| seen.push(*n)).try_run(&pool, full).unwrap_err();
    /// assert_eq!(error.item(), Some(3));
    /// assert_eq!(seen, [0, 1, 2, 3]);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns a [`PipelineError`] as [`Pipeline::try_run`] does, also if the second sink fails or panics.
    pub fn try_run<O, E>(
        self,
        pool: &Pool,
        mut sink: impl FnMut(G::Out) -> Result<(), E>,
    ) -> Result<Report, PipelineError>
    where
        F: FnMut(&G::Out) -> O,
        O: Outcome,
        E: Into<BoxError>,
    {
        let Self { pipeline, mut second } = self;
        let both = |result| {
            second(&result).into_result()?;
            sink(result).map_err(Into::into)
        };
        let ended = catch_unwind(AssertUnwindSafe(|| pipeline.try_run(pool, both)));
        // The drop of each sink is the user's code. The first panic goes to the caller.
        let dropped = [
            catch_unwind(AssertUnwindSafe(|| drop(second))),
            catch_unwind(AssertUnwindSafe(|| drop(sink))),
        ];
        let (ended, mut panicked) = match ended {
            Ok(ended) => (Some(ended), None),
            Err(payload) => (None, Some(payload)),
        };
        for payload in dropped.into_iter().filter_map(Result::err) {
            match panicked {
                None => panicked = Some(payload),
                Some(_) => abandon(payload),
            }
        }
        match (ended, panicked) {
            (Some(ended), None) => ended,
            (ended, Some(payload)) => {
                contain(|| drop(ended));
                resume_unwind(payload)
            }
            (None, None) => unreachable!("the run has ended or panicked"),
        }
    }
}
