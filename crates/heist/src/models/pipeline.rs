//! Models of a pipeline's run (`../pipeline/README.md`): which workers are active, which threads sleep, and which are
//! notified.

use std::ptr::NonNull;
use std::task::{Context, Waker};

use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;

use super::explore::{Model, models};
use crate::cancel::Follower;
use crate::panic::PanicHook;
use crate::pipeline::models::{
    AfterPull, Control, Delivered, Feed, NextPull, PullPermission, Pulled, Rules, SendError,
    SleepKind, Source, TaskFactory, Turn, fed, token,
};
use crate::priority::Priority;
use crate::stats::Stats;
use crate::sync::Arc;
use crate::task::{DetachedTask, End, Refusal, Task};
use crate::worker::current::AnyPool;
use crate::worker::dump::PoolDump;
use crate::worker::inbox::Affinity;
use crate::worker::wait;

/// A pool without threads, which counts the worker tasks that it is given.
struct CountingPool {
    workers: usize,
    started: AtomicUsize,
}

impl AnyPool for CountingPool {
    fn push_job(&self, _: Task) {
        unreachable!("no forks")
    }

    fn push_remote_if_open(&self, task: Task) {
        self.started.fetch_add(1, Relaxed);
        drop(task);
    }

    fn submit(&self, _: Priority, _: Task, _: u64) {
        unreachable!("nobody has a handle to the pool")
    }

    fn near_worker(&self, _: Affinity) -> Option<usize> {
        None
    }

    fn submit_near(&self, _: usize, _: Task) {
        unreachable!("nothing is near a worker")
    }

    fn push_part_near(&self, _: usize, _: Task) -> Result<(), Task> {
        unreachable!("nothing is near a worker")
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }

    fn dump(&self) -> PoolDump {
        unreachable!("nobody looks at the pool")
    }

    fn workers(&self) -> usize {
        self.workers
    }

    fn max_workers(&self) -> usize {
        self.workers
    }

    fn ask_for_workers(&self, _: usize) {
        unreachable!("nobody has a handle to the pool")
    }

    fn id(&self) -> usize {
        NonNull::from(self).addr().get()
    }

    fn follow(&self, _: &Arc<dyn Follower>) {}
}

/// A worker task that is never run.
struct NoTask;

impl DetachedTask for NoTask {
    fn run(&mut self, _: &Arc<PanicHook>) -> End {
        unreachable!("not run")
    }

    fn refuse(&mut self, _: Refusal) -> u64 {
        1
    }

    fn finish(self) {}
}

struct NoTasks;

impl TaskFactory for NoTasks {
    fn worker_task(self: Arc<Self>, _: usize) -> Task {
        Task::detached(NoTask)
    }

    fn help(self: Arc<Self>, _: &dyn Fn() -> bool) -> bool {
        false
    }

    fn run_ended(&self) {}
}

struct Scene {
    control: Arc<Control>,
    pool: Arc<CountingPool>,
}

impl Scene {
    /// Makes a run with one worker, which is active.
    fn new(workers_pull: bool, max_batches: usize) -> Self {
        Self::with_workers(1, workers_pull, max_batches)
    }

    /// Makes a run of whose workers one is active, the first.
    fn with_workers(workers: usize, workers_pull: bool, max_batches: usize) -> Self {
        let pool = Arc::new(CountingPool { workers, started: AtomicUsize::new(0) });
        let rules =
            Rules { max_batches, max_weight: None, ordered: false, workers_pull, steals: true };
        let (control, _) = Control::new(rules, Arc::clone(&pool) as _);
        control.open(Arc::new(NoTasks));
        if workers_pull {
            control.begin();
        } else {
            control.batch_pushed(None);
        }
        assert_eq!(pool.started.swap(0, Relaxed), 1, "one worker task is started");
        Self { control, pool }
    }

    /// Returns how many worker tasks were started since.
    fn started(&self) -> usize {
        self.pool.started.load(Relaxed)
    }
}

fn pulled(batches: u64, after: AfterPull) -> Pulled {
    Pulled { batches, items: batches, weight: 0, next_weight: 0, after }
}

/// A batch is pushed (B1 to B4) while the only worker becomes inactive (W2 to W5). The queue is a relaxed
/// counter, which is the weakest queue possible.
fn give_against_rest() {
    let scene = Scene::new(false, 4);
    let queue = Arc::new(AtomicUsize::new(0));
    let worker = {
        let (control, queue) = (Arc::clone(&scene.control), Arc::clone(&queue));
        thread::spawn(move || control.try_deactivate(0, || queue.load(Relaxed) > 0))
    };
    queue.store(1, Relaxed);
    scene.control.batch_pushed(Some(0));
    let ends = worker.join().unwrap();
    assert!(!ends || scene.started() == 1, "no worker will see the batch");
    scene.control.close();
}

/// A token is pushed (G3) while the only worker becomes inactive (W2 to W5).
fn ready_against_rest() {
    let scene = Scene::new(false, 4);
    let worker = {
        let control = Arc::clone(&scene.control);
        thread::spawn(move || control.try_deactivate(0, || control.has_ready()))
    };
    scene.control.make_ready(&[token()]);
    let ends = worker.join().unwrap();
    assert!(!ends || scene.started() == 1, "no worker will see the batch");
    scene.control.close();
}

/// The order of a worker's steps R1 and R2.
#[derive(Clone, Copy, PartialEq)]
enum StepOrder {
    StoreFirst,
    /// The wrong order.
    NotifyFirst,
}

/// Results are stored (R1 to R4) while the consumer falls asleep (C1 to C5). If the consumer were not woken,
/// loom would report a deadlock. The outbox is a relaxed counter, which is the weakest outbox possible.
fn result_against_sleep(order: StepOrder) {
    let scene = Scene::new(false, 4);
    let outbox = Arc::new(AtomicUsize::new(0));
    let worker = {
        let (control, outbox) = (Arc::clone(&scene.control), Arc::clone(&outbox));
        thread::spawn(move || {
            let mut unannounced = 0;
            if order == StepOrder::StoreFirst {
                outbox.store(1, Relaxed);
                control.results_stored(0, &mut unannounced);
            } else {
                control.results_stored(0, &mut unannounced);
                outbox.store(1, Relaxed);
            }
        })
    };
    let came = || outbox.load(Relaxed) > 0;
    while !came() {
        let handle = scene.control.consumer_sleeps(&Delivered::default(), 0, SleepKind::Deep);
        let handle = handle.expect("the source has not ended");
        if !came() {
            wait::wait(&handle, 0);
        }
        scene.control.consumer_woke();
    }
    worker.join().unwrap();
    scene.control.close();
}

/// The only batch that may be in flight is delivered (S5) while the producer thread falls asleep (S4).
fn room_against_sleep() {
    let scene = Scene::new(false, 1);
    assert_eq!(scene.control.wait_to_pull(|| None).map(|grant| grant.batches), Some(1));
    assert!(
        scene.control.finish_pull(pulled(1, AfterPull::More), NextPull::Own).is_none(),
        "there is no room"
    );
    let producer = {
        let control = Arc::clone(&scene.control);
        thread::spawn(move || control.wait_to_pull(|| None).map(|grant| grant.next_batch))
    };
    scene.control.delivered(&Delivered { batches: 1, weight: 0, results: 1 });
    assert_eq!(producer.join().unwrap(), Some(1));
    scene.control.close();
}

/// The source says that it has no items while one is sent to it (S6). A worker must pull again.
fn ring_against_dry() {
    let scene = Scene::new(true, 4);
    scene.control.try_pull();
    let sender = {
        let control = Arc::clone(&scene.control);
        thread::spawn(move || control.source_ready())
    };
    scene.control.finish_pull(pulled(0, AfterPull::Pending), NextPull::Any(0));
    let ends = scene.control.try_deactivate(0, || false);
    sender.join().unwrap();
    assert!(!ends || scene.started() == 1, "no worker pulls from the source");
    scene.control.close();
}

/// What a worker does that has given up waiting for its turn, and has been granted a pull nevertheless.
#[derive(Clone, Copy, PartialEq)]
enum LateGrant {
    Used,
    /// The wrong way.
    Ignored,
}

/// A thread finishes its pull and hands the source on (T3, T4) while a worker waits for its turn and gives up (T1, T2). The
/// source must not be left with a worker that does not pull.
fn turn_against_giving_up(late: LateGrant) {
    let scene = Scene::new(true, 4);
    assert!(matches!(scene.control.try_pull(), PullPermission::Granted(_)));
    let waiter = {
        let control = Arc::clone(&scene.control);
        thread::spawn(move || match control.wait_for_turn(0, 1) {
            Turn::Granted(grant) if late == LateGrant::Used => {
                assert_eq!(grant.next_batch, 1, "the grant follows the pull before it");
                control.finish_pull(pulled(1, AfterPull::More), NextPull::Any(0));
            }
            _ => {}
        })
    };
    scene.control.finish_pull(pulled(1, AfterPull::More), NextPull::Any(0));
    waiter.join().unwrap();
    let permission = scene.control.try_pull();
    assert!(matches!(permission, PullPermission::Granted(_)), "no thread can pull any more");
    scene.control.close();
}

/// A thread hands the source on (T3, T4) while a worker waits for its turn, gives up, and comes back (T1, T2). It must not seem
/// to wait when it does not.
fn turn_of_one_that_comes_back() {
    let scene = Scene::new(true, 4);
    assert!(matches!(scene.control.try_pull(), PullPermission::Granted(_)));
    let waiter = {
        let control = Arc::clone(&scene.control);
        thread::spawn(move || {
            (0..2).any(|_| matches!(control.wait_for_turn(0, 1), Turn::Granted(_)))
        })
    };
    scene.control.finish_pull(pulled(1, AfterPull::More), NextPull::Any(0));
    let is_granted = waiter.join().unwrap();
    assert!(!scene.control.is_awaited(), "a worker that pulls seems to wait");
    if is_granted {
        scene.control.finish_pull(pulled(1, AfterPull::More), NextPull::Any(0));
    }
    scene.control.close();
}

/// Whether a worker that has waited for its turn looks for batches afterwards.
#[derive(Clone, Copy, PartialEq)]
enum AfterTurn {
    Looks,
    /// The wrong way.
    Leaves,
}

/// A thread that pulls pushes a batch (B1 to B4) while one worker waits for its turn and gives up (T1, T2), and then becomes
/// inactive (W2 to W5). Another worker is inactive. Either that one is started for the batch, or the first one sees it.
fn give_against_giving_up(after: AfterTurn) {
    let scene = Scene::with_workers(2, true, 4);
    assert!(matches!(scene.control.try_pull(), PullPermission::Granted(_)));
    let queue = Arc::new(AtomicUsize::new(0));
    let worker = {
        let (control, queue) = (Arc::clone(&scene.control), Arc::clone(&queue));
        thread::spawn(move || {
            let turn = control.wait_for_turn(0, 1);
            assert!(!matches!(turn, Turn::Granted(_)), "the source is not handed on");
            match after {
                AfterTurn::Looks => control.try_deactivate(0, || queue.load(Relaxed) > 0),
                AfterTurn::Leaves => true,
            }
        })
    };
    queue.store(1, Relaxed);
    scene.control.batch_pushed(None);
    let ends = worker.join().unwrap();
    assert!(!ends || scene.started() == 1, "no worker will see the batch");
    scene.control.close();
}

/// The source ends while the consumer falls asleep, and there are no results.
fn end_against_sleep() {
    let scene = Scene::new(true, 4);
    scene.control.try_pull();
    let worker = {
        let control = Arc::clone(&scene.control);
        thread::spawn(move || {
            drop(control.finish_pull(pulled(0, AfterPull::End), NextPull::Any(0)))
        })
    };
    while let Some(handle) =
        scene.control.consumer_sleeps(&Delivered::default(), 0, SleepKind::Deep)
    {
        wait::wait(&handle, 0);
        scene.control.consumer_woke();
    }
    worker.join().unwrap();
    assert!(scene.control.close().is_none());
}

/// How a sender gets into the line.
#[derive(Clone, Copy, PartialEq)]
enum LineUp {
    WhileFull,
    /// The wrong way: the feed may have made room since the sender has looked.
    Later,
}

/// Returns the items of the feed, as one thread takes them.
fn taken<T: Send>(feed: &mut Feed<T>) -> Vec<T> {
    let mut items = Vec::new();
    feed.fill(&mut items, 4, &|| false);
    items
}

/// A sender finds no room and waits (F1, F2) while the feed takes items (F3). If the sender were left in the line, loom would
/// report a deadlock.
fn line_against_room(way: LineUp) {
    let (sender, mut feed) = fed();
    sender.send(0).unwrap();
    let waiter = {
        let sender = sender.clone();
        thread::spawn(move || match (way, sender.try_send(1)) {
            (_, Ok(())) => Ok(()),
            (LineUp::WhileFull, Err(error)) => sender.send(error.into_inner()),
            (LineUp::Later, Err(error)) => sender.send_unseen(error.into_inner()),
        })
    };
    let mut items = taken(&mut feed);
    assert_eq!(waiter.join().unwrap(), Ok(()));
    items.extend(taken(&mut feed));
    assert_eq!(items, [0, 1]);
}

/// A sender waits (F2) while the feed is closed (F6). Its item is returned.
fn line_against_close() {
    let (sender, feed) = fed();
    sender.send(0).unwrap();
    let waiter = thread::spawn(move || sender.send(1));
    drop(feed);
    assert_eq!(waiter.join().unwrap(), Err(SendError(1)));
}

/// A future leaves the line (F5) while the feed takes items (F3). Its item is taken or dropped, and it leaves no room behind that
/// nobody can use.
fn leaving_against_room() {
    let (sender, mut feed) = fed();
    let item = Arc::new(());
    sender.send(None).unwrap();
    let leaver = {
        let (sender, item) = (sender.clone(), Arc::clone(&item));
        thread::spawn(move || {
            let mut future = std::pin::pin!(sender.send_async(Some(item)));
            let _ = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        })
    };
    let first = taken(&mut feed);
    leaver.join().unwrap();
    let second = taken(&mut feed);
    let delivered = first.into_iter().chain(second).flatten().count();
    assert!(delivered <= 1);
    assert_eq!(Arc::strong_count(&item), 1, "the item is neither kept nor lost");
    assert!(sender.try_send(None).is_ok(), "nobody can use the room");
}

// All of the line is under one lock. So there are as many executions as places at which the other thread may take it.
models! {
    pipeline_line_against_room: || line_against_room(LineUp::WhileFull), None, 4;
    pipeline_line_against_close: line_against_close, None, 3;
    pipeline_leaving_against_room: leaving_against_room, None, 40;
    pipeline_give_against_rest: give_against_rest, None, 30;
    pipeline_ready_against_rest: ready_against_rest, None, 30;
    pipeline_result_against_sleep: || result_against_sleep(StepOrder::StoreFirst), None, 1000;
    pipeline_room_against_sleep: room_against_sleep, None, 50;
    pipeline_ring_against_dry: ring_against_dry, None, 10;
    pipeline_turn_against_giving_up: || turn_against_giving_up(LateGrant::Used), None, 10;
    pipeline_turn_of_one_that_comes_back: turn_of_one_that_comes_back, None, 100;
    pipeline_give_against_giving_up: || give_against_giving_up(AfterTurn::Looks), None, 10;
    pipeline_end_against_sleep: end_against_sleep, None, 250;
}

/// The model with a worker's steps in the wrong order. It must fail.
pub(crate) const WRONG: &[Model] = &[Model {
    name: "pipeline_state_before_outbox",
    run: || result_against_sleep(StepOrder::NotifyFirst),
    preemptions: None,
    floor: 0,
}];

/// The model of a sender that gets into the line without a look. It must fail.
pub(crate) const WRONG_LINE: Model = Model {
    name: "pipeline_line_without_a_look",
    run: || line_against_room(LineUp::Later),
    preemptions: None,
    floor: 0,
};

/// The model of a worker that waits for its turn, and then does not look for batches. It must fail.
pub(crate) const WRONG_LOOK: Model = Model {
    name: "pipeline_waits_and_leaves",
    run: || give_against_giving_up(AfterTurn::Leaves),
    preemptions: None,
    floor: 0,
};

/// The model of a worker that ignores what it has been granted. It must fail.
pub(crate) const WRONG_TURN: Model = Model {
    name: "pipeline_turn_ignored",
    run: || turn_against_giving_up(LateGrant::Ignored),
    preemptions: None,
    floor: 0,
};
