//! The results of a run as a [`Stream`], for tasks of any executor.
//!
//! A task that finds no results does what a thread does that falls asleep (steps C1 to C5 of `../README.md`), without a doze: its
//! waker is what the promise wakes.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::stream::{FusedStream, Stream};

use super::delivery::Delivery;
use super::outbox::BatchEntry;
use super::results::Results;
use crate::api::handle::JoinHandle;
use crate::pipeline::control::SleepKind;
use crate::pipeline::error::PipelineError;
use crate::pipeline::report::Report;
use crate::worker::wait;

/// The promise that wakes the task which polls for results.
pub(super) type Sleep = JoinHandle<Vec<()>>;

impl<R> Delivery<R> {
    /// Returns the next batch, as [`next_batch`](Self::next_batch) does, or has the task woken when there is one.
    pub(super) fn poll_batch(&mut self, context: &mut Context<'_>) -> Poll<Option<BatchEntry>> {
        loop {
            if self.control.discards_all() {
                return Poll::Ready(None);
            }
            if let Some(batch) = self.ready_batch() {
                return Poll::Ready(Some(batch));
            }
            if self.collect() {
                continue;
            }
            if self.sleep.is_none() {
                // C1 to C3.
                let delivered = std::mem::take(&mut self.delivered);
                let sleeps = self.control.consumer_sleeps(&delivered, self.next, SleepKind::Deep);
                let Some(handle) = sleeps else { return Poll::Ready(None) };
                self.sleep = Some(JoinHandle::new(handle, wait::NO_POOL));
                // C4.
                if self.collect() {
                    self.end_sleep();
                    continue;
                }
            }
            if let Some(sleep) = &mut self.sleep {
                // The promise may be fulfilled or dropped.
                let _ = ready!(Pin::new(sleep).poll(context));
            }
            self.end_sleep();
        }
    }

    /// Takes back what wakes the task (C5).
    pub(super) fn end_sleep(&mut self) {
        // The handle is dropped first: otherwise `consumer_woke` would wake the task itself.
        if self.sleep.take().is_some() {
            self.control.consumer_woke();
        }
    }
}

/// The results of a pipeline as a [`Stream`], with the feature `futures`. It works in any executor, and keeps no thread waiting.
///
/// It is made by [`Results::into_stream`]. If an error ends the run, it is the last item. Dropping the stream ends the run.
///
/// ```
/// use heist::pipeline::Pipeline;
/// use smol::stream::StreamExt;
///
/// // A task that sends thumbnails to a client as they become ready, while the pool makes them.
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let pictures = (0..20).map(|n| vec![n as u8; 4096]);
/// let thumbnails = Pipeline::new(pictures).batch(1).map(|picture| picture[..64].to_vec()).ordered();
/// let mut stream = thumbnails.results(&pool)?.into_stream();
/// let mut sent = 0;
/// smol::block_on(async {
///     while let Some(thumbnail) = stream.try_next().await? {
///         assert_eq!(thumbnail, [sent; 64]);
///         sent += 1;
///     }
///     Ok::<_, heist::pipeline::PipelineError>(())
/// })?;
/// assert_eq!(sent, 20);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "the results are lost unless it is polled"]
pub struct ResultStream<R>(Results<R>);

impl<R> ResultStream<R> {
    /// Returns the iterator over the results that have not been taken.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let stream = Pipeline::new(0..100).results(&pool)?.into_stream();
    /// assert_eq!(stream.into_results().count(), 100);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn into_results(self) -> Results<R> {
        self.0
    }

    /// Returns what the pipeline has done so far.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    /// use smol::stream::StreamExt;
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let mut stream = Pipeline::new(0..100).batch(10).results(&pool)?.into_stream();
    /// smol::block_on((&mut stream).count());
    /// assert_eq!(stream.report().batches, 10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn report(&self) -> Report {
        self.0.report()
    }
}

impl<R> Results<R> {
    /// Returns the results as a stream, with the feature `futures`.
    ///
    /// It is a type of its own, because the methods of iterators and of streams have the same names.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    /// use smol::stream::StreamExt;
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// let squares = Pipeline::new(1..=4_u32).map(|n| n * n).results(&pool)?;
    /// let sum = runtime.block_on(squares.into_stream().try_fold(0, |sum, n| Ok(sum + n)))?;
    /// assert_eq!(sum, 30);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn into_stream(self) -> ResultStream<R> {
        ResultStream(self)
    }
}

impl<R> Stream for ResultStream<R> {
    type Item = Result<R, PipelineError>;

    fn poll_next(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<R, PipelineError>>> {
        self.get_mut().0.advance(|delivery| delivery.poll_batch(context))
    }
}

impl<R> FusedStream for ResultStream<R> {
    fn is_terminated(&self) -> bool {
        self.0.is_over()
    }
}

/// No result is pinned.
impl<R> Unpin for ResultStream<R> {}
