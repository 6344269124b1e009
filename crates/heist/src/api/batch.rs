//! Batches: many tasks that enter the pool as one entry and are split as they spread.
//!
//! A batch is a list of closures and as many places for results. A *piece* is a task and a range of the list. What enters
//! the pool is the piece of the whole list, with a handle by which a thread that waits for the batch can claim it. The
//! thread that runs a piece keeps its first closure and pushes the rest to its lane, in pieces of which each is half of
//! what was left. So everything that is not running can be stolen, the largest pieces first, and each task runs one closure.
//!
//! A thread that runs a piece on top of a task that waits, or whose last tasks were short, keeps several closures, and runs them
//! by joins: the halves are private until another worker wants them. The closures of a batch may wait for each other, which those of a join may
//! not, so the halves must stay within reach while their thread is blocked. Workers that sleep are offered a half at each
//! fork, and workers that are awake raid.

use std::any::type_name;
use std::iter;
use std::mem::{self, ManuallyDrop};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use crate::api::call::OfferedLater;
use crate::api::join::fork;
use crate::fork::job;
use crate::order;
use crate::panic::{PanicHook, contain};
use crate::priority::Priority;
use crate::sync::{Arc, AtomicUsize, Padded, UnsafeCell};
use crate::task::{Control, DetachedTask, End, Failure, Promise, Refusal, Task, TaskHandle};
use crate::trace;
use crate::worker::current::with_worker;

/// The number of closures that share a counter of unfinished ones. Neighbours mostly run on the same worker, so
/// that the counter mostly stays in its cache. A guess.
#[cfg(not(any(loom, shuttle)))]
const GROUP: usize = 64;
/// Small, so that a checker sees several groups.
#[cfg(any(loom, shuttle))]
const GROUP: usize = 2;

/// A thread that waits, or whose last tasks were short, runs this many closures of a batch from one piece, and keeps them
/// private meanwhile. A guess: many enough that the lane costs little, and few enough that a thief, which takes half of them,
/// is soon at the end of a task.
#[cfg(not(any(loom, shuttle)))]
const KEPT: usize = 16;
/// Small, so that a checker sees what is kept and what is pushed.
#[cfg(any(loom, shuttle))]
const KEPT: usize = 2;

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
    /// For each group of entries, the number of those without an outcome. Empty if there is only one group.
    groups: Box<[Padded<AtomicUsize>]>,
    /// The number of groups that have entries without an outcome. If there is only one group, the number of its entries
    /// without an outcome.
    left: AtomicUsize,
    promise: Promise<T>,
    hook: Arc<PanicHook>,
    /// The control that all closures have, if their priority is not the normal one.
    control: Option<Arc<Control>>,
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
    /// The piece of all closures, which starts the batch.
    pub(crate) task: Task,
    /// The handle by which a thread that waits for the batch can claim `task`.
    pub(crate) starter: TaskHandle<()>,
    /// The number of closures.
    pub(crate) count: u64,
}

/// Returns the handle to the results of a batch of that priority, and what is to be put into a queue, unless the batch is
/// empty.
pub(crate) fn new<F, T>(
    tasks: impl Iterator<Item = F>,
    hook: &Arc<PanicHook>,
    priority: Priority,
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
    let (groups, left): (Box<[_]>, _) = if count <= GROUP {
        (Box::default(), count)
    } else {
        let of_group = |group| Padded(AtomicUsize::new(GROUP.min(count - group * GROUP)));
        let groups = count.div_ceil(GROUP);
        ((0..groups).map(of_group).collect(), groups)
    };
    let left = AtomicUsize::new(left);
    let is_normal = priority == Priority::Normal;
    let control = (!is_normal).then(|| Arc::new(Control::new(priority, None)));
    let batch = Batch { entries, groups, left, promise, hook: Arc::clone(hook), control };
    let piece = Piece { batch: NonNull::from(Box::leak(Box::new(batch))), range: 0..count };
    let (task, starter) = Task::starter(piece);
    (handle, Some(Unstarted { task, starter, count: count as u64 }))
}

impl<F, T> DetachedTask for Piece<F, T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    const PART: bool = true;

    fn name() -> &'static str {
        type_name::<F>()
    }

    fn group(&self) -> usize {
        self.batch().promise.id()
    }

    fn run(&mut self, _: &Arc<PanicHook>) -> End {
        let may_keep = self.range.len() > 1
            && with_worker(|worker| worker.may_keep_private(KEPT as u32)) == Some(true);
        self.push_all_but(if may_keep { KEPT } else { 1 });
        if self.range.len() == 1 {
            return self.run_closure(self.range.start);
        }
        with_worker(|worker| worker.answer_before_batch());
        let piece = Self { batch: self.batch, range: self.range.clone() };
        // The halves have the root of all parts of the batch, so that whoever waits for one of them can run the others.
        job::in_root(self.group(), || piece.run_private());
        End::Counted
    }

    fn refuse(&mut self, refusal: Refusal) -> u64 {
        self.range.clone().for_each(|index| self.refuse_closure(index, refusal));
        self.range.len() as u64
    }

    fn finish(self) {
        // SAFETY: the entries belong to this piece, which has run or refused them and ends here.
        unsafe { Batch::done(self.batch, &self.range) };
    }
}

impl<F, T> Piece<F, T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    /// Pushes all closures but the first ones, `kept` at most, to where every thread that waits for the batch can take
    /// them: the upper half, then the upper half of what is left, and so on. Then wakes the thread that waits for the
    /// batch, if one does.
    fn push_all_but(&mut self, kept: usize) {
        if self.range.len() <= kept {
            return;
        }
        let (batch, group) = (self.batch, self.group());
        let mut pieces = iter::from_fn(|| {
            if self.range.len() <= kept {
                return None;
            }
            let middle = self.range.start + self.range.len() / 2;
            let end = mem::replace(&mut self.range.end, middle);
            Some(Task::detached(Self { batch, range: middle..end }))
        });
        with_worker(|worker| worker.push_pieces(&mut pieces, group));
        // SAFETY: the closures that were kept have not run, so the batch is alive and the promise not fulfilled.
        unsafe { self.batch().promise.reminder().send() };
    }

    /// Runs all closures of the piece, by joins: the upper half stays private until another worker wants it. Counts each
    /// closure as a task.
    fn run_private(self) {
        let Range { start, end } = self.range;
        if end - start > 1 {
            let half = |range| Self { batch: self.batch, range };
            let middle = start + (end - start) / 2;
            let (lower, upper) = (half(start..middle), half(middle..end));
            let upper = ManuallyDrop::new(|| upper.run_private());
            fork::<OfferedLater, _, _, _, _>(|| lower.run_private(), upper);
            return;
        }
        // Each closure is a task of its own, and so is the root of what it forks.
        let end = job::isolated(|| {
            if with_worker(|worker| worker.is_cancelling()) == Some(true) {
                self.refuse_closure(start, Refusal::Cancelled);
                return End::Refused;
            }
            trace::task_named(&self, |_| Self::name(), |piece| piece.run_closure(start))
        });
        with_worker(|worker| worker.count(end));
    }

    /// Runs a closure of this piece, and keeps its outcome.
    fn run_closure(&self, index: usize) -> End {
        let Entry::Closure(closure) = self.exchange(index, Entry::Away) else {
            unreachable!("a closure is run once")
        };
        let call = || match &self.batch().control {
            None => closure(),
            // Each closure is a task of its own, and so is the root of what it forks.
            Some(control) => job::isolated_as(job::root_of(control), closure),
        };
        let (outcome, end) = match catch_unwind(AssertUnwindSafe(call)) {
            Ok(value) => (Ok(value), End::Completed),
            Err(payload) => (Err(Failure::panicked(payload, &self.batch().hook)), End::Panicked),
        };
        self.exchange(index, Entry::Outcome(outcome));
        end
    }

    /// Drops a closure of this piece, which will not run.
    fn refuse_closure(&self, index: usize, refusal: Refusal) {
        let closure = self.exchange(index, Entry::Outcome(Err(Failure::Refused(refusal))));
        contain(|| drop(closure));
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
    /// Notes that these entries have their outcomes. The batch may be gone before this returns, hence a pointer instead
    /// of `&self`.
    ///
    /// # Safety
    ///
    /// The entries belong to the caller and have their outcomes, and the caller calls this once for them. So the batch
    /// is alive.
    unsafe fn done(batch: NonNull<Self>, range: &Range<usize>) {
        // SAFETY: alive while the caller's entries are not done.
        let groups = unsafe { &(*batch.as_ptr()).groups };
        if groups.is_empty() {
            // SAFETY: the caller subtracts its entries once.
            return unsafe { Self::subtract(batch, range.len()) };
        }
        let mut start = range.start;
        while start < range.end {
            let group = start / GROUP;
            let end = range.end.min((group + 1) * GROUP);
            // SAFETY: alive while some of the caller's entries are not done.
            let groups = unsafe { &(*batch.as_ptr()).groups };
            let before = groups[group].fetch_sub(end - start, order::batch_done());
            if before == end - start {
                // SAFETY: these were the last entries of the group, which is subtracted once.
                unsafe { Self::subtract(batch, 1) };
            }
            start = end;
        }
    }

    /// Subtracts so many entries, or groups, from those that are left. If they were the last, fulfils the promise.
    ///
    /// # Safety
    ///
    /// The caller calls this once for these entries, which have their outcomes, or for these groups. So the batch is
    /// alive.
    unsafe fn subtract(batch: NonNull<Self>, done: usize) {
        // SAFETY: alive while the caller has not subtracted.
        let left = unsafe { &(*batch.as_ptr()).left };
        if left.fetch_sub(done, order::batch_done()) == done {
            // SAFETY: it came from a box, and all entries are done, so no other thread uses the batch.
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
