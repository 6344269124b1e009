//! A run, from its start to its end, with the sink on the thread that calls.

use std::any::Any;
use std::cell::Cell;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Pipeline;
use super::deliver::Counter;
use super::desk::Hire;
use super::error::{PipelineError, Stage};
use super::frame::Frame;
use super::plan::Distribution;
use super::report::Report;
use super::source::Source;
use super::stage::{Complaint, Steps};
use crate::api::pool::Pool;
use crate::cancel::Follower;
use crate::panic::{AbortOnUnwind, contain};
use crate::sync::{Arc, ThreadBuilder, ThreadHandle};
use crate::worker::wait;

pub(super) fn run<S, G, E>(
    pipeline: Pipeline<S, G>,
    pool: &Pool,
    mut sink: impl FnMut(G::Out) -> Result<(), E>,
) -> Result<Report, PipelineError>
where
    S: Source + Send,
    S::Item: Send,
    G: Steps<S::Item>,
    G::Out: Send,
    E: Into<Complaint>,
{
    // Others may use what is borrowed until the end of this.
    let guard = AbortOnUnwind;
    let (frame, end) = Frame::new(pipeline, pool.any_pool());
    let control = Arc::clone(&frame.control);
    // SAFETY: this function closes the run, and waits for its crew, before it returns; and it does not unwind.
    let producer = unsafe { start(&frame) };
    let failed = deliver(&frame, &mut sink);
    if let Some(error) = failed {
        control.fail(None, error);
    }
    let error = control.close();
    // SAFETY: for the run.
    unsafe { control.leave() };
    wait::wait(&end, control.pool().id());
    if let Some(producer) = producer {
        // It has left the crew, and ends.
        let _ = producer.join();
    }
    let report = frame.report();
    contain(|| drop(frame));
    mem::forget(guard);
    // If this panics, so does the caller, and nothing is lost.
    drop(sink);
    match error {
        None => Ok(report),
        Some(error) => Err(error),
    }
}

/// Sets off the workers, and the thread of the source if it is to have one.
///
/// # Safety
///
/// What the pipeline borrows is there until the run is closed and its crew has ended.
pub(super) unsafe fn start<S, G>(frame: &Arc<Frame<S, G>>) -> Option<ThreadHandle<()>>
where
    S: Source + Send,
    S::Item: Send,
    G: Steps<S::Item>,
    G::Out: Send,
{
    let control = &frame.control;
    let hirer: Arc<dyn Hire + '_> = Arc::clone(frame) as _;
    // SAFETY: only the lifetime changes. It is dropped when the run is closed, at the latest with the last of the crew.
    let hirer = unsafe { mem::transmute::<Arc<dyn Hire + '_>, Arc<dyn Hire>>(hirer) };
    control.open(hirer);
    if let Some(token) = &frame.plan.token {
        let follower: Arc<dyn Follower> = Arc::clone(control) as _;
        token.follow(&follower);
    }
    control.pool().follow(&frame.stop);
    if frame.plan.distribution == Distribution::Pull {
        control.begin();
        return None;
    }
    let (shared, crew) = (Arc::clone(frame), Arc::clone(control));
    let work: Box<dyn FnOnce() + Send + '_> = Box::new(move || {
        shared.produce();
        contain(|| drop(shared));
        // SAFETY: it joined below.
        unsafe { crew.leave() };
    });
    // SAFETY: only the lifetime changes, and the thread leaves the crew after its last use of what is borrowed.
    let work =
        unsafe { mem::transmute::<Box<dyn FnOnce() + Send + '_>, Box<dyn FnOnce() + Send>>(work) };
    control.join();
    match ThreadBuilder::new().name("heist-source".into()).spawn(work) {
        Ok(thread) => Some(thread),
        Err(source) => {
            control.fail(None, PipelineError::Thread { source });
            // SAFETY: in place of the thread.
            unsafe { control.leave() };
            None
        }
    }
}

/// Gives the results to the sink, until there are no more. An error if that was the sink's fault.
fn deliver<S, G, E>(
    frame: &Frame<S, G>,
    mut sink: impl FnMut(G::Out) -> Result<(), E>,
) -> Option<PipelineError>
where
    S: Source,
    G: Steps<S::Item>,
    E: Into<Complaint>,
{
    let mut counter = Counter::new(&frame.control, &frame.mail, frame.plan.ordered);
    let batch = Cell::new(0);
    let delivered = catch_unwind(AssertUnwindSafe(|| {
        while let Some(piece) = counter.next_batch() {
            batch.set(piece.number);
            for _ in 0..piece.results {
                sink(counter.result()).map_err(Into::into)?;
            }
            counter.delivered(piece);
        }
        Ok(())
    }));
    let error = |batch, outcome: Result<Complaint, Box<dyn Any + Send>>| match outcome {
        Ok(complaint) => PipelineError::failed(Stage::Sink, batch, complaint),
        Err(payload) => PipelineError::panicked(Stage::Sink, batch, payload),
    };
    contain(|| drop(counter));
    match delivered {
        Ok(Ok(())) => None,
        Ok(Err(complaint)) => Some(error(batch.get(), Ok(complaint))),
        Err(payload) => Some(error(batch.get(), Err(payload))),
    }
}
