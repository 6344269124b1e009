//! Models of jobs that are private, published, taken back and stolen, and of the demand for them.

use std::cell::Cell;
use std::ptr::NonNull;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::sync::{Condvar, Mutex};
use loom::thread;

use super::explore::{Model, models};
use crate::api::join::join;
use crate::cluster::Clusters;
use crate::fork::demand::Demand;
use crate::fork::job;
use crate::fork::latch::CountLatch;
use crate::idle::{Idle, IdleWorker, LastLook, WakeReason};
use crate::panic::PanicHook;
use crate::queues::{Found, Queues, Single, Stealing};
use crate::stats::Ledger;
use crate::sync::Arc;
use crate::task::listener::Listener;
use crate::task::{Awaited, End, Task};
use crate::worker::current::{AnyPool, AnyWorker, enter};

/// The jobs of two workers: the owner, which is worker 0, and a thief. In a pool, published jobs lie in a lane; in an
/// engine, whose queues are `Single`, they lie in a deque.
pub(super) struct Scene<Q: Queues = Stealing> {
    pub(super) queues: Q,
    /// The owner's queues, as the thief reaches them.
    pub(super) owner: Q::Reach,
    pub(super) idle: Idle,
    pub(super) demand: Demand,
    pub(super) ledger: Ledger,
    hook: Arc<PanicHook>,
}

impl<Q: Queues> Scene<Q> {
    fn new() -> (Arc<Self>, Vec<Q::Own>) {
        Self::with_demand(Demand::new(0, 2))
    }

    pub(super) fn with_demand(demand: Demand) -> (Arc<Self>, Vec<Q::Own>) {
        let queues = Q::new(2, Clusters::of_size(2, 2));
        let ((own, owner), (thief, _)) = (Q::of_thread(), Q::of_thread());
        let clusters = Clusters::of_size(2, 2);
        let (idle, ledger) = (Idle::new(clusters, 2, true), Ledger::new(2, 1));
        let scene = Self { queues, owner, idle, demand, ledger, hook: Arc::default() };
        (Arc::new(scene), vec![own, thief])
    }

    pub(super) fn run(&self, task: Task) {
        if let Some(started) = task.start() {
            let (_, ended) = started.execute(&self.hook);
            ended.deliver(Some(&self.hook));
        }
    }

    /// Runs `f` as a thread of the pool, from its start to its end.
    pub(super) fn as_worker_thread(self: &Arc<Self>, own: Q::Own, f: impl FnOnce()) {
        let thread = WorkerThread { scene: Arc::clone(self), own, published: Cell::new(0) };
        // SAFETY: no pool has this id.
        unsafe { enter(1, &thread, &self.demand, f) };
    }

    /// Searches once, as an idle worker does: runs the job that it steals, or raises the demand.
    fn steal(&self) {
        match self.queues.steal_job(&self.owner, self.ledger.of_non_workers()) {
            Found::Task(task, _) => self.run(task),
            Found::Nothing | Found::Contended => self.demand.raise(),
        }
    }
}

struct WorkerThread<Q: Queues> {
    scene: Arc<Scene<Q>>,
    own: Q::Own,
    published: Cell<usize>,
}

impl<Q: Queues> AnyWorker for WorkerThread<Q> {
    fn push_local(&self, _: Task, _: u64) {
        unreachable!("nothing is spawned")
    }

    fn push_job(&self, _: Task) {
        unreachable!("there is no scope")
    }

    fn push_part(&self, _: Task) {
        unreachable!("there is no scope")
    }

    fn push_pieces(&self, _: &mut dyn Iterator<Item = Task>, _: usize) {
        unreachable!("there is no batch")
    }

    fn may_keep_private(&self, _: u32) -> bool {
        false
    }

    fn is_cancelling(&self) -> bool {
        false
    }

    fn count(&self, _: End) {}

    fn any_pool(&self) -> NonNull<dyn AnyPool> {
        unreachable!("there is no scope")
    }

    fn owned_pool(&self) -> Arc<dyn AnyPool> {
        unreachable!("there is no pipeline")
    }

    fn workers(&self) -> usize {
        2
    }

    fn worker_index(&self) -> Option<usize> {
        Some(0)
    }

    fn has_searcher(&self) -> bool {
        false
    }

    fn answer_demand(&self) {
        job::forget_raid();
        if self.scene.demand.count() == 0 {
            return;
        }
        self.scene.demand.lower();
        if let Some(job) = job::publish_oldest() {
            self.scene.queues.push_job(&self.own, job, 0);
            self.published.set(self.published.get() + 1);
            let _ = self.scene.idle.work_added(0);
        }
    }

    fn answer_before_batch(&self) {}

    fn answer_sleepers(&self, _: bool) {
        unreachable!("there is no batch")
    }

    fn wait(&self, _: &dyn Awaited, _: usize) {
        unreachable!("nobody waits for a handle")
    }

    fn wait_for_job(&self, awaited: &dyn Awaited, _: Option<&AtomicUsize>) {
        let is_it = |task: &Task| task.id() == awaited.id();
        if let Some(job) = self.scene.queues.take_back_job(&self.own, is_it) {
            return self.scene.run(job);
        }
        if let Some(claimed) = awaited.claim() {
            let _ = claimed.execute(&self.scene.hook);
            return claimed.done();
        }
        let listener = Arc::new(Listener::thread());
        if awaited.listen(Arc::clone(&listener)) {
            while !awaited.is_done() {
                listener.sleeper().park();
            }
        }
    }
}

/// A counter that notices if two threads count at once.
pub(super) struct Once(UnsafeCell<usize>);

// SAFETY: the model is to show that only one thread at a time touches it.
unsafe impl Sync for Once {}

impl Once {
    pub(super) fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    pub(super) fn happen(&self) {
        // SAFETY: the model is to show that only one thread at a time touches it.
        self.0.with_mut(|times| unsafe { *times += 1 });
    }

    pub(super) fn times(&self) -> usize {
        // SAFETY: the model is to show that only one thread at a time touches it.
        self.0.with(|times| unsafe { *times })
    }
}

/// One job, wanted from the beginning: it is published, and its owner takes it back while a thief steals it.
fn publish_against_pop<Q: Queues>() {
    let (scene, mut own) = Scene::<Q>::new();
    let thief = thread::spawn({
        let (scene, own) = (Arc::clone(&scene), own.remove(1));
        move || {
            let thief = Arc::clone(&scene);
            scene.as_worker_thread(own, || thief.steal());
        }
    });
    let ran = Once::new();
    scene.as_worker_thread(own.remove(0), || {
        assert_eq!(
            join(
                || 1,
                || {
                    ran.happen();
                    2
                }
            ),
            (1, 2)
        );
        assert_eq!(ran.times(), 1, "once, and it is seen");
    });
    thief.join().unwrap();
}

/// Two jobs: the older one is wanted from the beginning, the newer one by a thief that comes twice.
fn thief_against_owner_on_the_last<Q: Queues>() {
    let (scene, mut own) = Scene::<Q>::new();
    let thief = thread::spawn({
        let (scene, own) = (Arc::clone(&scene), own.remove(1));
        move || {
            let thief = Arc::clone(&scene);
            scene.as_worker_thread(own, || {
                thief.steal();
                thief.steal();
            });
        }
    });
    let (older, newer) = (Once::new(), Once::new());
    scene.as_worker_thread(own.remove(0), || {
        let inner = || {
            join(
                || 1,
                || {
                    newer.happen();
                    2
                },
            )
        };
        assert_eq!(
            join(inner, || {
                older.happen();
                3
            }),
            ((1, 2), 3)
        );
        assert_eq!((older.times(), newer.times()), (1, 1));
    });
    thief.join().unwrap();
}

/// A worker that forks, and one that has nothing to do.
struct Want {
    idle: Idle,
    demand: Demand,
    /// Published jobs: the owner takes the first one back, if it is still there; the last one is for the other
    /// worker.
    first: AtomicUsize,
    last: AtomicUsize,
    /// How often the other worker was about to park.
    rests: Mutex<usize>,
    rested: Condvar,
}

/// The order in which the steps are taken. The right one comes first.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Right,
    /// The owner publishes before it lowers the demand.
    LowerLate,
    /// The sleeper raises the demand before it announces that it sleeps.
    RaiseEarly,
}

impl Want {
    fn new() -> Arc<Self> {
        let (first, last) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (idle, demand) = (Idle::new(Clusters::of_size(2, 2), 2, true), Demand::new(0, 2));
        let (rests, rested) = (Mutex::new(0), Condvar::new());
        Arc::new(Self { idle, demand, first, last, rests, rested })
    }

    /// Publishes a job if it is wanted: one look of the owner.
    fn publish(&self, job: &AtomicUsize, way: Way) -> bool {
        if !self.demand.is_raised() {
            return false;
        }
        if way != Way::LowerLate {
            self.demand.lower();
        }
        job.store(1, Relaxed);
        let _ = self.idle.work_added(0);
        if way == Way::LowerLate {
            self.demand.lower();
        }
        true
    }

    fn take(job: &AtomicUsize) -> bool {
        job.load(Relaxed) == 1 && job.swap(0, Relaxed) == 1
    }

    /// Looks until the last job is wanted, and publishes it. Between two looks it waits until the other worker parks
    /// once more. If that worker parks and the demand is lost, loom reports a deadlock.
    fn publish_last(&self, way: Way) {
        let mut seen = 0;
        while !self.publish(&self.last, way) {
            let mut rests = self.rests.lock().unwrap();
            while *rests == seen {
                rests = self.rested.wait(rests).unwrap();
            }
            seen = *rests;
        }
    }

    /// Looks and sleeps until it has the last job.
    fn work(&self, way: Way) {
        let me = Arc::new(Listener::thread());
        let mut searching = false;
        let any = || self.first.load(Relaxed) + self.last.load(Relaxed) > 0;
        loop {
            Self::take(&self.first);
            if Self::take(&self.last) {
                if searching {
                    self.idle.leave_search(1, any);
                }
                return;
            }
            if way == Way::RaiseEarly {
                self.demand.raise();
            }
            let last_look = || {
                if way != Way::RaiseEarly {
                    self.demand.raise();
                }
                if any() { LastLook::Work } else { LastLook::Nothing }
            };
            let parking = || {
                *self.rests.lock().unwrap() += 1;
                self.rested.notify_one();
            };
            match self.idle.sleep(
                IdleWorker { listener: &me, place: 1, searching, end: None },
                last_look,
                || false,
                || false,
                parking,
            ) {
                WakeReason::Early | WakeReason::Called => searching = true,
                _ => unreachable!("nobody stops it, and it waits for nothing"),
            }
        }
    }
}

/// The owner publishes a job and takes it back while the other worker goes to sleep. From then on the owner looks
/// whenever the other worker parks, and must find that a job is wanted.
fn demand_against_sleep(way: Way) {
    let want = Want::new();
    let worker = thread::spawn({
        let want = Arc::clone(&want);
        move || want.work(way)
    });
    if want.publish(&want.first, way) {
        Want::take(&want.first);
    }
    want.publish_last(way);
    worker.join().unwrap();
}

/// Like [`demand_against_sleep`], with an owner that clears the demand after it took a job back, unless a worker
/// sleeps.
fn settle_against_sleep() {
    let want = Want::new();
    let worker = thread::spawn({
        let want = Arc::clone(&want);
        move || want.work(Way::Right)
    });
    want.demand.keep_for_sleepers(&want.idle);
    want.publish_last(Way::Right);
    worker.join().unwrap();
}

/// Like [`demand_against_sleep`], with an owner that forgets what is wanted after it took the job back, unless a worker
/// sleeps.
fn take_back_against_sleep() {
    let want = Want::new();
    let worker = thread::spawn({
        let want = Arc::clone(&want);
        move || want.work(Way::Right)
    });
    if want.publish(&want.first, Way::Right) && Want::take(&want.first) {
        want.demand.taken_back(&want.idle);
    }
    want.publish_last(Way::Right);
    worker.join().unwrap();
}

/// A thief steals the only published job while its owner, which has another one, looks at the demand. In the end
/// the other job is published, or its owner will look again.
fn offer_against_steal() {
    let demand = Arc::new(Demand::new(0, 2));
    let published = Arc::new(AtomicUsize::new(1));
    let thief = thread::spawn({
        let (demand, published) = (Arc::clone(&demand), Arc::clone(&published));
        move || {
            if Want::take(&published) {
                demand.raise_after_steal();
            }
        }
    });
    demand.take();
    if published.load(Relaxed) == 0 {
        published.store(1, Relaxed);
    }
    thief.join().unwrap();
    assert!(published.load(Relaxed) == 1 || demand.is_raised(), "nobody can have the other one");
}

/// Two parts of a scope end on two threads; the scope's owner sees what both have done.
fn scope_end() {
    let (state, end) = CountLatch::new(1);
    // The owner's own part stands for one of the two.
    state.more(1);
    let state = Arc::new(state);
    let results = Arc::new([Once::new(), Once::new()]);
    let part = thread::spawn({
        let (state, results) = (Arc::clone(&state), Arc::clone(&results));
        move || {
            results[0].happen();
            // SAFETY: counted above.
            unsafe { CountLatch::done(NonNull::from(&*state), 1) };
        }
    });
    let other = thread::spawn({
        let (state, results) = (Arc::clone(&state), Arc::clone(&results));
        move || {
            results[1].happen();
            // SAFETY: counted from the beginning.
            unsafe { CountLatch::done(NonNull::from(&*state), 1) };
        }
    });
    let listener = Arc::new(Listener::thread());
    if end.listen(Arc::clone(&listener)) {
        while !end.is_done() {
            listener.sleeper().park();
        }
    }
    end.take().expect("the last one keeps the promise");
    assert_eq!((results[0].times(), results[1].times()), (1, 1));
    part.join().unwrap();
    other.join().unwrap();
}

models! {
    fork_publish_against_pop: publish_against_pop::<Stealing>, None, 600;
    fork_thief_against_owner: thief_against_owner_on_the_last::<Stealing>, Some(3), 420;
    fork_publish_in_engine: publish_against_pop::<Single>, None, 1_280;
    fork_thief_in_engine: thief_against_owner_on_the_last::<Single>, Some(3), 260;
    fork_demand_against_sleep: || demand_against_sleep(Way::Right), Some(4), 33_000;
    fork_settle_against_sleep: settle_against_sleep, Some(4), 740;
    fork_take_back_against_sleep: take_back_against_sleep, Some(3), 6_000;
    fork_offer_against_steal: offer_against_steal, None, 9;
    fork_scope_end: scope_end, Some(4), 1_500;
}

/// The same models with a step out of order: these must fail.
pub(crate) const WRONG: &[Model] = &[
    Model {
        name: "fork_lower_late",
        run: || demand_against_sleep(Way::LowerLate),
        preemptions: Some(4),
        floor: 0,
    },
    Model {
        name: "fork_raise_early",
        run: || demand_against_sleep(Way::RaiseEarly),
        preemptions: Some(4),
        floor: 0,
    },
];
