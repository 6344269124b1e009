//! What the threads of a run share.

use std::collections::VecDeque;
use std::time::Instant;

use super::Pipeline;
use super::control::Control;
use super::cut::Cutter;
use super::desk::{Hire, Rules, Sent};
use super::driver::Driver;
use super::lane::{Batch, Lane};
use super::mail::{Mail, Parcel};
use super::plan::{Distribution, Plan};
use super::report::Report;
use super::source::Source;
use super::stage::Steps;
use crate::member::Intake;
use crate::sync::{Arc, Mutex, Padded, lock, prefetch_for_write};
use crate::task::{Receipt, Task};

pub(super) struct Frame<S: Source, G: Steps<S::Item>> {
    pub(super) control: Arc<Control>,
    pub(super) mail: Arc<Mail<G::Out>>,
    pub(super) plan: Plan,
    pub(super) steps: G,
    /// `None` while somebody is at it.
    cutter: Padded<Mutex<Option<Cutter<S>>>>,
    pub(super) lanes: Box<[Padded<Lane<S::Item>>]>,
    /// For all workers.
    pub(super) shared: Padded<Lane<S::Item>>,
    /// Of each lane: with its worker, while it has one.
    kits: Box<[Locker<S::Item, G::Out>]>,
    /// Empty batches, from the workers to the thread of the source.
    spares: Mutex<Vec<Box<Batch<S::Item>>>>,
    started: Instant,
}

/// Where the kit of a lane is kept.
type Locker<T, R> = Mutex<Option<Kit<T, R>>>;

/// What a worker has at hand.
pub(super) struct Kit<T, R> {
    /// To be processed next, where nobody else can take them.
    pub(super) batches: VecDeque<Box<Batch<T>>>,
    /// Empty ones.
    pub(super) spares: Vec<Box<Batch<T>>>,
    /// Results to be sent.
    pub(super) parcel: Parcel<R>,
    /// What is in the mail, and the desk does not know of.
    pub(super) sent: Option<Sent>,
    /// Nanoseconds that it took to cut a batch, lately.
    pub(super) cut_pace: u64,
    /// When the worker has last looked at the clock.
    pub(super) now: u64,
}

impl<T, R> Kit<T, R> {
    fn new() -> Self {
        Self {
            batches: VecDeque::new(),
            spares: Vec::new(),
            parcel: Parcel::default(),
            sent: None,
            cut_pace: 0,
            now: 0,
        }
    }
}

/// What is fetched ahead of time: that many batches before it is needed, and no more lines of each. Guesses.
pub(super) const AHEAD: usize = 4;
const LINES: usize = 16;

/// A place in each cache line of a batch.
pub(super) fn lines<T>(first: *const T, items: usize) -> impl Iterator<Item = *const u8> {
    let bytes = size_of::<T>().saturating_mul(items);
    (0..bytes.div_ceil(64).min(LINES)).map(move |line| first.cast::<u8>().wrapping_add(64 * line))
}

impl<S: Source, G: Steps<S::Item>> Frame<S, G> {
    /// With nobody at work; and the end of the crew.
    pub(super) fn new(
        pipeline: Pipeline<S, G>,
        pool: Arc<dyn Intake>,
    ) -> (Arc<Self>, Receipt<Vec<()>>) {
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
        source.attach(&control);
        let heavy_first = S::WEIGHED && !plan.ordered;
        let lane = |_| Padded(Lane::new(heavy_first));
        let frame = Self {
            control,
            mail: Arc::new(Mail::new()),
            steps,
            cutter: Padded(Mutex::new(Some(Cutter::new(source, plan.batch)))),
            plan,
            lanes: (0..workers).map(lane).collect(),
            shared: lane(0),
            kits: (0..workers).map(|_| Mutex::new(Some(Kit::new()))).collect(),
            spares: Mutex::new(Vec::new()),
            started: Instant::now(),
        };
        (Arc::new(frame), end)
    }

    /// Nanoseconds since the start.
    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// For the one who is at the source.
    pub(super) fn take_cutter(&self) -> Cutter<S> {
        lock(&self.cutter.0).take().expect("the desk lets one thread go to the source")
    }

    pub(super) fn put_cutter(&self, cutter: Cutter<S>) {
        *lock(&self.cutter.0) = Some(cutter);
    }

    /// For the worker of the lane.
    pub(super) fn take_kit(&self, lane: usize) -> Kit<S::Item, G::Out> {
        lock(&self.kits[lane]).take().expect("a lane has one worker")
    }

    pub(super) fn put_kit(&self, lane: usize, kit: Kit<S::Item, G::Out>) {
        *lock(&self.kits[lane]) = Some(kit);
    }

    /// An empty batch, of those that this thread has, or of those that the workers have given back.
    pub(super) fn blank(&self, spares: &mut Vec<Box<Batch<S::Item>>>) -> Box<Batch<S::Item>> {
        if self.plan.distribution != Distribution::Pull {
            if spares.is_empty() {
                std::mem::swap(&mut *lock(&self.spares), spares);
            }
            // They were read on another core. By the time they are needed they should be here.
            if let Some(soon) = spares.len().checked_sub(AHEAD).map(|at| &spares[at]) {
                lines(soon.items.as_ptr(), self.plan.batch).for_each(prefetch_for_write);
            }
            if let Some(later) = spares.len().checked_sub(2 * AHEAD).map(|at| &spares[at]) {
                prefetch_for_write(&raw const **later);
            }
        }
        spares.pop().unwrap_or_else(Batch::new)
    }

    /// Empty batches that a worker has no use for.
    pub(super) fn give_spares(&self, spares: &mut Vec<Box<Batch<S::Item>>>) {
        // No more than were ever in flight at once.
        lock(&self.spares).append(spares);
    }

    pub(super) fn report(&self) -> Report {
        let elapsed = self.started.elapsed();
        let mut report = self.control.report();
        report.elapsed = elapsed;
        report.per_worker = self.lanes.iter().map(|lane| lane.report()).collect();
        for worker in &mut report.per_worker {
            worker.waited = elapsed.saturating_sub(worker.busy);
            report.steals += worker.steals;
        }
        report
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
        unsafe { Task::borrowing_errand(Driver::new(self, lane)) }
    }
}
