//! What all threads of a pool share: queues, idle state, counters, demands, standby threads, and the way to shutdown.

use crate::cancel::CancelToken;
use crate::fork::demand::{Demand, NO_WORKER};
use crate::fork::raid;
use crate::idle::{Announced, Idle};
use crate::order;
use crate::panic::PanicHook;
use crate::stats::{Ledger, Tally};
use crate::sync::{
    Arc, AtomicBool, Mutex, Ordering, Padded, ThreadHandle, has_heavy_fence, heavy_fence,
    is_finished, lock,
};
use crate::task::{End, Refusal, SlotLease, Task};
use crate::trace::{self, EventKind, Log, record};
use crate::worker::core::victims;
use crate::worker::handoff::HandOff;
use crate::worker::policy::{PoolQueues, WaitPolicy};

/// The configuration of a pool. Does not change after the pool was built.
pub(crate) struct Config {
    /// The number of workers.
    pub(crate) workers: usize,
    /// The number of workers, counted from the first, that are attached threads: the caller owns these threads, and
    /// shutdown does not wait for them.
    pub(crate) attached: usize,
    pub(crate) stack_size: usize,
    pub(crate) thread_name: Box<dyn Fn(usize) -> String + Send + Sync>,
    pub(crate) on_thread_start: Box<dyn Fn(usize) + Send + Sync>,
    pub(crate) on_thread_stop: Box<dyn Fn(usize) + Send + Sync>,
    pub(crate) on_panic: Arc<PanicHook>,
    /// Where the threads record their events, if the pool keeps a trace.
    pub(crate) trace: Option<Arc<Log>>,
}

/// Counts a task that has ended.
#[inline(always)]
pub(crate) fn count_end(tally: Tally<'_>, end: End) {
    tally.one(|block| match end {
        End::Completed => &block.tasks_completed,
        End::Panicked => &block.panics,
    });
}

/// Counts and traces a wake-up that was sent.
pub(crate) fn count_wake_up(tally: Tally<'_>) {
    tally.one(|block| &block.wake_ups_sent);
    record(EventKind::Wake);
}

/// The state that all threads of a pool share. Every thread keeps it alive.
pub(crate) struct Shared<Q: PoolQueues> {
    pub(crate) queues: Q,
    pub(crate) idle: Idle,
    pub(crate) ledger: Ledger,
    /// The demand for each worker's private jobs, by its number. Any thread raises it; the worker answers it.
    pub(crate) demands: Box<[Padded<Demand>]>,
    /// Can thieves raid private jobs? This needs the policy's permission, and a fence that other threads pass as well.
    raids: bool,
    /// The demand that a thread without a core looks at: always raised. Such a thread checks by itself
    /// whether a worker is idle.
    pub(crate) demand_without_core: Demand,
    /// The demand that a thread looks at before its first task and after its last: never raised.
    pub(crate) demand_when_idle: Demand,
    pub(crate) config: Config,
    pub(crate) handoff: HandOff<Q>,
    /// Are tasks that have not started to be refused? Set once, by `stop_now`.
    cancelling: AtomicBool,
    /// Cancelled when the pool is first stopped.
    pub(crate) stopped: CancelToken,
    /// The handles of the threads. A thread that stops the pool joins them.
    threads: Mutex<Vec<ThreadHandle<()>>>,
    /// Held while the threads are joined, so that no stop returns before all of them have ended.
    stopper: Mutex<()>,
    /// Keeps the slots' memory while there is a pool. It is the last field because the queues may hold slots.
    _slots: SlotLease,
}

impl<Q: PoolQueues> Shared<Q> {
    /// Returns a pool without threads, and the owner's end of each worker's queues.
    pub(crate) fn new(config: Config) -> (Self, Vec<Q::Own>) {
        let workers = config.workers;
        let (queues, own) = Q::new(workers);
        let raids = Q::Waiting::RAIDS && has_heavy_fence();
        let demand = |worker| {
            let demand = Demand::new(worker, workers);
            Padded(if raids { demand.with_raids() } else { demand })
        };
        let idle = Idle::new(workers - config.attached, Q::PATIENT);
        let shared = Self {
            queues,
            idle: if Q::Waiting::ALL_SEARCH { idle.where_all_search() } else { idle },
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

    /// Returns a number that tells the pool from all others that are alive.
    #[inline(always)]
    pub(crate) fn id(&self) -> usize {
        (&raw const *self).addr()
    }

    /// Pushes a task from a thread outside of the pool, unless the pool is stopping.
    ///
    /// `count` is the number of new tasks: the length of a batch, else one.
    pub(crate) fn push_remote_unless_stopping(&self, task: Task, count: u64) {
        if self.idle.is_stopping() {
            // It is not counted. Dropping it notifies the thread that waits for it.
            return drop(task);
        }
        self.push_remote(task, count);
    }

    /// Pushes a task to the injector: from outside, or from a thread of the pool that has no core.
    pub(crate) fn push_remote(&self, task: Task, count: u64) {
        let tally = self.ledger.of_non_workers();
        tally.add(|block| &block.tasks_submitted, count);
        self.queues.push_remote(task, tally);
        self.announce(tally);
    }

    /// Requests work from all other workers, because `worker` has none.
    pub(crate) fn raise_demand(&self, worker: usize) {
        self.demands_of_others(worker).for_each(Demand::raise);
    }

    /// Returns whether a worker that has jobs keeps one of them published at all times. It does where waiting threads
    /// keep their cores and the system has no fence for raids, because no thief could take a private job there.
    #[inline(always)]
    pub(crate) fn keeps_one_published(&self) -> bool {
        Q::Waiting::RAIDS && !self.raids
    }

    /// Returns the demands of all workers but `me`.
    fn demands_of_others(&self, me: usize) -> impl Iterator<Item = &Demand> {
        victims(me, 0, self.config.workers).map(|victim| &self.demands[victim].0)
    }

    /// Takes the last look of a worker that has announced that it sleeps (step S3). Returns whether there may be
    /// work for it.
    pub(crate) fn last_look(&self, worker: usize) -> bool {
        self.demands_of_others(worker).for_each(Demand::raise_for_sleeper);
        self.queues.any() || self.queues.has_broadcast(worker) || self.may_raid(worker)
    }

    /// Returns whether another worker may have private jobs and has not seen that they are wanted (step D6).
    fn may_raid(&self, worker: usize) -> bool {
        if !self.raids || !self.idle.is_anybody_busy(self.config.workers) {
            return false;
        }
        heavy_fence(order::RAID);
        self.demands_of_others(worker).any(raid::may_raid)
    }

    /// Wakes a worker if needed, after a task was pushed to a queue.
    #[inline]
    pub(crate) fn announce(&self, tally: Tally<'_>) {
        match self.idle.work_added() {
            Announced::Quiet => {}
            Announced::Called => count_wake_up(tally),
            Announced::Ended => self.sweep(),
        }
    }

    /// Pushes one task to each worker's broadcast queue, in the order of their numbers. Shutdown waits until the
    /// workers have taken them, except for those of attached threads.
    pub(crate) fn broadcast(&self, tasks: Vec<Task>) {
        let tally = self.ledger.of_non_workers();
        tally.add(|block| &block.tasks_submitted, tasks.len() as u64);
        let refused = self.queues.broadcast(tasks.into_iter(), |to| {
            if !self.is_attached(to) {
                self.idle.enter_away();
            }
        });
        tally.add(|block| &block.cancellations, refused.len() as u64);
        (0..self.idle.broadcast_added()).for_each(|_| count_wake_up(tally));
    }

    /// Returns whether that worker is an attached thread, which shutdown does not wait for.
    pub(crate) fn is_attached(&self, worker: usize) -> bool {
        worker < self.config.attached
    }

    /// Notes that no thread will ever be this worker.
    pub(crate) fn abandon_worker(&self, worker: usize) {
        let tally = self.ledger.of_non_workers();
        let refused = self.queues.abandon_worker(worker, tally);
        tally.add(|block| &block.cancellations, refused.len() as u64);
        if self.is_attached(worker) {
            return;
        }
        refused.iter().for_each(|_| self.idle.leave_away());
        if self.idle.is_stopping() {
            self.close();
        }
    }

    /// Refuses the tasks that came after shutdown, and runs the jobs that did. Both sides of that race sweep, so that
    /// no task is missed: see `idle/README.md`, step E4.
    #[cold]
    pub(crate) fn sweep(&self) {
        let tally = self.ledger.of_non_workers();
        while let Some(task) = self.queues.take_one_injected(tally) {
            let Some(started) = task.start() else { continue };
            let hook = &self.config.on_panic;
            if started.is_job() {
                // A join or scope waits for it, outside of the pool or in a hook at the end of a thread. It must run.
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

    /// Refuses leftover tasks and ends the standby threads. Called once, when all workers sleep and nothing is queued.
    pub(crate) fn finish_shutdown(&self) {
        self.sweep();
        self.handoff.close();
    }

    /// Returns whether tasks that have not started are to be refused.
    #[inline]
    pub(crate) fn is_cancelling(&self) -> bool {
        // Ordering: relaxed. It decides what is done with a task; no data is passed with it.
        self.cancelling.load(Ordering::Relaxed)
    }

    /// Makes the pool refuse, from now on, tasks that have not started.
    pub(crate) fn cancel(&self) {
        self.cancelling.store(true, Ordering::Relaxed);
    }

    /// Begins shutdown: accepts nothing more from outside, and ends when everything is done.
    pub(crate) fn close(&self) {
        self.stopped.cancel();
        if self.idle.stop(|| self.queues.any()) {
            self.finish_shutdown();
        }
    }

    /// Ends the workers that were started, because `missing` others could not be.
    pub(crate) fn abort_start(&self, missing: usize) {
        self.idle.add_missing(missing);
        self.close();
        self.join_threads();
    }

    /// Waits until all threads have ended.
    pub(crate) fn join_threads(&self) {
        let _stopper = lock(&self.stopper);
        loop {
            // A statement of its own: in the `let else` below, the lock would be held during the join.
            let thread = lock(&self.threads).pop();
            let Some(thread) = thread else { break };
            // A thread of the pool does not panic: panics of user code are caught earlier.
            let _ = thread.join();
        }
    }

    /// Keeps the handle of a thread that was started, and joins those that have ended.
    pub(crate) fn keep_thread(&self, thread: ThreadHandle<()>) {
        let mut threads = lock(&self.threads);
        threads.push(thread);
        let (ended, running): (Vec<_>, Vec<_>) = threads.drain(..).partition(is_finished);
        *threads = running;
        drop(threads);
        for thread in ended {
            let _ = thread.join();
        }
    }
}
