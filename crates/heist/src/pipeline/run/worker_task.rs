//! The worker task: a task of the pool that finds batches of one run, processes them and stores the results.
//!
//! It ends when it finds nothing to do, and a new one is started when there is something. So no worker of the
//! pool is kept waiting for a pipeline.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::shared::{Run, WorkerState, Working};
use crate::panic::{PanicHook, abandon, contain, contain_each, drop_each};
use crate::pipeline::deliver::BatchEntry;
use crate::pipeline::dispatch::{Batch, BoxedBatch};
use crate::pipeline::error::{At, PipelineError, Stage};
use crate::pipeline::source::Source;
use crate::pipeline::steps::{Context, Counts, Discarded, Parked, Part, Passed, Steps, Token};
use crate::sync::{Arc, pause};
use crate::task::{DetachedTask, End, Refusal, Task};

/// A worker reads the clock after about this many nanoseconds, if batches take as long as they have lately. A
/// guess: several times the cost of reading it.
const CLOCK_INTERVAL: u64 = 20_000;
/// A worker reads the clock after this many batches at the latest.
const MAX_BETWEEN_CLOCKS: u64 = 256;
/// After this many nanoseconds, a worker task lets other tasks of the pool run. A guess.
const TIME_SLICE: u64 = 1_000_000;
/// Before it ends, a worker task looks this often whether there is a batch in the queues for it: for some
/// microseconds.
const SPINS_BEFORE_END: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 200 };

/// A worker that has nothing to do when the source has ended waits for this many pauses for the end of the run, some tens of
/// microseconds, and looks once in `LOOK_INTERVAL` of them.
const LOOKS_BEFORE_END: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 600 };
const LOOK_INTERVAL: u32 = 8;

/// What a worker finds when the source has ended.
enum EndOfRun {
    /// No batch is left in any queue.
    Reached,
    /// There are batches to steal.
    Batches,
    /// The source has not ended, or others have had batches in their queues for some time.
    NotNear,
}

/// What a worker goes on with.
enum Found<T> {
    Batch(BoxedBatch<T>),
    /// What has waited in a section.
    Token(Token),
}

/// What the user's code has returned, or the payload of its panic.
type Caught<T> = Result<T, Box<dyn Any + Send>>;

/// Says whether there is enough room for the sender that helps. It is no type parameter: the code that processes batches would be
/// compiled twice, and none of it would be inlined.
type Enough<'e> = &'e dyn Fn() -> bool;

/// Returns whether the batch waits in a section.
fn is_parked(outcome: &Caught<Passed>) -> bool {
    matches!(outcome, Ok(Err(reason)) if reason.is::<Parked>())
}

/// The worker task of one worker.
pub(super) struct WorkerTask<S: Source, G: Steps<S::Item>> {
    run: Arc<Run<S, G>>,
    worker: usize,
    /// Whether there is more to do after other tasks have had their turn.
    again: bool,
}

impl<S: Source, G: Steps<S::Item>> WorkerTask<S, G> {
    pub(super) fn new(run: Arc<Run<S, G>>, worker: usize) -> Self {
        Self { run, worker, again: false }
    }
}

impl<S, G> DetachedTask for WorkerTask<S, G>
where
    S: Source + Send,
    S::Item: Send,
    G: Steps<S::Item>,
    G::Out: Send,
{
    fn run(&mut self, _: &Arc<PanicHook>) -> End {
        self.again = self.run.work(self.worker);
        End::Completed
    }

    fn refuse(&mut self, _: Refusal) -> u64 {
        self.run.control.fail(None, PipelineError::stopped());
        1
    }

    fn finish(self) {
        let control = Arc::clone(&self.run.control);
        if self.again {
            let next = Self::new(self.run, self.worker);
            // SAFETY: the new task takes this one's place among the participants, and leaves instead of it.
            return control.pool().push_remote_if_open(unsafe { Task::detached_borrowing(next) });
        }
        // The task drops its reference before it leaves: if that is the last one, this drops the user's
        // closures, which may borrow what is only guaranteed to exist until the last participant has left.
        let run = self.run;
        contain(|| drop(run));
        // SAFETY: `activate` has counted the task as a participant, and it leaves once.
        unsafe { control.leave() };
    }
}

impl<S, G> Run<S, G>
where
    S: Source + Send,
    S::Item: Send,
    G: Steps<S::Item>,
    G::Out: Send,
{
    /// Processes batches as this worker, until there are none or the time slice ends. Returns whether there
    /// is more to do.
    fn work(&self, worker: usize) -> bool {
        let Some(mut working) = self.take_worker_state(worker) else {
            return self.end_lent(worker);
        };
        working.state.now = self.now();
        let slice_ends = working.state.now.saturating_add(TIME_SLICE);
        loop {
            if self.control.discards_all() {
                // The thread that waits for the end of the run would have to free them all.
                working.state.spares = Vec::new();
                self.put_worker_state(worker, working);
                return false;
            }
            if working.state.now > slice_ends {
                self.put_worker_state(worker, working);
                return true;
            }
            let found_work = self.find_work(worker, &mut working, None)
                || (!self.workers_pull() && self.spin_for_batches(worker));
            if !found_work {
                match self.wait_for_end(worker) {
                    EndOfRun::NotNear => {}
                    EndOfRun::Batches => {
                        working.state.now = self.now();
                        continue;
                    }
                    // W6.
                    EndOfRun::Reached => {
                        working.state.spares = Vec::new();
                        self.put_worker_state(worker, working);
                        self.control.wake_if_seems_dozing();
                        return false;
                    }
                }
                // W1. The state is put back first: once the worker is inactive, a new task may be started for
                // it.
                self.put_worker_state(worker, working);
                if self.control.try_deactivate(worker, || self.has_batches_for(worker)) {
                    return false;
                }
                let Some(again) = self.take_worker_state(worker) else {
                    return self.end_lent(worker);
                };
                working = again;
                working.state.now = self.now();
            }
        }
    }

    /// Ends the task of a worker whose state is lent (H2). Returns that there is nothing more to do for it.
    fn end_lent(&self, worker: usize) -> bool {
        // The sender that has the state may be busy for long. The batch for which this task was started is for another worker.
        if self.config.steals || G::SECTIONS > 0 {
            self.control.start_another(|| self.has_batches_for(worker));
        }
        false
    }

    /// Processes batches until there is `enough` room for a sender, or takes some from the source. Returns whether there was
    /// something to do.
    fn find_work(
        &self,
        worker: usize,
        working: &mut Working<S, G>,
        enough: Option<Enough<'_>>,
    ) -> bool {
        // A worker that pulls does so before it steals: what it cuts itself is in its own cache.
        if self.workers_pull() {
            self.process_own(worker, working, enough)
                || self.pull(worker, &mut working.state)
                || self.process_some(worker, working, true, enough)
        } else {
            self.process_some(worker, working, true, enough)
        }
    }

    /// Works as any worker on the thread of a sender, which needs room in the source (H1 to H3). Returns whether
    /// there was something to do.
    pub(super) fn help_as_worker(run: &Arc<Self>, enough: &dyn Fn() -> bool) -> bool {
        let Some((worker, mut working)) = run.borrow_worker_state() else { return false };
        working.state.now = run.now();
        let mut helped = false;
        while !run.control.discards_all()
            && !enough()
            && run.find_work(worker, &mut working, Some(enough))
        {
            helped = true;
        }
        // H3. Others may have relied on this thread while it waited.
        run.start_another(worker, &mut working.state, 0);
        let task_ended = run.put_worker_state(worker, working);
        if !task_ended {
            if run.queued(worker) > 0 {
                run.control.batch_pushed(Some(worker));
            }
        } else if !run.control.try_deactivate(worker, || run.has_batches_for(worker)) {
            run.control.enter();
            // SAFETY: the task is counted as a participant, as in `activate`, and leaves after its last use of
            // the run. This thread is a participant until then.
            let task =
                unsafe { Task::detached_borrowing(WorkerTask::new(Arc::clone(run), worker)) };
            run.control.pool().push_remote_if_open(task);
        }
        helped
    }

    /// Processes batches of its own, and takes more from the source before it has run out of them.
    fn process_own(
        &self,
        worker: usize,
        working: &mut Working<S, G>,
        enough: Option<Enough<'_>>,
    ) -> bool {
        let any = self.process_some(worker, working, false, enough);
        let state = &mut working.state;
        if any && state.left > 0 && state.left <= state.refill_at && self.control.may_pull() {
            self.refill(worker, state);
        }
        any
    }

    /// Processes batches until there are none, or until it is time to read the clock, or until there is `enough` room for a
    /// sender. Returns whether there were any.
    fn process_some(
        &self,
        worker: usize,
        working: &mut Working<S, G>,
        steal: bool,
        enough: Option<Enough<'_>>,
    ) -> bool {
        let queue = &self.queues[worker].0;
        let most = CLOCK_INTERVAL
            .checked_div(queue.batch_time())
            .unwrap_or(1)
            .clamp(1, MAX_BETWEEN_CLOCKS);
        let (mut done, mut paused) = (0, 0);
        while done < most {
            let Some(found) = self.find(worker, &mut working.state, steal) else { break };
            if done == 0 {
                queue.begin_work(working.state.now);
            }
            done += 1;
            paused += match found {
                Found::Batch(batch) => {
                    working.state.left = working.state.left.saturating_sub(1);
                    self.process(worker, batch, working)
                }
                Found::Token(token) => self.resume(worker, token, working),
            };
            if enough.is_some_and(|enough| enough()) {
                break;
            }
        }
        if done > 0 {
            working.state.now = self.now();
            queue.end_work(working.state.now, done, paused);
            self.control.note_batch_time(queue.batch_time());
        }
        done > 0
    }

    /// Finds something to go on with. What has waited in a section comes first: it is nearer to its end.
    #[inline(always)]
    fn find(
        &self,
        worker: usize,
        state: &mut WorkerState<S::Item, G::Out>,
        steal: bool,
    ) -> Option<Found<S::Item>> {
        if G::SECTIONS > 0 {
            if let Some(token) = self.control.take_ready() {
                return Some(Found::Token(token));
            }
        }
        self.find_batch(worker, state, steal).map(Found::Batch)
    }

    /// Waits for a moment whether the run comes to its end, if the source has ended (W6).
    ///
    /// Otherwise all workers of a large pool would deactivate at the same time, when there are fewer batches than workers, and
    /// wait for each other's lock while some still have batches.
    fn wait_for_end(&self, worker: usize) -> EndOfRun {
        // With sections, there may be something for this worker when all queues are empty.
        if G::SECTIONS > 0 || self.stock.is_none() || !self.control.source_has_ended() {
            return EndOfRun::NotNear;
        }
        for look in 0..LOOKS_BEFORE_END {
            if look % LOOK_INTERVAL == 0 {
                // Twice, with a fence between: others may have relied on this worker while it waited for its turn (B3).
                if self.has_nothing_left() && self.control.looks_again(|| self.has_nothing_left()) {
                    return EndOfRun::Reached;
                }
                if self.has_batches_for(worker) {
                    return EndOfRun::Batches;
                }
            }
            pause();
        }
        EndOfRun::NotNear
    }

    /// Waits for a moment, and returns whether a batch has come. To end and to be started again costs more,
    /// above all for the thread that starts the task.
    fn spin_for_batches(&self, worker: usize) -> bool {
        (0..SPINS_BEFORE_END).any(|_| {
            pause();
            self.has_batches_for(worker)
        })
    }

    /// Applies the stages to a batch, and stores the results in the worker's outbox. Returns for how many nanoseconds the
    /// stages have paused.
    fn process(
        &self,
        worker: usize,
        mut batch: BoxedBatch<S::Item>,
        working: &mut Working<S, G>,
    ) -> u64 {
        let Batch { number, weight, first, items } = &mut *batch;
        let (number, weight, first, count) = (*number, *weight, *first, items.len());
        if number >= self.control.cutoff() {
            contain_each(batch.items);
            return 0;
        }
        let Working { state, steps } = working;
        let results = &mut state.results;
        let mut entry = BatchEntry { number, weight, first, items: count, results: 0 };
        let whole = Part::whole(entry);
        let part = if G::SECTIONS > 0 { Some(&whole) } else { None };
        let context = Context::new(&self.control, number, first, part);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut out = |result| {
                results.push_back(result);
                context.check()
            };
            if G::TRACKS {
                self.steps.apply::<true>(steps, items, &context, &mut out)
            } else {
                self.steps.apply::<false>(steps, items, &context, &mut out)
            }
        }));
        // Only a step that tracks its items counts anything.
        let counts = if G::TRACKS { context.counts() } else { Counts::default() };
        // What the stages have left in the batch.
        let dropped = drop_each(items.drain(..));
        if matches!((&outcome, &dropped), (Ok(Ok(())), Ok(()))) {
            // There is nothing to drop, which the compiler does not see.
            mem::forget((outcome, dropped));
            entry.results = results.len();
            self.queues[worker].0.count_processed();
            if G::TRACKS {
                self.control.count_errors(counts.skipped, counts.retried);
            }
            // R1.
            self.outboxes.store(worker, entry, results);
            self.control.results_stored(number, &mut state.unannounced);
            self.recycle(batch, &mut state.spares);
        } else if G::SECTIONS > 0 && is_parked(&outcome) {
            self.recycle(batch, &mut state.spares);
        } else {
            let at = At { batch: number, item: context.item() };
            self.end_failed(context.failed_stage(), at, outcome, dropped, working);
        }
        counts.paused
    }

    /// Goes on with a batch, or a part of it, that has waited in a section (G3). Returns for how many nanoseconds the stages have
    /// paused.
    fn resume(&self, worker: usize, token: Token, working: &mut Working<S, G>) -> u64 {
        let mut entry = token.entry;
        let whole = Part::whole(entry);
        let context = Context::new(&self.control, entry.number, entry.first, Some(&whole));
        let Working { state, steps } = working;
        let results = &mut state.results;
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            self.steps.resume(steps, token, &context, &mut |result| {
                results.push_back(result);
                context.check()
            })
        }));
        let counts = context.counts();
        if matches!(outcome, Ok(Ok(()))) {
            entry.results = results.len();
            self.queues[worker].0.count_processed();
            self.control.count_errors(counts.skipped, counts.retried);
            // R1.
            self.outboxes.store(worker, entry, results);
            self.control.results_stored(entry.number, &mut state.unannounced);
        } else if !is_parked(&outcome) {
            let at = At { batch: entry.number, item: context.item() };
            self.end_failed(context.failed_stage(), at, outcome, Ok(()), working);
        }
        counts.paused
    }

    /// Drops the results of a batch that has failed or is to be discarded, and notes the failure.
    #[cold]
    fn end_failed(
        &self,
        stage: Stage,
        at: At,
        outcome: Caught<Passed>,
        dropped: Caught<()>,
        working: &mut Working<S, G>,
    ) {
        if outcome.is_err() {
            // The panic may have left what the stages keep in any state. It is dropped without a panic.
            working.steps = G::State::default();
        }
        contain_each(working.state.results.drain(..));
        let error = match outcome {
            Ok(Ok(())) => dropped.err().map(|payload| PipelineError::panicked(stage, at, payload)),
            Ok(Err(error)) => {
                dropped.unwrap_or_else(abandon);
                (!error.is::<Discarded>()).then(|| PipelineError::failed(stage, at, error))
            }
            Err(payload) => {
                dropped.unwrap_or_else(abandon);
                Some(PipelineError::panicked(stage, at, payload))
            }
        };
        if let Some(error) = error {
            self.control.fail(Some(at.batch), error);
        }
    }
}
