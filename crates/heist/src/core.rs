//! What the threads of a pool share.

use crate::cancel::CancelToken;
use crate::demand::{Demand, NO_SEAT};
use crate::idle::{Heard, Idle};
use crate::order;
use crate::panic::PanicHook;
use crate::queues::Queues;
use crate::raid;
use crate::relief::Relief;
use crate::stats::{Ledger, Tally};
use crate::sync::{
    Arc, AtomicBool, Mutex, Ordering, Padded, ThreadHandle, has_heavy_fence, heavy_fence,
    is_finished, lock,
};
use crate::task::{End, Refusal, Season, Task};
use crate::trace::{self, EventKind, Log, record};

/// What the builder was told.
pub(crate) struct Config {
    pub(crate) workers: usize,
    /// So many of the workers have a life of their own, and the end does not wait for them.
    pub(crate) guests: usize,
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

pub(crate) struct Core<Q: Queues> {
    pub(crate) queues: Q,
    pub(crate) idle: Idle,
    pub(crate) ledger: Ledger,
    /// Who wants jobs of whom: one for each seat.
    pub(crate) demands: Box<[Padded<Demand>]>,
    /// Do thieves help themselves to private jobs, if need be?
    raids: bool,
    /// Of a thread that has no seat: raised for ever, and it looks at who sleeps itself.
    pub(crate) of_seatless: Demand,
    /// Of a thread before its first task and after its last: never raised.
    pub(crate) of_idle: Demand,
    pub(crate) config: Config,
    pub(crate) relief: Relief<Q>,
    /// Is what has not started to be refused? Set once, by `stop_now`.
    cancelling: AtomicBool,
    /// Cancelled by the first stop.
    pub(crate) stopped: CancelToken,
    /// To be joined by whoever stops the pool.
    threads: Mutex<Vec<ThreadHandle<()>>>,
    /// Held by whoever joins the threads, so that nobody returns from a stop before they are gone.
    stopper: Mutex<()>,
    /// Slots are kept while there is a pool. The last field: the queues may hold some.
    _season: Season,
}

impl<Q: Queues> Core<Q> {
    /// A pool without threads, and what its workers need.
    pub(crate) fn new(config: Config) -> (Self, Vec<Q::Own>) {
        let workers = config.workers;
        let (queues, own) = Q::new(workers);
        let raids = Q::NESTS && has_heavy_fence();
        let demand = |seat| {
            let demand = Demand::new(seat, workers);
            Padded(if raids { demand.with_raids() } else { demand })
        };
        let idle = Idle::new(workers - config.guests, Q::PATIENT);
        let core = Self {
            queues,
            idle: if Q::NESTS { idle.where_all_search() } else { idle },
            ledger: Ledger::new(workers),
            demands: (0..workers).map(demand).collect(),
            raids,
            of_seatless: Demand::new(NO_SEAT, 2),
            of_idle: Demand::new(NO_SEAT, 1),
            config,
            relief: Relief::new(),
            cancelling: AtomicBool::new(false),
            stopped: CancelToken::new(),
            threads: Mutex::new(Vec::with_capacity(workers)),
            stopper: Mutex::new(()),
            _season: Season::begin(),
        };
        (core, own)
    }

    /// By which the pool is told from others.
    #[inline(always)]
    pub(crate) fn id(&self) -> usize {
        (&raw const *self).addr()
    }

    /// From a thread that is none of the pool's.
    ///
    /// `count` of new tasks: one, unless it is part of a batch.
    pub(crate) fn submit(&self, task: Task, count: u64) {
        if self.idle.is_stopping() {
            // Not taken in, and not counted: dropping it says so to whoever waits.
            return drop(task);
        }
        self.inject(task, count);
    }

    /// Through the injector: from outside, or from a thread of the pool that has no seat.
    pub(crate) fn inject(&self, task: Task, count: u64) {
        let tally = self.ledger.of_others();
        tally.add(|block| &block.tasks_submitted, count);
        self.queues.inject(task, tally);
        self.announce(tally);
    }

    /// The worker in that seat has nothing to do: whoever forks should share.
    pub(crate) fn raise_demand(&self, seat: usize) {
        self.demands_beside(seat).for_each(Demand::raise);
    }

    /// Does a worker that has jobs keep one of them published, because nobody could take it otherwise?
    #[inline(always)]
    pub(crate) fn offers(&self) -> bool {
        Q::NESTS && !self.raids
    }

    pub(crate) fn demands_beside(&self, seat: usize) -> impl Iterator<Item = &Demand> {
        self.demands.iter().map(|demand| &demand.0).filter(move |demand| demand.seat != seat)
    }

    /// The last look of a worker that has said that it sleeps (step S3).
    pub(crate) fn last_look(&self, seat: usize) -> bool {
        self.demands_beside(seat).for_each(Demand::raise_asleep);
        self.queues.any() || self.queues.has_mail(seat) || self.may_raid(seat)
    }

    /// May somebody have private jobs who has not seen that they are wanted (step D6)?
    fn may_raid(&self, seat: usize) -> bool {
        if !self.raids || !self.idle.is_anybody_busy(self.config.workers) {
            return false;
        }
        heavy_fence(order::RAID);
        self.demands_beside(seat).any(raid::may_raid)
    }

    /// There is something new in a queue.
    #[inline]
    pub(crate) fn announce(&self, tally: Tally<'_>) {
        match self.idle.submitted() {
            Heard::Quiet => {}
            Heard::Called => count_wake_up(tally),
            Heard::Ended => self.sweep(),
        }
    }

    /// Mail, one letter for each worker. The end waits until they are fetched, but for a guest's.
    pub(crate) fn post(&self, letters: Vec<Task>) {
        let tally = self.ledger.of_others();
        tally.add(|block| &block.tasks_submitted, letters.len() as u64);
        let left = self.queues.post(letters.into_iter(), |to| {
            if !self.is_guest(to) {
                self.idle.step_aside();
            }
        });
        tally.add(|block| &block.cancellations, left.len() as u64);
        (0..self.idle.posted()).for_each(|_| count_wake_up(tally));
    }

    /// Has the worker in that seat a life of its own?
    pub(crate) fn is_guest(&self, seat: usize) -> bool {
        seat < self.config.guests
    }

    /// The worker of that seat will never come.
    pub(crate) fn vacate(&self, seat: usize) {
        let tally = self.ledger.of_others();
        let mail = self.queues.vacate(seat, tally);
        tally.add(|block| &block.cancellations, mail.len() as u64);
        if self.is_guest(seat) {
            return;
        }
        mail.iter().for_each(|_| self.idle.step_back());
        if self.idle.is_stopping() {
            self.close();
        }
    }

    /// The pool has come to its end, and what came too late is refused. Both sides of that race
    /// sweep, and nothing escapes them: see `idle/README.md`, step E4.
    #[cold]
    pub(crate) fn sweep(&self) {
        let tally = self.ledger.of_others();
        while let Some(task) = self.queues.withdraw(tally) {
            let Some(started) = task.start() else { continue };
            let hook = &self.config.on_panic;
            if started.is_job() {
                // Somebody who has forked waits for it, outside of the pool or at the end of a thread.
                let (end, ended) = trace::task(|| started.execute(hook));
                count_end(tally, end);
                ended.publish(Some(hook));
            } else {
                let (count, ended) = started.refuse(Refusal::Stopped);
                tally.add(|block| &block.cancellations, count);
                ended.publish(Some(hook));
            }
        }
    }

    /// Ends what is left after the last worker has found nothing to do.
    pub(crate) fn wind_up(&self) {
        self.sweep();
        self.relief.close();
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
            self.wind_up();
        }
    }

    /// So many workers could not be started: ends those that were.
    pub(crate) fn give_up(&self, missing: usize) {
        self.idle.absent(missing);
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
