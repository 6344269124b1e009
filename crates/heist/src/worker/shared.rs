//! What the threads of a pool share.

use crate::cancel::CancelToken;
use crate::fork::demand::{Demand, NO_WORKER};
use crate::fork::raid;
use crate::idle::{Announced, Idle};
use crate::order;
use crate::panic::PanicHook;
use crate::queues::Queues;
use crate::stats::{Ledger, Tally};
use crate::sync::{
    Arc, AtomicBool, Mutex, Ordering, Padded, ThreadHandle, has_heavy_fence, heavy_fence,
    is_finished, lock,
};
use crate::task::{End, Refusal, SlotLease, Task};
use crate::trace::{self, EventKind, Log, record};
use crate::worker::handoff::HandOff;

/// What the builder was told.
pub(crate) struct Config {
    pub(crate) workers: usize,
    /// So many of the workers have a life of their own, and the end does not wait for them.
    pub(crate) attached: usize,
    pub(crate) stack_size: usize,
    pub(crate) thread_name: Box<dyn Fn(usize) -> String + Send + Sync>,
    pub(crate) on_thread_start: Box<dyn Fn(usize) + Send + Sync>,
    pub(crate) on_thread_stop: Box<dyn Fn(usize) + Send + Sync>,
    pub(crate) on_panic: Arc<PanicHook>,
    /// What its threads do, if anybody wants to know.
    pub(crate) trace: Option<Arc<Log>>,
}

/// A task has ended.
#[inline(always)]
pub(crate) fn count_end(tally: Tally<'_>, end: End) {
    tally.one(|block| match end {
        End::Completed => &block.tasks_completed,
        End::Panicked => &block.panics,
    });
}

/// A sleeper was called.
pub(crate) fn count_wake_up(tally: Tally<'_>) {
    tally.one(|block| &block.wake_ups_sent);
    record(EventKind::Wake);
}

pub(crate) struct Shared<Q: Queues> {
    pub(crate) queues: Q,
    pub(crate) idle: Idle,
    pub(crate) ledger: Ledger,
    /// Who wants jobs of whom: one for each core.
    pub(crate) demands: Box<[Padded<Demand>]>,
    /// Do thieves help themselves to private jobs, if need be?
    raids: bool,
    /// Of a thread that has no core: raised for ever, and it looks at who sleeps itself.
    pub(crate) demand_without_core: Demand,
    /// Of a thread before its first task and after its last: never raised.
    pub(crate) demand_when_idle: Demand,
    pub(crate) config: Config,
    pub(crate) handoff: HandOff<Q>,
    /// Is what has not started to be refused? Set once, by `stop_now`.
    cancelling: AtomicBool,
    /// Cancelled by the first stop.
    pub(crate) stopped: CancelToken,
    /// To be joined by whoever stops the pool.
    threads: Mutex<Vec<ThreadHandle<()>>>,
    /// Held by whoever joins the threads, so that nobody returns from a stop before they are gone.
    stopper: Mutex<()>,
    /// Slots are kept while there is a pool. The last field: the queues may hold some.
    _slots: SlotLease,
}

impl<Q: Queues> Shared<Q> {
    /// A pool without threads, and what its workers need.
    pub(crate) fn new(config: Config) -> (Self, Vec<Q::Own>) {
        let workers = config.workers;
        let (queues, own) = Q::new(workers);
        let raids = Q::NESTS && has_heavy_fence();
        let demand = |core| {
            let demand = Demand::new(core, workers);
            Padded(if raids { demand.with_raids() } else { demand })
        };
        let idle = Idle::new(workers - config.attached, Q::PATIENT);
        let shared = Self {
            queues,
            idle: if Q::NESTS { idle.where_all_search() } else { idle },
            ledger: Ledger::new(workers),
            demands: (0..workers).map(demand).collect(),
            raids,
            demand_without_core: Demand::new(NO_WORKER, 2),
            demand_when_idle: Demand::new(NO_WORKER, 1),
            config,
            handoff: HandOff::new(),
            cancelling: AtomicBool::new(false),
            stopped: CancelToken::new(),
            threads: Mutex::new(Vec::with_capacity(workers)),
            stopper: Mutex::new(()),
            _slots: SlotLease::begin(),
        };
        (shared, own)
    }

    /// By which the pool is told from others.
    #[inline(always)]
    pub(crate) fn id(&self) -> usize {
        (&raw const *self).addr()
    }

    /// From a thread that is none of the pool's.
    ///
    /// `count` of new tasks: one, unless it is part of a batch.
    pub(crate) fn push_remote_unless_stopping(&self, task: Task, count: u64) {
        if self.idle.is_stopping() {
            // Not taken in, and not counted: dropping it says so to whoever waits.
            return drop(task);
        }
        self.push_remote(task, count);
    }

    /// Through the injector: from outside, or from a thread of the pool that has no core.
    pub(crate) fn push_remote(&self, task: Task, count: u64) {
        let tally = self.ledger.of_non_workers();
        tally.add(|block| &block.tasks_submitted, count);
        self.queues.push_remote(task, tally);
        self.announce(tally);
    }

    /// The worker in that core has nothing to do: whoever forks should share.
    pub(crate) fn raise_demand(&self, core: usize) {
        self.demands_beside(core).for_each(Demand::raise);
    }

    /// Does a worker that has jobs keep one of them published, because nobody could take it otherwise?
    #[inline(always)]
    pub(crate) fn keeps_one_published(&self) -> bool {
        Q::NESTS && !self.raids
    }

    pub(crate) fn demands_beside(&self, core: usize) -> impl Iterator<Item = &Demand> {
        self.demands.iter().map(|demand| &demand.0).filter(move |demand| demand.core != core)
    }

    /// The last look of a worker that has said that it sleeps (step S3).
    pub(crate) fn last_look(&self, core: usize) -> bool {
        self.demands_beside(core).for_each(Demand::raise_for_sleeper);
        self.queues.any() || self.queues.has_broadcast(core) || self.may_raid(core)
    }

    /// May somebody have private jobs who has not seen that they are wanted (step D6)?
    fn may_raid(&self, core: usize) -> bool {
        if !self.raids || !self.idle.is_anybody_busy(self.config.workers) {
            return false;
        }
        heavy_fence(order::RAID);
        self.demands_beside(core).any(raid::may_raid)
    }

    /// There is something new in a queue.
    #[inline]
    pub(crate) fn announce(&self, tally: Tally<'_>) {
        match self.idle.work_added() {
            Announced::Quiet => {}
            Announced::Called => count_wake_up(tally),
            Announced::Ended => self.sweep(),
        }
    }

    /// Mail, one letter for each worker. The end waits until they are fetched, but for a attached thread's.
    pub(crate) fn broadcast(&self, tasks: Vec<Task>) {
        let tally = self.ledger.of_non_workers();
        tally.add(|block| &block.tasks_submitted, tasks.len() as u64);
        let left = self.queues.broadcast(tasks.into_iter(), |to| {
            if !self.is_attached(to) {
                self.idle.enter_away();
            }
        });
        tally.add(|block| &block.cancellations, left.len() as u64);
        (0..self.idle.broadcast_added()).for_each(|_| count_wake_up(tally));
    }

    /// Has the worker in that core a life of its own?
    pub(crate) fn is_attached(&self, core: usize) -> bool {
        core < self.config.attached
    }

    /// The worker of that core will never come.
    pub(crate) fn abandon_worker(&self, core: usize) {
        let tally = self.ledger.of_non_workers();
        let left = self.queues.abandon_worker(core, tally);
        tally.add(|block| &block.cancellations, left.len() as u64);
        if self.is_attached(core) {
            return;
        }
        left.iter().for_each(|_| self.idle.leave_away());
        if self.idle.is_stopping() {
            self.close();
        }
    }

    /// The pool has come to its end, and what came too late is refused. Both sides of that race
    /// sweep, and nothing escapes them: see `idle/README.md`, step E4.
    #[cold]
    pub(crate) fn sweep(&self) {
        let tally = self.ledger.of_non_workers();
        while let Some(task) = self.queues.take_one_injected(tally) {
            let Some(started) = task.start() else { continue };
            let hook = &self.config.on_panic;
            if started.is_job() {
                // Somebody who has forked waits for it, outside of the pool or at the end of a thread.
                let (end, ended) = trace::task(|| started.execute(hook));
                count_end(tally, end);
                ended.deliver(Some(hook));
            } else {
                let (count, ended) = started.refuse(Refusal::Stopped);
                tally.add(|block| &block.cancellations, count);
                ended.deliver(Some(hook));
            }
        }
    }

    /// Ends what is left after the last worker has found nothing to do.
    pub(crate) fn finish_shutdown(&self) {
        self.sweep();
        self.handoff.close();
    }

    #[inline]
    pub(crate) fn is_cancelling(&self) -> bool {
        // Ordering: relaxed. It says what to do with tasks, and brings no data with it.
        self.cancelling.load(Ordering::Relaxed)
    }

    pub(crate) fn cancel(&self) {
        self.cancelling.store(true, Ordering::Relaxed);
    }

    /// Takes in nothing more from outside; ends when everything is done.
    pub(crate) fn close(&self) {
        self.stopped.cancel();
        if self.idle.stop(|| self.queues.any()) {
            self.finish_shutdown();
        }
    }

    /// So many workers could not be started: ends those that were.
    pub(crate) fn abort_start(&self, missing: usize) {
        self.idle.add_missing(missing);
        self.close();
        self.join_threads();
    }

    /// Waits for the threads to end.
    pub(crate) fn join_threads(&self) {
        let _stopper = lock(&self.stopper);
        loop {
            // Not in one expression, which would hold the lock while it joins.
            let thread = lock(&self.threads).pop();
            let Some(thread) = thread else { break };
            // No thread of the pool panics: what is not ours is contained.
            let _ = thread.join();
        }
    }

    /// Keeps a thread that has been started, and is rid of those that have ended.
    pub(crate) fn keep(&self, thread: ThreadHandle<()>) {
        let mut threads = lock(&self.threads);
        threads.push(thread);
        let ended: Vec<_> = threads.extract_if(.., |thread| is_finished(thread)).collect();
        drop(threads);
        for thread in ended {
            let _ = thread.join();
        }
    }
}
