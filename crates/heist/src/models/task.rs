//! Models of a task: which side runs it, takes its outcome, and frees its slot.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Wake;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;

use super::explore::{Model, models};
use crate::api::batch::{self, Unstarted};
use crate::fork::demand::Demand;
use crate::panic::PanicHook;
use crate::priority::Priority;
use crate::sync::Arc;
use crate::task::listener::Listener;
use crate::task::returned::Returned;
use crate::task::{Awaited, Refusal, Task, TaskHandle};
use crate::worker::current::{AnyWorker, enter};

/// A closure's captured value or its result: counts its drops.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// Returns a task that returns what it has captured, and the number of times that this was dropped.
fn task() -> (Task, TaskHandle<Counted>, Arc<AtomicUsize>) {
    let drops = Arc::new(AtomicUsize::new(0));
    let counted = Counted(Arc::clone(&drops));
    // SAFETY: it borrows nothing.
    let (task, handle) = unsafe { Task::new(move || counted) };
    (task, handle, drops)
}

/// Does what a worker does with a task. Returns whether it has run it.
fn run(task: Task) -> bool {
    let hook = Arc::new(PanicHook::default());
    let Some(started) = task.start() else { return false };
    let (_, ended) = started.execute(&hook);
    ended.deliver(Some(&hook));
    true
}

/// Whether a worker refuses a task that was cancelled, as it must.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Revoked {
    Heeded,
    Ignored,
}

/// The handle cancels the task while a worker comes to it. A task that is said to be cancelled does not run.
fn run_against_cancel(revoked: Revoked) {
    let (task, handle, drops) = task();
    let ran = Arc::new(AtomicUsize::new(0));
    let runner = thread::spawn({
        let ran = Arc::clone(&ran);
        move || {
            let hook = Arc::new(PanicHook::default());
            let started = task.start().expect("the handle does not claim it");
            if started.is_revoked() && revoked == Revoked::Heeded {
                let (count, ended) = started.refuse(Refusal::Cancelled);
                assert_eq!(count, 1);
                return ended.deliver(Some(&hook));
            }
            ran.fetch_add(1, Relaxed);
            let (_, ended) = started.execute(&hook);
            ended.deliver(Some(&hook));
        }
    });
    let cancelled = handle.revoke();
    assert_eq!(cancelled, handle.is_revoked());
    drop(handle);
    runner.join().unwrap();
    assert_eq!(ran.load(Relaxed), usize::from(!cancelled), "{RUNS_CANCELLED}");
    assert_eq!(drops.load(Relaxed), 1);
}

/// What the model says of a cancelled task that runs.
pub(crate) const RUNS_CANCELLED: &str = "a cancelled task has run, or another one has not";

/// A worker that runs a task although that was cancelled: this must fail.
pub(crate) const WRONG: &[Model] = &[Model {
    name: "task_cancel_ignored",
    run: || run_against_cancel(Revoked::Ignored),
    preemptions: None,
    floor: 0,
}];

/// Waits as a thread outside does. The outcome can be taken afterwards.
fn wait<T>(handle: &TaskHandle<T>) {
    let listener = Arc::new(Listener::thread());
    if handle.listen(Arc::clone(&listener)) {
        while !handle.is_done() {
            listener.sleeper().park();
        }
    }
}

/// A thread waits while the task runs.
fn run_against_join() {
    let (task, handle, drops) = task();
    let runner = thread::spawn(move || assert!(run(task)));
    wait(&handle);
    let counted = handle.take().expect("it does not panic");
    assert_eq!(drops.load(Relaxed), 0);
    drop(counted);
    runner.join().unwrap();
    assert_eq!(drops.load(Relaxed), 1);
}

/// The handle is dropped while the task runs.
fn run_against_detach() {
    let (task, handle, drops) = task();
    let runner = thread::spawn(move || assert!(run(task)));
    drop(handle);
    runner.join().unwrap();
    assert_eq!(drops.load(Relaxed), 1);
}

/// The waiting thread runs the task itself, while a worker takes it out of a queue.
fn run_against_claim() {
    let (task, handle, drops) = task();
    let runner = thread::spawn(move || run(task));
    let claimed = match handle.claim() {
        Some(claimed) => {
            let hook = Arc::new(PanicHook::default());
            let _ = claimed.execute(&hook);
            claimed.done();
            true
        }
        None => {
            wait(&handle);
            false
        }
    };
    drop(handle.take().expect("it does not panic"));
    let ran = runner.join().unwrap();
    assert!(claimed != ran, "one of the two runs it");
    assert_eq!(drops.load(Relaxed), 1);
}

/// A handle that has registered a listener is dropped while the task runs.
fn run_against_listener_left() {
    let (task, handle, drops) = task();
    let runner = thread::spawn(move || assert!(run(task)));
    let listener = Arc::new(Listener::thread());
    handle.listen(Arc::clone(&listener));
    drop(handle);
    runner.join().unwrap();
    assert_eq!(drops.load(Relaxed), 1);
    assert_eq!(Arc::strong_count(&listener), 1, "nobody else has it any more");
}

/// The waiting thread has claimed the task and has another thread run it.
fn delegated() {
    let (task, handle, drops) = task();
    let claimed = handle.claim().expect("nobody else has");
    // SAFETY: the handle is kept until the end.
    let delegate = unsafe { claimed.delegate() };
    let runner = thread::spawn(move || {
        assert!(run(delegate));
        assert!(!run(task), "a stale entry");
    });
    wait(&handle);
    drop(handle.take().expect("it does not panic"));
    runner.join().unwrap();
    assert_eq!(drops.load(Relaxed), 1);
}

/// A waker with a place that is written before another thread knows of it.
struct Probe(UnsafeCell<()>);

// SAFETY: loom reports if it is touched at the wrong time, which is its purpose.
unsafe impl Sync for Probe {}
// SAFETY: loom reports if it is touched at the wrong time, which is its purpose.
unsafe impl Send for Probe {}

impl Wake for Probe {
    fn wake(self: Arc<Self>) {
        // The library catches a waker's panic, and would also catch a panic of loom's.
        if catch_unwind(AssertUnwindSafe(|| self.0.with(|_| ()))).is_err() {
            std::process::abort();
        }
    }
}

/// A future registers its waker while the task runs; the thread that wakes it sees all of it.
fn run_against_poll() {
    let (task, handle, drops) = task();
    let runner = thread::spawn(move || assert!(run(task)));
    let probe = Arc::new(Probe(UnsafeCell::new(())));
    probe.0.with_mut(|_| ());
    handle.listen(Arc::new(Listener::future(&probe.into())));
    runner.join().unwrap();
    drop(handle);
    assert_eq!(drops.load(Relaxed), 1);
}

/// A worker that runs every piece of a batch that was pushed on a new thread.
#[derive(Default)]
struct Threads {
    threads: RefCell<Vec<thread::JoinHandle<()>>>,
}

impl AnyWorker for Threads {
    fn push_local(&self, _: Task, _: u64) {
        unreachable!("nothing is spawned")
    }

    fn push_pieces(&self, pieces: &mut dyn Iterator<Item = Task>, _: usize) {
        let on_thread = |piece| thread::spawn(move || assert!(run(piece)));
        self.threads.borrow_mut().extend(pieces.map(on_thread));
    }

    fn wait(&self, _: &dyn Awaited, _: usize) {
        unreachable!("nobody waits here")
    }

    super::no_forks!();
}

/// The parts of a batch end on different threads; the last one sees all results.
fn batch_of_two() {
    let hook = Arc::new(PanicHook::default());
    let closures = [10, 20].map(|n| move || Box::new(n));
    let (handle, unstarted) = batch::new(closures.into_iter(), &hook, Priority::Normal);
    let Unstarted { task, starter, count } = unstarted.expect("not empty");
    assert_eq!(count, 2);
    drop(starter);
    let threads = Threads::default();
    // SAFETY: no pool has this id.
    unsafe { enter(1, &threads, &Demand::new(0, 1), || assert!(run(task))) };
    wait(&handle);
    assert_eq!(handle.take().expect("they do not panic"), [Box::new(10), Box::new(20)]);
    for thread in threads.threads.into_inner() {
        thread.join().unwrap();
    }
}

/// Two threads give the slots of a slab back. The one that is last frees the slab, with all slots in it.
fn slab_comes_back() {
    struct Slots {
        returned: Returned,
        used: [UnsafeCell<u8>; 2],
    }
    let slots = Arc::new(Slots {
        returned: Returned::none(),
        used: [UnsafeCell::new(0), UnsafeCell::new(0)],
    });
    let use_and_return = |slots: &Slots, own: usize| {
        // SAFETY: the slot is this thread's until it is given back.
        slots.used[own].with_mut(|used| unsafe { *used += 1 });
        if slots.returned.add(1, 2) {
            // SAFETY: both slots have come back.
            let uses = slots.used.each_ref().map(|used| used.with_mut(|used| unsafe { *used }));
            assert_eq!(uses, [1, 1]);
        }
    };
    let other = {
        let slots = Arc::clone(&slots);
        thread::spawn(move || use_and_return(&slots, 1))
    };
    use_and_return(&slots, 0);
    other.join().unwrap();
}

models! {
    task_slab: slab_comes_back, None, 2;
    task_join: run_against_join, None, 90;
    task_detach: run_against_detach, None, 8;
    task_cancel: || run_against_cancel(Revoked::Heeded), None, 40;
    task_claim: run_against_claim, None, 160;
    task_delegate: delegated, None, 580;
    task_poll: run_against_poll, None, 10;
    task_listener_left: run_against_listener_left, None, 36;
    task_batch: batch_of_two, Some(3), 50;
}
