//! Models of a thread that waits for what tasks do one after the other, such as the polls of a future: it claims the latest task,
//! while a worker takes that out of a queue, and the next one is made.

use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;

use super::explore::{Model, models};
use crate::panic::PanicHook;
use crate::sync::{Arc, Mutex, lock};
use crate::task::{Awaited, DetachedTask, End, Latest, Refusal, Task};

/// What a queue has, and what is counted.
#[derive(Default)]
struct Pool {
    queue: Mutex<Option<Task>>,
    submitted: AtomicUsize,
    ended: AtomicUsize,
}

impl Pool {
    fn push(&self, task: Task) {
        self.submitted.fetch_add(1, Relaxed);
        *lock(&self.queue) = Some(task);
    }

    /// Counts the end of a task, as a worker does that has run it.
    fn count(&self) {
        let ended = self.ended.fetch_add(1, Relaxed) + 1;
        assert!(self.submitted.load(Relaxed) >= ended, "{UNCOUNTED}");
    }

    /// Runs what is in the queue, if there is something, as a worker does. Returns whether it has run something.
    fn run_next(&self) -> bool {
        let next = lock(&self.queue).take();
        let Some(started) = next.and_then(Task::start) else { return false };
        let (_, ended) = started.execute(&Arc::new(PanicHook::default()));
        self.count();
        ended.deliver(None);
        true
    }
}

/// What the polls of a future do: the first makes the second one, and the second is the last.
struct Poll {
    all: Arc<All>,
    number: usize,
}

struct All {
    pool: Pool,
    latest: Latest,
    polls: AtomicUsize,
    finished: AtomicUsize,
    order: Order,
}

/// When the handle of a task is left for the thread that waits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// When the task was pushed, and so counted.
    AfterPush,
    /// Before that.
    BeforePush,
}

impl All {
    fn new(order: Order) -> Arc<Self> {
        let [polls, finished] = [0, 0].map(AtomicUsize::new);
        Arc::new(Self { pool: Pool::default(), latest: Latest::new(), polls, finished, order })
    }

    /// Does what the wake-up of a future does.
    fn schedule(all: &Arc<Self>, poll: usize) {
        let number = all.latest.next();
        let (task, handle) = Task::starter(Poll { all: Arc::clone(all), number: poll });
        if all.order == Order::BeforePush {
            all.latest.leave(number, handle);
            return all.pool.push(task);
        }
        all.pool.push(task);
        all.latest.leave(number, handle);
    }

    /// Claims the latest task, as a thread that begins to wait does. Returns whether it has run one.
    fn claim(&self) -> bool {
        let Some(handle) = self.latest.take() else { return false };
        let Some(claimed) = handle.claim() else { return false };
        let _ = claimed.execute(&Arc::new(PanicHook::default()));
        self.pool.count();
        claimed.done();
        true
    }
}

impl DetachedTask for Poll {
    fn run(&mut self, _: &Arc<PanicHook>) -> End {
        assert_eq!(self.all.polls.fetch_add(1, Relaxed), self.number, "one poll after the other");
        if self.number == 0 {
            All::schedule(&self.all, 1);
        }
        End::Completed
    }

    fn refuse(&mut self, _: Refusal) -> u64 {
        unreachable!("it is run")
    }

    fn finish(self) {
        self.all.finished.fetch_add(1, Relaxed);
    }
}

/// A thread spawns a future, a worker takes the polls out of the queue, and another thread waits for the future.
fn claim_against_run(order: Order) {
    let all = All::new(order);
    let worker = thread::spawn({
        let all = Arc::clone(&all);
        move || usize::from(all.pool.run_next())
    });
    let waiter = thread::spawn({
        let all = Arc::clone(&all);
        move || usize::from(all.claim())
    });
    All::schedule(&all, 0);
    let mut ran = worker.join().unwrap() + waiter.join().unwrap();
    // In the end a worker comes to what is left.
    for _ in 0..2 {
        ran += usize::from(all.pool.run_next());
    }
    let counts = [&all.polls, &all.finished, &all.pool.ended, &all.pool.submitted];
    assert_eq!((ran, counts.map(|count| count.load(Relaxed))), (2, [2; 4]));
    // What is left here is a stale handle, which has the last reference to its slot.
    drop(all.latest.take());
    assert_eq!(Arc::strong_count(&all), 1, "no task is kept");
}

/// What the model says of a task whose end is counted before its beginning.
pub(crate) const UNCOUNTED: &str = "a poll has ended that was not submitted";

/// What the model says of a handle that hides a newer one.
pub(crate) const HIDDEN: &str = "the thread that waits cannot claim the queued poll";

/// The first poll runs on a worker before its handle is left. The handle comes late, and must not replace that of the second poll,
/// which is queued and which a thread that waits then claims. `numbered` says whether it says that it is late.
fn late_handle(numbered: bool) {
    let all = All::new(Order::AfterPush);
    let first = all.latest.next();
    let (task, handle) = Task::starter(Poll { all: Arc::clone(&all), number: 0 });
    all.pool.push(task);
    let worker = thread::spawn({
        let all = Arc::clone(&all);
        move || assert!(all.pool.run_next())
    });
    if numbered {
        all.latest.leave(first, handle);
        worker.join().unwrap();
    } else {
        worker.join().unwrap();
        let now = all.latest.next();
        all.latest.leave(now, handle);
    }
    assert!(all.claim(), "{HIDDEN}");
    assert!(!all.pool.run_next(), "a stale entry");
    assert_eq!(all.polls.load(Relaxed), 2);
}

/// A handle that is left before its task is counted, and one that does not say that it is late: these must fail.
pub(crate) const WRONG: &[Model] = &[
    Model {
        name: "latest_before_push",
        run: || claim_against_run(Order::BeforePush),
        preemptions: Some(3),
        floor: 0,
    },
    Model { name: "latest_unnumbered", run: || late_handle(false), preemptions: None, floor: 0 },
];

models! {
    latest_claim_against_run: || claim_against_run(Order::AfterPush), Some(3), 580;
    latest_late_handle: || late_handle(true), None, 7;
}
