//! A run of a pipeline: what its threads share (`shared`), how it starts and ends (this file), what a worker
//! does (`worker_task`).

mod shared;
mod worker_task;

use std::cell::Cell;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::Pipeline;
use super::control::{Control, TaskFactory};
use super::deliver::Delivery;
use super::error::{At, PipelineError, Stage};
use super::progress::Meter;
use super::report::Report;
use super::source::{Reader, Source};
pub(super) use super::steps::{BoxError, Steps};
use crate::api::pool::Pool;
use crate::cancel::Follower;
use crate::panic::{AbortOnUnwind, contain};
use crate::sync::{Arc, ThreadBuilder, ThreadHandle, unsize_arc};
use crate::worker::wait;
pub(super) use shared::{Run, WorkerState};

/// Runs a pipeline to its end, with the calling thread as the consumer, and passes each result to the sink.
pub(super) fn run_to_end<S, G, E>(
    pipeline: Pipeline<S, G>,
    pool: &Pool,
    mut sink: impl FnMut(G::Out) -> Result<(), E>,
) -> Result<Report, PipelineError>
where
    S: Source + Send,
    S::Item: Send,
    G: Steps<S::Item>,
    G::Out: Send,
    E: Into<BoxError>,
{
    pool.must_be_here();
    // Other threads may use what the pipeline borrows until every participant has left. Unwinding before that
    // would free it too early.
    let guard = AbortOnUnwind;
    let (run, all_left) = Run::new(pipeline, pool.any_pool());
    let control = Arc::clone(&run.control);
    // SAFETY: this function closes the run and waits until every participant has left before it returns, and
    // it does not unwind before.
    let threads = unsafe { start(&run) };
    let (failed, meter) = deliver(&run, &mut sink);
    if let Some(error) = failed {
        control.fail(None, error);
    }
    let error = control.close();
    if let Some(mut meter) = meter {
        meter.finish(error.is_some());
    }
    // SAFETY: the run itself leaves here, once.
    unsafe { control.leave() };
    wait::wait(&all_left, control.pool().id());
    for thread in threads.into_iter().flatten() {
        // The thread has left the participants, and ends without using the run again.
        let _ = thread.join();
    }
    let report = run.report();
    contain(|| drop(run));
    mem::forget(guard);
    // If this panics, the panic goes to the caller, and nothing is lost but the error, whose drop may panic as
    // well.
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(sink))) {
        contain(|| drop(error));
        resume_unwind(payload);
    }
    match error {
        None => Ok(report),
        Some(error) => Err(error.with_report(report)),
    }
}

/// Starts the workers, or the producer thread if the distribution has one, and the threads that read the source if it has any.
/// Returns the handles of these threads.
///
/// # Safety
///
/// What the pipeline borrows must outlive the run: until it is closed and every participant has left.
pub(super) unsafe fn start<S, G>(run: &Arc<Run<S, G>>) -> Vec<Option<ThreadHandle<()>>>
where
    S: Source + Send,
    S::Item: Send,
    G: Steps<S::Item>,
    G::Out: Send,
{
    let control = &run.control;
    let factory: Arc<dyn TaskFactory + '_> = unsize_arc!(Arc::clone(run));
    // SAFETY: only the lifetime changes. The reference is dropped when the run is closed, or with the last
    // participant at the latest, and the caller guarantees that what it borrows exists until then.
    let factory =
        unsafe { mem::transmute::<Arc<dyn TaskFactory + '_>, Arc<dyn TaskFactory>>(factory) };
    control.open(factory);
    if let Some(token) = &run.config.token {
        let follower: Arc<dyn Follower> = unsize_arc!(Arc::clone(control));
        token.follow(&follower);
    }
    control.pool().follow(&run.on_stop);
    let start_reader = |reader: S::Reader| {
        // SAFETY: the caller guarantees it.
        unsafe { start_thread(control, "heist-reader", Box::new(|| reader.read())) }
    };
    let mut threads: Vec<_> = run.take_readers().into_iter().map(start_reader).collect();
    if run.workers_pull() {
        control.begin();
        return threads;
    }
    let shared = Arc::clone(run);
    let produce = Box::new(move || {
        shared.produce();
        // The thread drops its reference before it leaves, as a worker task does.
        contain(|| drop(shared));
    });
    // SAFETY: the caller guarantees it.
    threads.push(unsafe { start_thread(control, "heist-source", produce) });
    threads
}

/// Starts a thread that is a participant of the run. If the system refuses it, the run fails.
///
/// # Safety
///
/// What `work` borrows must exist until every participant has left.
unsafe fn start_thread(
    control: &Arc<Control>,
    name: &str,
    work: Box<dyn FnOnce() + Send + '_>,
) -> Option<ThreadHandle<()>> {
    // SAFETY: only the lifetime changes. The thread leaves after it has run and dropped `work`, and the caller guarantees that what
    // this borrows exists until the last participant has left.
    let work =
        unsafe { mem::transmute::<Box<dyn FnOnce() + Send + '_>, Box<dyn FnOnce() + Send>>(work) };
    let participants = Arc::clone(control);
    control.enter();
    let started = ThreadBuilder::new().name(name.into()).spawn(move || {
        work();
        // SAFETY: the thread was counted by `enter` above, before it was started, and leaves once.
        unsafe { participants.leave() };
    });
    match started {
        Ok(thread) => Some(thread),
        Err(source) => {
            control.fail(None, PipelineError::Thread { source });
            // SAFETY: there is no thread that could leave. This call takes its place.
            unsafe { control.leave() };
            None
        }
    }
}

/// Passes the results to the sink until there are no more. Returns an error if the sink failed or panicked, and what shows the
/// progress.
fn deliver<S, G, E>(
    run: &Run<S, G>,
    mut sink: impl FnMut(G::Out) -> Result<(), E>,
) -> (Option<PipelineError>, Option<Box<Meter>>)
where
    S: Source,
    G: Steps<S::Item>,
    E: Into<BoxError>,
{
    let mut delivery =
        Delivery::new(&run.control, &run.outboxes, run.config.ordered, run.take_meter());
    // The current batch, and how many of its results the sink has taken.
    let (at, offset) = (Cell::new((0, 0)), Cell::new(0));
    let delivered = catch_unwind(AssertUnwindSafe(|| {
        while let Some(batch) = delivery.next_batch() {
            at.set((batch.number, batch.first));
            for result in 1..=batch.results {
                sink(delivery.next_result()).map_err(Into::into)?;
                offset.set(result as u64);
                if run.control.discards_all() {
                    return Ok(());
                }
            }
            delivery.finish_batch(batch);
            offset.set(0);
        }
        Ok(())
    }));
    delivery.count_results(offset.get());
    let meter = delivery.meter.take();
    contain(|| drop(delivery));
    let (batch, first) = at.get();
    let at = At { batch, item: G::ONE_TO_ONE.then(|| first + offset.get()) };
    let error = match delivered {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(PipelineError::failed(Stage::Sink, at, error)),
        Err(payload) => Some(PipelineError::panicked(Stage::Sink, at, payload)),
    };
    (error, meter)
}
