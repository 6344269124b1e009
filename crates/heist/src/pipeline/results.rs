//! Results that are pulled when they are wanted.

use std::fmt;
use std::iter::FusedIterator;

use super::Pipeline;
use super::control::Control;
use super::deliver::Counter;
use super::error::PipelineError;
use super::frame::Frame;
use super::mail::Piece;
use super::report::Report;
use super::run::start;
use super::source::Source;
use super::stage::Steps;
use crate::api::pool::Pool;
use crate::panic::contain;
use crate::sync::Arc;
use crate::worker::current::{AnyPool, with_worker};

/// The results of a pipeline, or the error that ended it, as the last item.
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
pub struct Results<R>(State<R>);

enum State<R> {
    Running(Box<Running<R>>),
    /// It could not even start.
    Failed(Option<PipelineError>),
}

struct Running<R> {
    counter: Counter<R>,
    /// The batch that is being handed out, and what is left of it.
    piece: Option<(Piece, usize)>,
    control: Arc<Control>,
    frame: Arc<dyn Reports>,
    over: bool,
}

/// A frame, whatever goes through it.
trait Reports: Send + Sync {
    fn report(&self) -> Report;
}

impl<S, G> Reports for Frame<S, G>
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
    pub(super) fn start<S, G>(pipeline: Pipeline<S, G>, pool: Arc<dyn AnyPool>) -> Self
    where
        S: Source + Send + 'static,
        S::Item: Send + 'static,
        G: Steps<S::Item, Out = R> + 'static,
    {
        let (frame, _) = Frame::new(pipeline, pool);
        // SAFETY: it borrows nothing. The thread of the source ends with the run, or when the source lets it.
        drop(unsafe { start(&frame) });
        let control = Arc::clone(&frame.control);
        let counter = Counter::new(&control, &frame.mail, frame.plan.ordered);
        Self(State::Running(Box::new(Running {
            counter,
            piece: None,
            control,
            frame,
            over: false,
        })))
    }

    /// On the pool of this thread.
    pub(super) fn start_here<S, G>(pipeline: Pipeline<S, G>) -> Self
    where
        S: Source + Send + 'static,
        S::Item: Send + 'static,
        G: Steps<S::Item, Out = R> + 'static,
    {
        if let Err(error) = pipeline.plan.check() {
            return Self(State::Failed(Some(error)));
        }
        let here = with_worker(|worker| worker.owned_pool());
        Self::start(pipeline, here.unwrap_or_else(|| Pool::global().any_pool()))
    }
}

impl<R> Results<R> {
    /// What the pipeline has done so far.
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
            State::Running(running) => running.frame.report(),
            State::Failed(_) => Report::default(),
        }
    }
}

impl<R> Iterator for Results<R> {
    type Item = Result<R, PipelineError>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            State::Running(running) => running.next(),
            State::Failed(error) => error.take().map(Err),
        }
    }
}

impl<R> FusedIterator for Results<R> {}

impl<R> Running<R> {
    fn next(&mut self) -> Option<Result<R, PipelineError>> {
        if self.over {
            return None;
        }
        loop {
            let Some((piece, left)) = self.piece.take() else {
                let Some(piece) = self.counter.next_batch() else {
                    self.over = true;
                    return self.control.close().map(Err);
                };
                self.piece = Some((piece, piece.results));
                continue;
            };
            let result = (left > 0).then(|| self.counter.result());
            if left > 1 {
                self.piece = Some((piece, left - 1));
            } else {
                // Before it is given out: whoever has it may wait for what there is room for now.
                self.counter.delivered(piece);
                self.counter.flush();
            }
            if let Some(result) = result {
                return Some(Ok(result));
            }
        }
    }
}

impl<R> Drop for Running<R> {
    fn drop(&mut self) {
        let error = self.control.close();
        contain(|| drop(error));
        // SAFETY: for the run.
        unsafe { self.control.leave() };
    }
}

impl<R> fmt::Debug for Results<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Results").finish_non_exhaustive()
    }
}
