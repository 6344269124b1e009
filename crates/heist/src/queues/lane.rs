//! A lane: the published parts of one thread's running tasks, such as second halves of joins and parts of scopes.
//!
//! The parts of a lane lie where all threads can reach them, with or without a core. Each belongs to a *group*: the
//! running task, or the isolated part of one, that it is a part of. A thread that waits takes parts of its own group,
//! wherever they lie, and leaves the others in their place. That is what the lock is for: a lock-free deque gives out
//! its ends only, and a part that was taken out in order to look at it is missing for whoever needs it.

use std::collections::VecDeque;

use crate::sync::{AtomicUsize, Mutex, MutexGuard, Ordering, lock, try_lock};
use crate::task::Task;

/// If a lane has at least this many parts of the oldest group, a thief takes several at once. So many are parts of a
/// scope, one like the other. Halves of joins and pieces of batches are fewer, and each is as large as all that follow.
const MANY: usize = if cfg!(any(loom, shuttle)) { 3 } else { 64 };
/// The number of parts that a thief takes beyond the one that it runs.
const MOVED: usize = if cfg!(any(loom, shuttle)) { 1 } else { 31 };

/// At least this many entries of a lane may be stale before they are looked for. A guess. Larger in a model than elsewhere,
/// because there every look at a state is explored.
const FEWEST: usize = if cfg!(shuttle) { 2 } else { 64 };

/// The published parts of one thread. The thread takes its newest part first, the others take the oldest one.
/// Aligned, because other threads look at it while they search, and must not meet there what its owner writes elsewhere.
#[repr(align(128))]
pub(crate) struct Lane {
    /// Twice the number of parts, and one more if the oldest may be stolen from afar: for looks without the lock. Written under
    /// the lock.
    ///
    /// Ordering: relaxed. A thread that must not miss a part has passed a fence, and so has the thread that has pushed
    /// it: see `idle/README.md`.
    seen: AtomicUsize,
    parts: Mutex<Parts>,
}

#[derive(Default)]
struct Parts {
    /// All parts, the oldest first.
    tasks: VecDeque<Task>,
    /// The groups of these tasks: how many tasks of the same group and kind follow each other. No count is zero.
    runs: VecDeque<Run>,
    /// When there are so many tasks, the stale entries are dropped before the next one is added.
    full: usize,
}

struct Run {
    group: usize,
    /// Do threads on the same NUMA node steal them first?
    is_near: bool,
    count: usize,
}

impl Lane {
    pub(crate) fn new() -> Self {
        Self { seen: AtomicUsize::new(0), parts: Mutex::new(Parts::default()) }
    }

    /// Returns whether there is a part.
    #[inline(always)]
    pub(crate) fn any(&self) -> bool {
        self.seen.load(Ordering::Relaxed) != 0
    }

    /// Returns the number of parts. It may be a moment old.
    pub(crate) fn len(&self) -> usize {
        self.seen.load(Ordering::Relaxed) / 2
    }

    /// Returns whether the oldest part may be stolen by threads on other NUMA nodes as well as by others. It may be a moment old.
    pub(crate) fn has_far_part(&self) -> bool {
        self.seen.load(Ordering::Relaxed) % 2 == 1
    }

    /// Returns whether there seem to be so many parts that [`steal_into`](Self::steal_into) moves some, if they are of the
    /// same group.
    pub(crate) fn has_many(&self) -> bool {
        self.len() >= MANY
    }

    /// Adds a part of that group as the newest.
    pub(crate) fn push(&self, task: Task, group: usize) {
        self.change(lock(&self.parts), |parts| parts.push(task, group));
    }

    /// Adds parts of that group, the newest last. The iterator runs under the lock.
    pub(crate) fn push_all(&self, tasks: impl Iterator<Item = Task>, group: usize) {
        self.change(lock(&self.parts), |parts| tasks.for_each(|task| parts.push(task, group)));
    }

    /// Removes the newest part.
    #[inline(always)]
    pub(crate) fn pop(&self) -> Option<Task> {
        if self.any() { self.pop_locked() } else { None }
    }

    #[inline(never)]
    fn pop_locked(&self) -> Option<Task> {
        self.change(lock(&self.parts), Parts::pop)
    }

    /// Removes the newest part, if `is_it` says so.
    pub(crate) fn pop_if(&self, is_it: impl FnOnce(&Task) -> bool) -> Option<Task> {
        if !self.any() {
            return None;
        }
        self.change(
            lock(&self.parts),
            |parts| {
                if is_it(parts.tasks.back()?) { parts.pop() } else { None }
            },
        )
    }

    /// Removes the oldest part. Returns `Err` if another thread holds the lock.
    pub(crate) fn steal(&self) -> Result<Option<Task>, ()> {
        if !self.any() {
            return Ok(None);
        }
        let parts = try_lock(&self.parts).ok_or(())?;
        Ok(self.change(parts, Parts::pop_oldest))
    }

    /// Removes the oldest part, as [`steal`](Self::steal) does. If it is one of many of the same group, moves some of the
    /// next ones to `own`, and also returns how many. A thread that looks into both lanes meanwhile may miss those: see
    /// `Shared::moving`.
    pub(crate) fn steal_into(&self, own: &Self) -> Result<Option<(Task, usize)>, ()> {
        if !self.any() {
            return Ok(None);
        }
        let from = try_lock(&self.parts).ok_or(())?;
        // It waits for no lock while it holds one, whatever the order of the two.
        let Some(to) = try_lock(&own.parts) else {
            return Ok(self.change(from, Parts::pop_oldest).map(|oldest| (oldest, 0)));
        };
        Ok(self.change(from, |from| {
            let &Run { group, is_near, count } = from.runs.front()?;
            let oldest = from.pop_oldest()?;
            let more = if count < MANY { 0 } else { MOVED };
            own.change(to, |to| {
                let mut next = || from.pop_oldest().expect("there are many");
                (0..more).for_each(|_| to.add(next(), group, is_near));
            });
            Some((oldest, more))
        }))
    }

    /// Removes a part of that group: the newest one. With `waits`, waits for the lock if another thread holds it;
    /// otherwise there is no part then.
    pub(crate) fn take(&self, group: usize, waits: bool) -> Option<Task> {
        if !self.any() {
            return None;
        }
        let parts = if waits { lock(&self.parts) } else { try_lock(&self.parts)? };
        self.change(parts, |parts| parts.take(group))
    }

    fn change<R>(&self, mut parts: MutexGuard<'_, Parts>, f: impl FnOnce(&mut Parts) -> R) -> R {
        let result = f(&mut parts);
        let may_be_far = parts.runs.front().is_some_and(|run| !run.is_near);
        self.seen.store(2 * parts.tasks.len() + usize::from(may_be_far), Ordering::Relaxed);
        result
    }
}

impl Parts {
    fn push(&mut self, task: Task, group: usize) {
        let is_near = task.is_near();
        self.add(task, group, is_near);
    }

    fn add(&mut self, task: Task, group: usize, is_near: bool) {
        if self.tasks.len() >= self.full {
            self.sweep();
        }
        self.tasks.push_back(task);
        match self.runs.back_mut() {
            Some(run) if (run.group, run.is_near) == (group, is_near) => run.count += 1,
            _ => self.runs.push_back(Run { group, is_near, count: 1 }),
        }
    }

    /// Drops the stale entries: parts of a scope that were claimed by their handles. So there are never many more of them
    /// than of other tasks.
    #[cold]
    fn sweep(&mut self) {
        for run in &mut self.runs {
            for _ in 0..run.count {
                let task = self.tasks.pop_front().expect("as many as the runs count");
                if task.is_stale() {
                    run.count -= 1;
                } else {
                    self.tasks.push_back(task);
                }
            }
        }
        self.runs.retain(|run| run.count > 0);
        self.full = FEWEST.max(2 * self.tasks.len());
    }

    /// Removes the newest task.
    fn pop(&mut self) -> Option<Task> {
        let task = self.tasks.pop_back()?;
        self.shorten(self.runs.len() - 1);
        Some(task)
    }

    /// Removes the oldest task.
    fn pop_oldest(&mut self) -> Option<Task> {
        let task = self.tasks.pop_front()?;
        self.shorten(0);
        Some(task)
    }

    /// Removes the newest task of that group.
    fn take(&mut self, group: usize) -> Option<Task> {
        let mut end = self.tasks.len();
        for (index, run) in self.runs.iter().enumerate().rev() {
            if run.group == group {
                self.shorten(index);
                return self.tasks.remove(end - 1);
            }
            end -= run.count;
        }
        None
    }

    /// Notes that a task of the run with that index is gone.
    fn shorten(&mut self, index: usize) {
        let run = &mut self.runs[index];
        run.count -= 1;
        if run.count == 0 {
            self.runs.remove(index);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::sync::Arc;
    use crate::task::{Awaited, TaskHandle};

    fn task() -> (Task, TaskHandle<()>) {
        // SAFETY: it borrows nothing.
        unsafe { Task::new(|| ()) }
    }

    fn claim(handle: &TaskHandle<()>) {
        let claimed = handle.claim().expect("it has not started");
        let _ = claimed.execute(&Arc::default());
        claimed.done();
    }

    #[test]
    fn stale_entries_do_not_pile_up() {
        let lane = Lane::new();
        let (kept, _handles): (Vec<_>, Vec<_>) = (0..10).map(|_| task()).unzip();
        let mut ids = Vec::new();
        for (n, task_kept) in kept.into_iter().enumerate() {
            ids.push(task_kept.id());
            lane.push(task_kept, n % 3);
            for group in 0..1_000 {
                let (stale, handle) = task();
                lane.push(stale, group % 3);
                claim(&handle);
            }
            assert!(lane.len() <= FEWEST + 1);
        }
        // What is left is in its order.
        let oldest = std::iter::from_fn(|| lane.steal().expect("no other thread"));
        let left: Vec<_> = oldest.filter(|task| !task.is_stale()).map(|task| task.id()).collect();
        assert_eq!(left, ids);
    }

    #[test]
    fn a_sweep_leaves_each_part_in_its_group() {
        let lane = Lane::new();
        let mut handles = Vec::new();
        let mut of_group = [const { Vec::new() }; 3];
        for n in 0..FEWEST + 1 {
            let (task, handle) = task();
            if n == FEWEST {
                // The next push sweeps.
                handles.iter().step_by(2).for_each(claim);
            }
            if n % 2 == 1 || n == FEWEST {
                of_group[n % 3].push(task.id());
            }
            lane.push(task, n % 3);
            handles.push(handle);
        }
        assert_eq!(lane.len(), FEWEST / 2 + 1);
        for (group, ids) in of_group.into_iter().enumerate() {
            let taken = std::iter::from_fn(|| lane.take(group, true)).map(|task| task.id());
            assert!(taken.eq(ids.into_iter().rev()), "the newest first");
        }
        assert!(!lane.any());
    }
}
