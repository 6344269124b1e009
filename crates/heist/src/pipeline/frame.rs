//! What the threads of a run share.

use std::collections::VecDeque;
use std::time::Instant;

use super::Pipeline;
use super::control::{Control, Stop};
use super::cut::Cutter;
use super::desk::{Hire, Rules};
use super::driver::Driver;
use super::lane::{Batch, Giver, LINE, LINES, Lane, Load};
use super::mail::Mail;
use super::plan::{Distribution, Plan};
use super::report::Report;
use super::source::Source;
use super::stage::Steps;
use crate::cancel::Follower;
use crate::panic::contain;
use crate::sync::{Arc, Mutex, Padded, elapsed, lock, prefetch_for_write};
use crate::task::{Task, TaskHandle};
use crate::worker::current::AnyPool;

pub(super) struct Frame<S: Source, G: Steps<S::Item>> {
    pub(super) control: Arc<Control>,
    pub(super) mail: Arc<Mail<G::Out>>,
    pub(super) plan: Plan,
    pub(super) steps: G,
    /// `None` while somebody is at it.
    cutter: Padded<Mutex<Option<Cutter<S>>>>,
    /// What was given to each worker.
    pub(super) lanes: Box<[Padded<Lane<S::Item>>]>,
    /// What each has taken from there, if it was given by another thread: some at once, as they come from another core.
    /// They are not its own before it processes them.
    pub(super) hands: Box<[Padded<Lane<S::Item>>]>,
    /// For all workers.
    pub(super) shared: Padded<Lane<S::Item>>,
    /// Of each lane: with its worker, while it has one.
    kits: Box<[Locker<S::Item, G::Out>]>,
    /// For the thread of the source, if it has one: of each lane.
    givers: Mutex<Vec<Option<Giver<S::Item>>>>,
    /// Empty batches, from the workers to the thread of the source.
    spares: Mutex<Vec<Load<S::Item>>>,
    handle: S::Handle,
    /// Is told if the pool stops.
    pub(super) stop: Arc<dyn Follower>,
    started: Instant,
}

/// Where the kit of a lane is kept.
type Locker<T, R> = Mutex<Option<Kit<T, R>>>;

/// What a worker has at hand.
pub(super) struct Kit<T, R> {
    /// Of what it has in hand, or of its lane if it goes to the source itself.
    pub(super) giver: Option<Giver<T>>,
    /// Empty batches.
    pub(super) spares: Vec<Load<T>>,
    /// Of the batch that it is at.
    pub(super) results: VecDeque<R>,
    /// Batches that it has put into the mail while whoever wants the results dozed.
    pub(super) unsaid: usize,
    /// Nanoseconds that it took to cut a batch, lately.
    pub(super) cut_pace: u64,
    /// When the worker has last looked at the clock.
    pub(super) now: u64,
}

impl<T, R> Kit<T, R> {
    fn new(giver: Option<Giver<T>>) -> Self {
        Self { giver, spares: Vec::new(), results: VecDeque::new(), unsaid: 0, cut_pace: 0, now: 0 }
    }
}

/// Empty batches that a worker keeps, at most; a guess.
const EXTRA_STANDBY: usize = 512;
/// An empty batch is fetched so many batches before it is needed. A guess.
const AHEAD: usize = 4;

impl<S: Source, G: Steps<S::Item>> Frame<S, G> {
    /// With nobody at work; and the end of the crew.
    pub(super) fn new(
        pipeline: Pipeline<S, G>,
        pool: Arc<dyn AnyPool>,
    ) -> (Arc<Self>, TaskHandle<Vec<()>>) {
        let Pipeline { mut source, steps, plan } = pipeline;
        let workers = pool.workers();
        let rules = Rules {
            bound: plan.in_flight,
            weight: plan.weight.map(|weight| weight as u64),
            ordered: plan.ordered,
            pulls: plan.distribution == Distribution::Pull,
            steals: plan.steals,
        };
        let (control, end) = Control::new(rules, pool);
        let handle = source.attach(&control);
        let stop: Arc<dyn Follower> = Arc::new(Stop(Arc::clone(&control)));
        let pulls = plan.distribution == Distribution::Pull;
        let heavy_first = S::WEIGHED && !plan.ordered;
        let lane = |_| match heavy_first {
            true => (Padded(Lane::locked(true)), None),
            false => {
                let (lane, giver) = Lane::new();
                (Padded(lane), Some(giver))
            }
        };
        let (lanes, mut givers): (Vec<_>, Vec<_>) = (0..workers).map(lane).unzip();
        let (mut hands, mut own) = (Vec::new(), Vec::new());
        if pulls {
            // Nobody else gives.
            std::mem::swap(&mut givers, &mut own);
        } else {
            (hands, own) = (0..workers).map(lane).unzip();
        }
        let frame = Self {
            control,
            mail: Arc::new(Mail::new(workers, plan.ordered)),
            steps,
            cutter: Padded(Mutex::new(Some(Cutter::new(source, plan.batch)))),
            plan,
            lanes: lanes.into(),
            shared: Padded(Lane::locked(heavy_first)),
            hands: hands.into(),
            kits: own.into_iter().map(|giver| Mutex::new(Some(Kit::new(giver)))).collect(),
            givers: Mutex::new(givers),
            spares: Mutex::new(Vec::new()),
            handle,
            stop,
            started: Instant::now(),
        };
        (Arc::new(frame), end)
    }

    /// Nanoseconds since the start.
    pub(super) fn now(&self) -> u64 {
        elapsed(self.started)
    }

    /// For the one who is at the source.
    pub(super) fn take_cutter(&self) -> Cutter<S> {
        lock(&self.cutter.0).take().expect("the desk lets one thread go to the source")
    }

    pub(super) fn put_cutter(&self, cutter: Cutter<S>) {
        *lock(&self.cutter.0) = Some(cutter);
    }

    /// For the thread of the source.
    pub(super) fn take_givers(&self) -> Vec<Option<Giver<S::Item>>> {
        std::mem::take(&mut *lock(&self.givers))
    }

    /// For the worker of the lane.
    pub(super) fn take_kit(&self, lane: usize) -> Kit<S::Item, G::Out> {
        lock(&self.kits[lane]).take().expect("a lane has one worker")
    }

    pub(super) fn put_kit(&self, lane: usize, kit: Kit<S::Item, G::Out>) {
        *lock(&self.kits[lane]) = Some(kit);
    }

    /// How many batches the worker has before it.
    pub(super) fn queued(&self, worker: usize) -> usize {
        let in_hand = self.hands.get(worker).map_or(0, |hand| hand.0.len());
        self.lanes[worker].0.len() + in_hand
    }

    /// An empty batch, of those that this thread has, or of those that the workers have given back.
    pub(super) fn blank(&self, spares: &mut Vec<Load<S::Item>>) -> Load<S::Item> {
        if self.plan.distribution != Distribution::Pull {
            if spares.is_empty() {
                std::mem::swap(&mut *lock(&self.spares), spares);
            }
            // They were read on another core. By the time they are needed they should be here.
            if let Some(soon) = spares.len().checked_sub(AHEAD).map(|at| &spares[at]) {
                let bytes = size_of::<S::Item>().saturating_mul(self.plan.batch);
                let lines = bytes.div_ceil(LINE).min(LINES);
                let first = soon.items.as_ptr().cast::<u8>();
                (0..lines).for_each(|line| prefetch_for_write(first.wrapping_add(LINE * line)));
            }
            if let Some(later) = spares.len().checked_sub(2 * AHEAD).map(|at| &spares[at]) {
                prefetch_for_write(&raw const **later);
            }
        }
        spares.pop().unwrap_or_else(Batch::new)
    }

    /// An empty batch that a worker has no use for at the moment.
    pub(super) fn give_back(&self, batch: Load<S::Item>, spares: &mut Vec<Load<S::Item>>) {
        let few = (self.plan.in_flight / (2 * self.lanes.len())).clamp(1, EXTRA_STANDBY);
        if self.plan.distribution != Distribution::Pull {
            spares.push(batch);
            if spares.len() >= few {
                lock(&self.spares).append(spares);
            }
        } else if spares.len() < few {
            spares.push(batch);
        }
    }

    pub(super) fn report(&self) -> Report {
        let mut report = self.control.report(self.started);
        report.per_worker = self.lanes.iter().map(|lane| lane.report()).collect();
        for worker in &mut report.per_worker {
            worker.waited = report.elapsed.saturating_sub(worker.busy);
            report.steals += worker.steals;
        }
        report
    }
}

impl<S: Source, G: Steps<S::Item>> Drop for Frame<S, G> {
    /// Batches that nobody has processed: their drops are code of the user's.
    fn drop(&mut self) {
        for lane in self.lanes.iter().chain(&self.hands).chain([&self.shared]) {
            while let Some(batch) = lane.0.take() {
                contain(|| drop(batch));
            }
        }
    }
}

impl<S, G> Hire for Frame<S, G>
where
    S: Source + Send,
    S::Item: Send,
    G: Steps<S::Item>,
    G::Out: Send,
{
    fn driver(self: Arc<Self>, lane: usize) -> Task {
        // SAFETY: what it borrows is there until it has left the crew, which the run waits for.
        unsafe { Task::detached_borrowing(Driver::new(self, lane)) }
    }

    fn end(&self) {
        S::close(&self.handle);
    }
}
