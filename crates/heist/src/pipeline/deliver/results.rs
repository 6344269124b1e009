//! The iterator over the results of a run.

use std::fmt;
use std::iter::FusedIterator;
use std::task::{Poll, ready};

use super::delivery::Delivery;
use super::outbox::BatchEntry;
use crate::api::pool::Pool;
use crate::panic::contain;
use crate::pipeline::Pipeline;
use crate::pipeline::control::Control;
use crate::pipeline::error::PipelineError;
use crate::pipeline::report::Report;
use crate::pipeline::run::{Run, start};
use crate::pipeline::source::Source;
use crate::pipeline::steps::Steps;
use crate::sync::{Arc, unsize_arc};
use crate::worker::current::{AnyPool, with_worker};

/// An iterator over the results of a pipeline. If an error ends the run, it is the last item.
///
/// It is made by [`Pipeline::results`], and by iterating over a [`Pipeline`]. Dropping it ends the run. With the feature `futures`,
/// `into_stream` makes a `Stream` of it.
///
/// ```
/// use heist::pipeline::Pipeline;
///
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let mut halves = Pipeline::new([2, 4, 5]).batch(1).ordered().try_map(|n| match n % 2 {
///     0 => Ok(n / 2),
///     _ => Err("odd"),
/// }).results(&pool)?;
/// assert_eq!(halves.next().unwrap()?, 1);
/// assert_eq!(halves.next().unwrap()?, 2);
/// assert_eq!(halves.next().unwrap().unwrap_err().batch(), Some(2));
/// assert!(halves.next().is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Results<R>(Inner<R>);

enum Inner<R> {
    Running(Box<Running<R>>),
    /// The pipeline could not be started, and this error has not been returned yet.
    Failed(Option<PipelineError>),
}

struct Running<R> {
    delivery: Delivery<R>,
    /// The batch that is being delivered, and how many of its results are left.
    batch: Option<(BatchEntry, usize)>,
    control: Arc<Control>,
    run: Arc<dyn Reports>,
    over: bool,
}

/// A run with any types of items and results.
trait Reports: Send + Sync {
    fn report(&self) -> Report;
}

impl<S, G> Reports for Run<S, G>
where
    S: Source + Send,
    S::Item: Send,
    G: Steps<S::Item>,
    G::Out: Send,
{
    fn report(&self) -> Report {
        self.report()
    }
}

impl<R: Send + 'static> Results<R> {
    /// Starts a run on this pool. The settings of the pipeline have been checked.
    pub(crate) fn start<S, G>(pipeline: Pipeline<S, G>, pool: Arc<dyn AnyPool>) -> Self
    where
        S: Source + Send + 'static,
        S::Item: Send + 'static,
        G: Steps<S::Item, Out = R> + 'static,
    {
        pool.must_be_here();
        let (run, _) = Run::new(pipeline, pool);
        // SAFETY: the pipeline is `'static` and borrows nothing. The producer thread is detached: it ends
        // with the run, or when the source stops blocking.
        drop(unsafe { start(&run) });
        let control = Arc::clone(&run.control);
        let delivery = Delivery::new(&control, &run.outboxes, run.config.ordered, run.take_meter());
        Self(Inner::Running(Box::new(Running {
            delivery,
            batch: None,
            control,
            run: unsize_arc!(run),
            over: false,
        })))
    }

    /// Starts a run on the pool that this thread belongs to, or on the global one.
    pub(crate) fn start_here<S, G>(pipeline: Pipeline<S, G>) -> Self
    where
        S: Source + Send + 'static,
        S::Item: Send + 'static,
        G: Steps<S::Item, Out = R> + 'static,
    {
        if let Err(error) = pipeline.config.check() {
            return Self(Inner::Failed(Some(error)));
        }
        let here = with_worker(|worker| worker.owned_pool());
        Self::start(pipeline, here.unwrap_or_else(|| Pool::global().any_pool()))
    }
}

impl<R> Results<R> {
    /// Returns what the pipeline has done so far.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let mut results = Pipeline::new(0..100).batch(10).results(&pool)?;
    /// assert_eq!(results.by_ref().count(), 100);
    /// assert_eq!(results.report().batches, 10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn report(&self) -> Report {
        match &self.0 {
            Inner::Running(running) => running.report(),
            Inner::Failed(_) => Report::default(),
        }
    }
}

impl<R> Results<R> {
    /// Returns the next result. `next_batch` waits for a batch, or says that there is none yet.
    pub(super) fn advance(
        &mut self,
        next_batch: impl FnMut(&mut Delivery<R>) -> Poll<Option<BatchEntry>>,
    ) -> Poll<Option<Result<R, PipelineError>>> {
        match &mut self.0 {
            Inner::Running(running) => running.advance(next_batch),
            Inner::Failed(error) => Poll::Ready(error.take().map(Err)),
        }
    }

    /// Returns whether the last item has been returned.
    #[cfg(feature = "futures")]
    pub(super) fn is_over(&self) -> bool {
        match &self.0 {
            Inner::Running(running) => running.over,
            Inner::Failed(error) => error.is_none(),
        }
    }
}

impl<R> Iterator for Results<R> {
    type Item = Result<R, PipelineError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.advance(|delivery| Poll::Ready(delivery.next_batch())) {
            Poll::Ready(next) => next,
            Poll::Pending => unreachable!("the call has waited for the batch"),
        }
    }
}

impl<R> FusedIterator for Results<R> {}

impl<R> Running<R> {
    fn report(&self) -> Report {
        let mut report = self.run.report();
        // What was returned of a batch that is not finished.
        let of_batch = self.batch.map_or(0, |(batch, left)| batch.results - left);
        report.results += of_batch as u64;
        report
    }

    fn advance(
        &mut self,
        mut next_batch: impl FnMut(&mut Delivery<R>) -> Poll<Option<BatchEntry>>,
    ) -> Poll<Option<Result<R, PipelineError>>> {
        if self.over {
            return Poll::Ready(None);
        }
        loop {
            // A run that failed as a whole delivers nothing more, not even the rest of a batch.
            let current = self.batch.filter(|_| !self.control.discards_all());
            let Some((batch, left)) = current else {
                let Some(batch) = ready!(next_batch(&mut self.delivery)) else {
                    self.over = true;
                    let error = self.control.close();
                    self.delivery.show_end(error.is_some());
                    return Poll::Ready(error.map(|error| Err(error.with_report(self.report()))));
                };
                self.batch = Some((batch, batch.results));
                continue;
            };
            let result = (left > 0).then(|| self.delivery.next_result());
            if left > 1 {
                self.batch = Some((batch, left - 1));
            } else {
                // The delivery is reported before the last result is returned: the caller may then wait for
                // something that depends on the room that this makes.
                self.batch = None;
                self.delivery.finish_batch(batch);
                self.delivery.report_delivered();
            }
            if let Some(result) = result {
                return Poll::Ready(Some(Ok(result)));
            }
        }
    }
}

impl<R> Drop for Running<R> {
    fn drop(&mut self) {
        let error = self.control.close();
        contain(|| drop(error));
        // If the run had not ended, it ends here, before its time.
        self.delivery.show_end(true);
        // SAFETY: the run itself leaves here, once.
        unsafe { self.control.leave() };
    }
}

impl<R> fmt::Debug for Results<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Results").finish_non_exhaustive()
    }
}
