//! A queue from which the oldest entry is taken, or the oldest one of a group, however many entries of others there are.

use std::collections::{BTreeMap, VecDeque};

use super::NO_GROUP;
use super::global::make_room;
use crate::task::Task;

pub(super) struct Grouped {
    /// The oldest first, by their numbers. What is taken from the middle leaves its place behind, until that is the oldest or the
    /// queue is full. The oldest entry has its task.
    entries: VecDeque<Entry>,
    /// The number of entries that have their task.
    len: usize,
    /// The number of the next entry.
    next: u64,
    /// The numbers of the entries of each group that have their task, the oldest first. No list is empty.
    groups: BTreeMap<usize, VecDeque<u64>>,
}

struct Entry {
    number: u64,
    group: usize,
    task: Option<Task>,
}

impl Entry {
    fn is_stale(&self) -> bool {
        self.task.as_ref().is_none_or(Task::is_stale)
    }
}

impl Grouped {
    pub(super) const fn new() -> Self {
        Self { entries: VecDeque::new(), len: 0, next: 0, groups: BTreeMap::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of entries that belong to a group.
    pub(super) fn parts(&self) -> usize {
        self.groups.values().map(VecDeque::len).sum()
    }

    /// Returns the number of the oldest entry. No other entry has the same number, at any time.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.entries.front().map(|oldest| oldest.number)
    }

    /// Returns whether the next push would need more memory. Then [`drop_stale`](Self::drop_stale) is due.
    pub(super) fn is_full(&self) -> bool {
        self.entries.len() == self.entries.capacity()
    }

    /// Drops the stale entries of a full queue, and lets it grow if that leaves it more than half full.
    pub(super) fn drop_stale(&mut self) {
        make_room(&mut self.entries, Entry::is_stale);
        self.len = self.entries.len();
        self.groups.clear();
        for Entry { number, group, .. } in &self.entries {
            if *group != NO_GROUP {
                self.groups.entry(*group).or_default().push_back(*number);
            }
        }
    }

    /// Adds a task as the newest, which is a part of that group.
    pub(super) fn push(&mut self, task: Task, group: usize) {
        let number = self.next;
        self.next += 1;
        if group != NO_GROUP {
            self.groups.entry(group).or_default().push_back(number);
        }
        self.entries.push_back(Entry { number, group, task: Some(task) });
        self.len += 1;
    }

    /// Removes the oldest entry, and returns its group as well.
    pub(super) fn pop(&mut self) -> Option<(Task, usize)> {
        let Entry { group, task, .. } = self.entries.pop_front()?;
        if group != NO_GROUP {
            // The oldest of all is the oldest of its group.
            self.pop_number(group);
        }
        self.after_removal();
        Some((task.expect("the oldest has its task"), group))
    }

    /// Removes the oldest entry of that group.
    pub(super) fn take(&mut self, group: usize) -> Option<Task> {
        let number = self.pop_number(group)?;
        let at = self.entries.partition_point(|entry| entry.number < number);
        let task = self.entries[at].task.take();
        self.after_removal();
        task
    }

    /// Removes the number of the oldest entry of that group.
    fn pop_number(&mut self, group: usize) -> Option<u64> {
        let numbers = self.groups.get_mut(&group)?;
        let number = numbers.pop_front();
        if numbers.is_empty() {
            self.groups.remove(&group);
        }
        number
    }

    /// Counts a task that is gone, and removes the places that nothing older keeps.
    fn after_removal(&mut self) {
        self.len -= 1;
        while self.entries.front().is_some_and(|oldest| oldest.task.is_none()) {
            self.entries.pop_front();
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::task::TaskHandle;

    fn task() -> (Task, TaskHandle<()>) {
        // SAFETY: it borrows nothing.
        unsafe { Task::new(|| ()) }
    }

    fn push(queue: &mut Grouped, group: usize) -> (usize, TaskHandle<()>) {
        if queue.is_full() {
            queue.drop_stale();
        }
        let (task, handle) = task();
        let id = task.id();
        queue.push(task, group);
        (id, handle)
    }

    /// Pops and takes in some order, and compares with a plain list.
    #[test]
    fn any_order_of_removals() {
        for seed in 0..200_u64 {
            let mut random = seed;
            let mut draw = |below: u64| {
                random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
                (random >> 33) % below
            };
            let (mut queue, mut list, mut handles) = (Grouped::new(), Vec::new(), Vec::new());
            for _ in 0..200 {
                let group = [NO_GROUP, 1, 2, 3][draw(4) as usize];
                match draw(5) {
                    0..3 => {
                        let (id, handle) = push(&mut queue, group);
                        list.push((id, group));
                        handles.push(handle);
                    }
                    3 => {
                        let popped = queue.pop().map(|(task, group)| (task.id(), group));
                        let expected = (!list.is_empty()).then(|| list.remove(0));
                        assert_eq!(popped, expected);
                    }
                    _ => {
                        let of_group = |entry: &(usize, usize)| entry.1 == group;
                        let at = list.iter().position(of_group).filter(|_| group != NO_GROUP);
                        let taken = queue.take(group).map(|task| task.id());
                        assert_eq!(taken, at.map(|at| list.remove(at).0));
                    }
                }
                assert_eq!((queue.len(), queue.oldest().is_some()), (list.len(), !list.is_empty()));
                let parts = list.iter().filter(|entry| entry.1 != NO_GROUP).count();
                assert_eq!(queue.parts(), parts);
            }
        }
    }

    /// If each look went over the entries of others, these would be ten billion steps.
    #[test]
    fn entries_of_others_cost_nothing() {
        const OTHERS: usize = 100_000;
        let mut queue = Grouped::new();
        let others: Vec<_> = (0..OTHERS).map(|_| push(&mut queue, 1).1).collect();
        for _ in 0..OTHERS {
            assert!(queue.take(3).is_none());
            let (id, _handle) = push(&mut queue, 2);
            assert_eq!(queue.take(2).map(|task| task.id()), Some(id));
        }
        assert_eq!((queue.len(), queue.oldest()), (OTHERS, Some(0)));
        assert!(
            queue.entries.len() <= 4 * OTHERS,
            "what is taken leaves a bounded number of places"
        );
        drop(others);
    }
}
