//! Runs whose results are passed to an async sink: [`Pipeline::run_async`].

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

use super::results::Results;
use super::tee::Outcome;
use crate::api::pool::Pool;
use crate::pipeline::Pipeline;
use crate::pipeline::error::{At, PipelineError, Stage};
use crate::pipeline::report::Report;
use crate::pipeline::source::Source;
use crate::pipeline::steps::{BoxError, Steps};

/// Calls the sink, and waits for the future that it returns. Returns the payload if one of them panics.
async fn call<R, F, O>(sink: &mut F, result: R) -> Result<O, Box<dyn Any + Send>>
where
    F: AsyncFnMut(R) -> O,
{
    let mut future = pin!(catch_unwind(AssertUnwindSafe(move || sink(result)))?);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(polled) => polled.map(Ok),
        Err(payload) => Poll::Ready(Err(payload)),
    })
    .await
}

/// Passes all results to the sink, one after the other. `is_indexed` says whether there is one result for each item.
async fn deliver<R, F, O>(
    mut results: Results<R>,
    mut sink: F,
    is_indexed: bool,
) -> Result<Report, PipelineError>
where
    F: AsyncFnMut(R) -> O,
    O: Outcome,
{
    // The number of the current batch and its first item, and how many of its results the sink has taken.
    let (mut at, mut offset) = ((0, 0), 0);
    loop {
        let next = poll_fn(|context| {
            results.advance(|delivery| {
                let next = delivery.poll_batch(context);
                if let Poll::Ready(Some(batch)) = &next {
                    (at, offset) = ((batch.number, batch.first), 0);
                }
                next
            })
        });
        let Some(result) = next.await else { return Ok(results.report()) };
        let error = match call(&mut sink, result?).await.map(O::into_result) {
            Ok(Ok(())) => {
                offset += 1;
                continue;
            }
            ended => {
                let (batch, first) = at;
                let at = At { batch, item: is_indexed.then_some(first + offset) };
                match ended {
                    Ok(Err(error)) => PipelineError::failed(Stage::Sink, at, error),
                    Err(payload) => PipelineError::panicked(Stage::Sink, at, payload),
                    Ok(Ok(())) => continue,
                }
            }
        };
        let mut report = results.report();
        // The sink has not taken the last one.
        report.results -= 1;
        return Err(error.with_report(report));
    }
}

impl<S, G> Pipeline<S, G>
where
    S: Source + Send + 'static,
    S::Item: Send + 'static,
    G: Steps<S::Item> + 'static,
    G::Out: Send + 'static,
{
    /// Runs the pipeline to its end, and passes each result to an async sink in the task that awaits the future. With the feature
    /// `futures`, in any executor.
    ///
    /// The run starts when this is called. The future gives the results to the sink, one after the other: it calls the sink with
    /// the next result when the last call has ended. While the sink waits, for a connection for example, no more is taken from the
    /// source than may be [in flight](Self::in_flight). (A batch is no longer in flight when the sink is called with its last result.)
    /// No thread waits for the sink, and the task waits for results without a thread.
    ///
    /// Dropping the future ends the run, without waiting for it, as with [`results`](Self::results). A panic of the sink is a
    /// [`PipelineError`], as with [`run`](Self::run).
    ///
    /// What implements the trait `Sink` of the crate futures can be used with [`into_stream`](crate::pipeline::Results::into_stream)
    /// and `forward`.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// // The pool works in the background, and the connection is used by the task alone.
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// let mut connection: Vec<u8> = Vec::new();
    /// let report = runtime.block_on(async {
    ///     use smol::io::AsyncWriteExt;
    ///     Pipeline::new(0..100)
    ///         .map(|n| format!("{n}\n"))
    ///         .ordered()
    ///         .try_run_async(&pool, async |line: String| connection.write_all(line.as_bytes()).await)
    ///         .await
    /// })?;
    /// assert_eq!(report.results, 100);
    /// assert!(connection.starts_with(b"0\n1\n2\n"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The future returns a [`PipelineError`] if the settings are invalid, if the source, a stage or the sink fails or panics, or if
    /// the run is cancelled.
    pub fn run_async<F>(
        self,
        pool: &Pool,
        sink: F,
    ) -> impl Future<Output = Result<Report, PipelineError>> + use<S, G, F>
    where
        F: AsyncFnMut(G::Out),
    {
        let results = self.results(pool);
        async move { deliver(results?, sink, G::ONE_TO_ONE).await }
    }

    /// Like [`run_async`](Self::run_async), with a sink that may fail. Its error ends the run.
    ///
    /// ```
    /// use heist::pipeline::{Pipeline, Stage};
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let store = async |n| if n == 7 { Err("the database is gone") } else { Ok(()) };
    /// let run = Pipeline::new(0..10).batch(2).ordered().try_run_async(&pool, store);
    /// let error = smol::block_on(run).unwrap_err();
    /// assert_eq!((error.stage(), error.item()), (Some(Stage::Sink), Some(7)));
    /// assert_eq!(error.report().unwrap().results, 7);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As with [`run_async`](Self::run_async).
    pub fn try_run_async<F, E>(
        self,
        pool: &Pool,
        sink: F,
    ) -> impl Future<Output = Result<Report, PipelineError>> + use<S, G, F, E>
    where
        F: AsyncFnMut(G::Out) -> Result<(), E>,
        E: Into<BoxError>,
    {
        let results = self.results(pool);
        async move { deliver(results?, sink, G::ONE_TO_ONE).await }
    }
}
