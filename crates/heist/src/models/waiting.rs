//! Models of a thread that waits for parts: it finds what is pushed, or is woken.

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering::AcqRel, Ordering::Relaxed};
use loom::thread;

use super::explore::{Model, models};
use crate::api::batch::{self, Unstarted};
use crate::cluster::Clusters;
use crate::fork::demand::Demand;
use crate::idle::{Announced, Idle};
use crate::order;
use crate::panic::PanicHook;
use crate::priority::Priority;
use crate::queues::Lane;
use crate::sync::{Arc, full_fence};
use crate::task::listener::Listener;
use crate::task::{Awaited, DetachedTask, End, Promise, Refusal, Reminder, Task, TaskHandle};
use crate::worker::current::{AnyWorker, enter};

/// The group of the parts, where the model chooses it.
const GROUP: usize = 1;

/// The lane of a worker that runs nothing more itself: what is in there is for the thread that waits.
struct Worker {
    lane: Lane,
    idle: Idle,
    /// How many parts were pushed.
    pushed: AtomicUsize,
}

impl Worker {
    fn new() -> Arc<Self> {
        let (lane, idle) = (Lane::new(), Idle::new(Clusters::of_size(1, 1), 1, true));
        Arc::new(Self { lane, idle, pushed: AtomicUsize::new(0) })
    }

    fn push(&self, part: Task, group: usize) {
        self.pushed.fetch_add(1, Relaxed);
        self.lane.push(part, group);
        // There is no worker to wake, but the fence is passed.
        assert_eq!(self.idle.work_added(0), Announced::Quiet);
    }

    /// Runs `f` as the worker.
    fn enter(&self, f: impl FnOnce()) {
        // SAFETY: no pool has this id.
        unsafe { enter(1, self, &Demand::new(0, 1), f) };
    }
}

impl AnyWorker for Worker {
    fn push_local(&self, _: Task, _: u64) {
        unreachable!("nothing is spawned")
    }

    fn push_pieces(&self, pieces: &mut dyn Iterator<Item = Task>, group: usize) {
        pieces.for_each(|piece| self.push(piece, group));
    }

    fn wait(&self, _: &dyn Awaited, _: usize) {
        unreachable!("nobody waits here")
    }

    super::no_forks!();
}

fn run(task: Task) -> bool {
    let hook = Arc::new(PanicHook::default());
    let Some(started) = task.start() else { return false };
    let (_, ended) = started.execute(&hook);
    ended.deliver(Some(&hook));
    true
}

/// Waits as a thread of the pool does that has no core: steps W2, W4 and W6.
fn wait<T>(end: &TaskHandle<T>, starter: Option<&TaskHandle<()>>, worker: &Worker, group: usize) {
    if let Some(claimed) = starter.and_then(Awaited::claim) {
        let _ = claimed.execute(&Arc::new(PanicHook::default()));
        claimed.done();
    }
    let me = Arc::new(Listener::thread());
    if !end.listen(Arc::clone(&me)) {
        return;
    }
    full_fence(order::LISTEN);
    while !end.is_done() {
        match worker.lane.take(group, true) {
            Some(part) => assert!(run(part), "nobody else has it"),
            None => me.sleeper().park(),
        }
    }
}

/// A part of a scope pushes another one, and goes on only when that has run. Nobody but the thread that waits for the
/// scope can run it, and that thread goes to sleep.
fn part_against_sleep() {
    let (promise, end) = Promise::<()>::new();
    let worker = Worker::new();
    let ran = Arc::new(AtomicBool::new(false));
    let pusher = thread::spawn({
        let worker = Arc::clone(&worker);
        move || {
            let me = Arc::new(Listener::thread());
            let (has_run, notify) = (Arc::clone(&ran), Arc::clone(&me));
            let part = move || {
                has_run.store(true, Relaxed);
                notify.notify();
            };
            // SAFETY: it borrows nothing.
            let (task, handle) = unsafe { Task::new(part) };
            drop(handle);
            worker.push(task, GROUP);
            // SAFETY: the promise is fulfilled below.
            unsafe { promise.reminder().send() };
            while !ran.load(Relaxed) {
                me.sleeper().park();
            }
            promise.fulfil(Ok(Vec::new()), None);
        }
    });
    wait(&end, None, &worker, GROUP);
    pusher.join().unwrap();
    assert!(end.take().is_ok(), "the promise is kept");
}

/// A worker takes a batch out of a queue and starts or refuses it, while the thread that waits for the batch claims it.
/// It is started once at most. The thread that starts it runs the first closure, and the thread that waits the other one.
fn start_against_claim(refuses: bool) {
    let hook = Arc::new(PanicHook::default());
    let (handle, unstarted) =
        batch::new([7, 8].map(|n| move || Box::new(n)).into_iter(), &hook, Priority::Normal);
    let Unstarted { task, starter, .. } = unstarted.expect("not empty");
    let worker = Worker::new();
    let other = thread::spawn({
        let worker = Arc::clone(&worker);
        move || {
            worker.enter(|| {
                if refuses {
                    drop(task);
                } else {
                    run(task);
                }
            });
        }
    });
    worker.enter(|| wait(&handle, Some(&starter), &worker, handle.id()));
    let results = handle.take();
    drop(starter);
    other.join().unwrap();
    let started = worker.pushed.load(Relaxed);
    assert_eq!(results.ok(), (started == 1).then(|| vec![Box::new(7), Box::new(8)]));
    assert!(started == 1 || (refuses && started == 0), "it is started once");
}

/// What a batch counts: the part that starts it, and the only other one.
struct Counted {
    left: AtomicUsize,
    promise: UnsafeCell<Option<Promise<()>>>,
    reminder: Reminder,
}

// SAFETY: only the one who counts last touches the promise.
unsafe impl Sync for Counted {}

impl Counted {
    fn done(&self) {
        if self.left.fetch_sub(1, AcqRel) == 1 {
            // SAFETY: nobody else touches it.
            let promise = self.promise.with_mut(|promise| unsafe { (*promise).take() });
            promise.expect("there is one last").fulfil(Ok(Vec::new()), None);
        }
    }
}

/// Starts something with one other part.
struct Start {
    counted: Arc<Counted>,
    worker: Arc<Worker>,
    /// Is the start counted as well?
    counts: bool,
}

impl DetachedTask for Start {
    fn run(&mut self, _: &Arc<PanicHook>) -> End {
        let of_part = Arc::clone(&self.counted);
        // SAFETY: it borrows nothing.
        let (part, handle) = unsafe { Task::new(move || of_part.done()) };
        drop(handle);
        self.worker.push(part, GROUP);
        // SAFETY: the start is not done, if it is counted. If not, loom is to notice.
        unsafe { self.counted.reminder.send() };
        End::Completed
    }

    fn refuse(&mut self, _: Refusal) -> u64 {
        unreachable!("it runs")
    }

    fn finish(self) {
        if self.counts {
            self.counted.done();
        }
    }
}

/// As a batch does, the start of something pushes its only other part and reminds the thread that waits. That thread may have
/// run the part meanwhile.
fn reminder_against_end(counts: bool) {
    let (promise, end) = Promise::<()>::new();
    let (left, reminder) = (AtomicUsize::new(1 + usize::from(counts)), promise.reminder());
    let counted = Arc::new(Counted { left, promise: UnsafeCell::new(Some(promise)), reminder });
    let worker = Worker::new();
    let (task, starter) = Task::starter(Start { counted, worker: Arc::clone(&worker), counts });
    drop(starter);
    let other = thread::spawn(move || assert!(run(task)));
    wait(&end, None, &worker, GROUP);
    assert!(end.take().is_ok(), "the promise is kept");
    other.join().unwrap();
}

models! {
    waiting_part_against_sleep: part_against_sleep, None, 19_000;
    waiting_start_against_claim: || start_against_claim(false), None, 4_100;
    waiting_refusal_against_claim: || start_against_claim(true), None, 145;
    waiting_reminder_against_end: || reminder_against_end(true), None, 2_700;
}

/// A start that is not counted: this must fail.
pub(crate) const WRONG: &[Model] = &[Model {
    name: "waiting_start_not_counted",
    run: || reminder_against_end(false),
    preemptions: Some(3),
    floor: 0,
}];
