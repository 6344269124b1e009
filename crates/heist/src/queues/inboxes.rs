//! The inboxes of a pool: for each worker, what was spawned near it.
//!
//! The worker itself takes from its inbox before it searches. Others take from there as well, later: `worker/inbox.rs` says when.

use super::grouped::Grouped;
use crate::sync::{AtomicUsize, Mutex, Ordering, Padded, lock};
use crate::task::Task;

/// The group of a task that is no part of anything. No root and no batch has this number. (Zero is the root of what a thread does
/// before its first task.)
pub(crate) const NO_GROUP: usize = usize::MAX;

/// The inbox of one worker.
struct Inbox {
    /// The place of the thread that has the worker's core, or had it last. Written by that thread when it gets the core.
    ///
    /// Ordering: relaxed. It only says which sleeper is best woken.
    holder: AtomicUsize,
    entries: Mutex<Grouped>,
}

pub(crate) struct Inboxes {
    /// The number of entries in all inboxes, which is zero as a rule. Changed under the lock of the inbox. Padded, because every
    /// worker reads it whenever its own queues are empty.
    ///
    /// Ordering: relaxed. A worker that must not miss an entry has passed a fence, and so has the thread that has pushed it: see
    /// `idle/README.md`, steps P1 to P4. The entries themselves are ordered by the locks.
    waiting: Padded<AtomicUsize>,
    /// The number of those entries that have a group: [`waiting`](Self::waiting) says the same of this one. A thread that waits for
    /// a part looks at it often, and need not look into inboxes with other entries.
    parts: Padded<AtomicUsize>,
    /// By the number of the worker.
    inboxes: Box<[Padded<Inbox>]>,
}

impl Inboxes {
    /// Returns the inboxes of that many workers.
    pub(crate) fn new(workers: usize) -> Self {
        let inbox = |worker| {
            // As long as no thread waits inside a task, the worker's number is its place.
            let entries = Mutex::new(Grouped::new());
            Padded(Inbox { holder: AtomicUsize::new(worker), entries })
        };
        let inboxes = (0..workers).map(inbox).collect();
        Self { waiting: Padded(AtomicUsize::new(0)), parts: Padded(AtomicUsize::new(0)), inboxes }
    }

    /// Returns the number of inboxes: that of the workers, or zero in an engine.
    pub(crate) fn count(&self) -> usize {
        self.inboxes.len()
    }

    /// Returns whether an inbox has an entry.
    #[inline(always)]
    pub(crate) fn any(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) != 0
    }

    /// Returns whether an inbox has a part of a group.
    #[inline]
    pub(crate) fn any_part(&self) -> bool {
        self.parts.load(Ordering::Relaxed) != 0
    }

    /// Notes that the thread in that place has the core of that worker from now on.
    pub(crate) fn note_holder(&self, worker: usize, place: usize) {
        if let Some(inbox) = self.inboxes.get(worker) {
            inbox.holder.store(place, Ordering::Relaxed);
        }
    }

    /// Returns the place of the thread that has the core of that worker, or had it last.
    pub(crate) fn holder(&self, worker: usize) -> usize {
        self.inboxes[worker].holder.load(Ordering::Relaxed)
    }

    /// Adds what is near that worker, and is a part of that group.
    pub(crate) fn push(&self, worker: usize, task: Task, group: usize) {
        let mut entries = lock(&self.inboxes[worker].entries);
        if entries.is_full() {
            let before = (entries.len(), entries.parts());
            entries.drop_stale();
            self.count_removed(before.0 - entries.len(), before.1 - entries.parts());
        }
        if group != NO_GROUP {
            self.parts.fetch_add(1, Ordering::Relaxed);
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        entries.push(task, group);
    }

    /// Removes the oldest entry of that worker. Drops stale ones that are older.
    #[inline]
    pub(crate) fn pop(&self, worker: usize) -> Option<Task> {
        if self.any() { self.pop_locked(worker, None) } else { None }
    }

    /// Removes the oldest entry of another worker than that one, of the nearest one that has any.
    pub(crate) fn pop_of_others(&self, worker: usize) -> Option<Task> {
        let count = self.inboxes.len();
        (worker + 1..count).chain(0..worker.min(count)).find_map(|other| self.pop(other))
    }

    /// Removes the oldest entry of all.
    pub(crate) fn pop_any(&self) -> Option<Task> {
        (0..self.inboxes.len()).find_map(|worker| self.pop(worker))
    }

    /// Like [`pop`](Self::pop), if the oldest entry is the same as when [`look`](Self::look) returned that number.
    pub(crate) fn pop_if_left(&self, worker: usize, seen: u64) -> Option<Task> {
        if self.any() { self.pop_locked(worker, Some(seen)) } else { None }
    }

    #[cold]
    fn pop_locked(&self, worker: usize, seen: Option<u64>) -> Option<Task> {
        let mut entries = lock(&self.inboxes[worker].entries);
        if seen.is_some() && seen != entries.oldest() {
            return None;
        }
        loop {
            let (oldest, group) = entries.pop()?;
            self.count_removed(1, usize::from(group != NO_GROUP));
            if !oldest.is_stale() {
                return Some(oldest);
            }
        }
    }

    /// Returns the number of the oldest entry of that worker. No other entry has that number.
    pub(crate) fn look(&self, worker: usize) -> Option<u64> {
        lock(&self.inboxes[worker].entries).oldest()
    }

    /// Removes the oldest part of that group that is near that worker. It may be stale.
    pub(crate) fn take(&self, worker: usize, group: usize) -> Option<Task> {
        if !self.any_part() {
            return None;
        }
        let mut entries = lock(&self.inboxes[worker].entries);
        let part = entries.take(group)?;
        self.count_removed(1, 1);
        Some(part)
    }

    /// Returns the number of entries of each worker. They are only shown.
    pub(crate) fn lengths(&self) -> Vec<usize> {
        self.inboxes.iter().map(|inbox| lock(&inbox.entries).len()).collect()
    }

    /// Notes that so many entries were removed, and how many of these were parts.
    fn count_removed(&self, count: usize, parts: usize) {
        if count > 0 {
            self.waiting.fetch_sub(count, Ordering::Relaxed);
        }
        if parts > 0 {
            self.parts.fetch_sub(parts, Ordering::Relaxed);
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
    fn the_oldest_comes_first() {
        let inboxes = Inboxes::new(3);
        let tasks: [_; 3] = std::array::from_fn(|_| task().0);
        let ids = tasks.each_ref().map(Task::id);
        for (task, worker) in tasks.into_iter().zip([1, 1, 2]) {
            inboxes.push(worker, task, NO_GROUP);
        }
        assert_eq!(inboxes.lengths(), [0, 2, 1]);
        let id = |task: Option<Task>| task.map(|task| task.id());
        assert_eq!(id(inboxes.pop(0)), None);
        assert_eq!(id(inboxes.pop_of_others(2)), Some(ids[0]), "around the end");
        assert_eq!((inboxes.look(1), inboxes.look(0)), (Some(1), None));
        assert_eq!(id(inboxes.pop_if_left(1, 0)), None);
        assert_eq!(id(inboxes.pop_if_left(1, 1)), Some(ids[1]));
        assert_eq!(id(inboxes.pop_any()), Some(ids[2]));
        assert!(!inboxes.any());
    }

    #[test]
    fn a_part_of_a_group_is_found_among_others() {
        let inboxes = Inboxes::new(1);
        let [other, part] = [task().0, task().0];
        let ids = [other.id(), part.id()];
        inboxes.push(0, other, NO_GROUP);
        inboxes.push(0, part, 8);
        assert!(inboxes.take(0, 16).is_none());
        assert!(inboxes.any_part());
        assert_eq!(inboxes.take(0, 8).map(|task| task.id()), Some(ids[1]));
        assert!(inboxes.take(0, 8).is_none());
        assert!(!inboxes.any_part());
        assert_eq!(inboxes.look(0), Some(0), "the oldest is still there");
        assert_eq!(inboxes.pop(0).map(|task| task.id()), Some(ids[0]));
    }

    #[test]
    fn parts_are_counted_however_they_leave() {
        let inboxes = Inboxes::new(1);
        let push = |group| {
            let (task, handle) = task();
            inboxes.push(0, task, group);
            handle
        };
        let _kept = [push(8), push(NO_GROUP), push(8)];
        let seen = inboxes.look(0).expect("there are some");
        assert!(inboxes.take(0, 8).is_some());
        assert!(inboxes.pop_if_left(0, seen).is_none(), "another one is the oldest now");
        assert!(inboxes.pop(0).is_some());
        assert!(inboxes.any_part());
        assert!(inboxes.pop(0).is_some());
        assert!(!inboxes.any_part());
        // Stale ones leave when an inbox is full.
        for _ in 0..1_000 {
            claim(&push(8));
        }
        assert!(inboxes.parts.load(Ordering::Relaxed) <= 8);
        assert_eq!(inboxes.parts.load(Ordering::Relaxed), inboxes.lengths()[0]);
    }

    #[test]
    fn stale_entries_are_dropped() {
        let inboxes = Inboxes::new(1);
        for _ in 0..10_000 {
            let (task, handle) = task();
            inboxes.push(0, task, NO_GROUP);
            claim(&handle);
            assert!(inboxes.lengths()[0] <= 8, "they make an inbox no longer");
        }
        assert!(inboxes.pop(0).is_none());
        assert!(!inboxes.any());
    }
}
