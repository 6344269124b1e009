//! Batches: many tasks that enter the pool as one entry and are split as they spread.
//!
//! A batch is a list of closures and as many places for results. What enters the pool is a task that starts the batch: a
//! thread that waits for the batch can claim it. It pushes the whole list as a *piece*, which is a task and a range of
//! the list, into the lane of its thread. The thread that runs a piece pushes the upper half back as a task of its own,
//! again and again, until one closure is left, and runs that one. So everything that is not running can be stolen, the
//! largest pieces first, and each task runs one closure.

use std::mem;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use crate::order;
use crate::panic::{PanicHook, contain};
use crate::sync::{Arc, AtomicUsize, Padded, UnsafeCell};
use crate::task::{DetachedTask, End, Failure, Promise, Refusal, Starter, Task, TaskHandle};
use crate::worker::current::with_worker;

/// The number of closures that share a counter of unfinished ones. Neighbours mostly run on the same worker, so
/// that the counter mostly stays in its cache. A guess.
#[cfg(not(any(loom, shuttle)))]
const GROUP: usize = 64;
/// Small, so that a checker sees several groups.
#[cfg(any(loom, shuttle))]
const GROUP: usize = 2;

/// One closure of a batch, and later its outcome.
enum Entry<F, T> {
    Closure(F),
    /// It is running, or its outcome was moved out.
    Away,
    Outcome(Result<T, Failure>),
}

struct Batch<F, T> {
    /// The closures and their outcomes. An entry is touched by the task that has it in its range; when all are done,
    /// by the task that ended last.
    entries: Box<[UnsafeCell<Entry<F, T>>]>,
    /// For each group of entries, the number of those without an outcome.
    groups: Box<[Padded<AtomicUsize>]>,
    /// The number of groups that have entries without an outcome, and one more until the batch has started.
    left: AtomicUsize,
    promise: Promise<T>,
    hook: Arc<PanicHook>,
}

// SAFETY: closures come from the thread that made the batch, and results go to the thread that waits; both are
// `Send`. Entries are touched by one thread at a time, as stated at the field, and the promise by the task that
// ends last.
unsafe impl<F: Send, T: Send> Sync for Batch<F, T> {}
// SAFETY: for the same reason.
unsafe impl<F: Send, T: Send> Send for Batch<F, T> {}

/// A range of a batch, as a task.
struct Piece<F, T> {
    /// Alive until the last of its entries is done, and so at least until this piece has reported its own. There is
    /// no reference count, because all workers would contend for it.
    batch: NonNull<Batch<F, T>>,
    /// The entries of this piece. Not empty, and disjoint from the ranges of all other pieces.
    range: Range<usize>,
}

// SAFETY: a piece is the right to use some entries of a batch, which is `Sync`.
unsafe impl<F: Send, T: Send> Send for Piece<F, T> {}

/// A batch that is not in a queue yet.
pub(crate) struct Unstarted {
    /// Starts the batch.
    pub(crate) task: Task,
    /// The handle by which a thread that waits for the batch can claim `task`.
    pub(crate) starter: TaskHandle<()>,
    /// The number of closures.
    pub(crate) count: u64,
}

/// Returns the handle to the results of a batch, and what is to be put into a queue, unless the batch is empty.
pub(crate) fn new<F, T>(
    tasks: impl Iterator<Item = F>,
    hook: &Arc<PanicHook>,
) -> (TaskHandle<Vec<T>>, Option<Unstarted>)
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let entries: Box<[_]> = tasks.map(|task| UnsafeCell::new(Entry::Closure(task))).collect();
    let (promise, handle) = Promise::new();
    let count = entries.len();
    if count == 0 {
        promise.fulfil(Ok(Vec::new()), Some(hook));
        return (handle, None);
    }
    let of_group = |group| Padded(AtomicUsize::new(GROUP.min(count - group * GROUP)));
    let groups: Box<[_]> = (0..count.div_ceil(GROUP)).map(of_group).collect();
    let batch = Batch {
        entries,
        left: AtomicUsize::new(groups.len() + 1),
        groups,
        promise,
        hook: Arc::clone(hook),
    };
    let piece = Piece { batch: NonNull::from(Box::leak(Box::new(batch))), range: 0..count };
    let (task, starter) = Task::starter(Start(piece));
    (handle, Some(Unstarted { task, starter, count: count as u64 }))
}

impl<F, T> DetachedTask for Piece<F, T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    const PART: bool = true;

    fn group(&self) -> usize {
        self.batch().promise.id()
    }

    fn run(&mut self, _: &Arc<PanicHook>) -> End {
        while self.range.len() > 1 {
            let middle = self.range.start + self.range.len() / 2;
            let upper = Self { batch: self.batch, range: middle..self.range.end };
            self.range.end = middle;
            upper.push();
            self.batch().remind();
        }
        let Entry::Closure(closure) = self.exchange(self.range.start, Entry::Away) else {
            unreachable!("a closure is run once")
        };
        let (outcome, end) = match catch_unwind(AssertUnwindSafe(closure)) {
            Ok(value) => (Ok(value), End::Completed),
            Err(payload) => (Err(Failure::panicked(payload, &self.batch().hook)), End::Panicked),
        };
        self.exchange(self.range.start, Entry::Outcome(outcome));
        end
    }

    fn refuse(&mut self, refusal: Refusal) -> u64 {
        for index in self.range.clone() {
            let closure = self.exchange(index, Entry::Outcome(Err(Failure::Refused(refusal))));
            contain(|| drop(closure));
        }
        self.range.len() as u64
    }

    fn finish(self) {
        // SAFETY: the entries belong to this piece, which has run or refused them and ends here.
        unsafe { Batch::done(self.batch, &self.range) };
    }
}

/// Starts a batch: pushes the piece of all its entries. It counts as one more group, so that the batch is alive.
struct Start<F, T>(Piece<F, T>);

impl<F, T> Starter for Start<F, T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    fn start(self) {
        let batch = self.0.batch;
        self.0.push();
        // SAFETY: alive until the starter is done, which is below.
        unsafe { batch.as_ref() }.remind();
        // SAFETY: this is its end.
        unsafe { Batch::group_done(batch) };
    }

    fn refuse(&mut self, refusal: Refusal) -> u64 {
        self.0.refuse(refusal)
    }

    fn finish(self) {
        let batch = self.0.batch;
        self.0.finish();
        // SAFETY: this is its end.
        unsafe { Batch::group_done(batch) };
    }
}

impl<F, T> Piece<F, T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    /// Pushes the piece to where every thread that waits for the batch can take it.
    fn push(self) {
        with_worker(|worker| worker.push_piece(Task::detached(self)));
    }
}

impl<F, T> Piece<F, T> {
    fn batch(&self) -> &Batch<F, T> {
        // SAFETY: the batch is alive, because the entries of this piece are not done.
        unsafe { self.batch.as_ref() }
    }

    /// Replaces an entry of this piece.
    fn exchange(&self, index: usize, entry: Entry<F, T>) -> Entry<F, T> {
        debug_assert!(self.range.contains(&index), "another's entry");
        self.batch().entries[index].with_mut(|place| {
            // SAFETY: the entry belongs to this piece, and a piece is used by one thread at a time.
            unsafe { mem::replace(&mut *place, entry) }
        })
    }
}

impl<F, T: Send> Batch<F, T> {
    /// Wakes the thread that waits for the batch, if one does, because a piece was pushed.
    fn remind(&self) {
        // SAFETY: the caller has a reference, so the batch is alive and the promise not fulfilled.
        unsafe { self.promise.reminder().send() };
    }

    /// Notes that these entries have their outcomes. The batch may be gone before this returns, hence a pointer instead
    /// of `&self`.
    ///
    /// # Safety
    ///
    /// The entries belong to the caller and have their outcomes, and the caller calls this once for them. So the batch
    /// is alive.
    unsafe fn done(batch: NonNull<Self>, range: &Range<usize>) {
        let mut start = range.start;
        while start < range.end {
            let group = start / GROUP;
            let end = range.end.min((group + 1) * GROUP);
            // SAFETY: alive while some of the caller's entries are not done.
            let groups = unsafe { &(*batch.as_ptr()).groups };
            let before = groups[group].fetch_sub(end - start, order::batch_done());
            if before == end - start {
                // SAFETY: these were the last entries of the group, which is noted once.
                unsafe { Self::group_done(batch) };
            }
            start = end;
        }
    }

    /// Notes that a group is done, or the start of the batch. If it was the last, fulfils the promise.
    ///
    /// # Safety
    ///
    /// The caller calls this once for that group, all of whose entries are done, or for the start. So the batch is
    /// alive.
    unsafe fn group_done(batch: NonNull<Self>) {
        // SAFETY: alive while the caller has not subtracted this group.
        let left = unsafe { &(*batch.as_ptr()).left };
        if left.fetch_sub(1, order::batch_done()) == 1 {
            // SAFETY: it came from a box, and all entries and the start are done, so no other thread uses the batch.
            let batch = unsafe { Box::from_raw(batch.as_ptr()) };
            (*batch).keep_promise();
        }
    }

    /// Fulfils the promise. All entries are done.
    #[cold]
    fn keep_promise(self) {
        let Self { entries, promise, hook, .. } = self;
        let mut results = Vec::with_capacity(entries.len());
        let mut failure = None;
        for entry in entries {
            let outcome = entry.with_mut(|place| {
                // SAFETY: no other thread uses the entries any more, and `batch_done` orders their writes before
                // this.
                unsafe { mem::replace(&mut *place, Entry::Away) }
            });
            match outcome {
                Entry::Outcome(Ok(result)) => results.push(result),
                Entry::Outcome(Err(first)) if failure.is_none() => failure = Some(first),
                Entry::Outcome(Err(other)) => other.report(),
                Entry::Closure(_) | Entry::Away => unreachable!("all are done"),
            }
        }
        match failure {
            None => promise.fulfil(Ok(results), Some(&hook)),
            Some(failure) => {
                // One by one, because each may panic.
                results.into_iter().for_each(|result| contain(|| drop(result)));
                promise.fulfil(Err(failure), Some(&hook));
            }
        }
    }
}
