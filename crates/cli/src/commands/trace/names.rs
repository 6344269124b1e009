//! Adds up the time of the tasks with each name.

use std::cmp::Reverse;

use super::read::{Pool, Thread, What};

/// The tasks with one name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) name: String,
    /// The number of tasks that were begun.
    pub(super) tasks: u64,
    /// How long they ran, in nanoseconds: without sleep, and without other tasks that ran while they waited.
    pub(super) running: u64,
}

/// A bar of a thread: a task, or sleep.
struct Bar {
    begin: u64,
    end: u64,
    name: Option<usize>,
    /// The time that is covered by bars on top of it.
    covered: u64,
}

/// Returns the names of the pool's tasks between the two times, those that ran longest first.
pub(super) fn add_up(pool: &Pool, begin: u64, end: u64) -> Vec<Named> {
    let named = |name: &String| Named { name: name.clone(), ..Named::default() };
    let mut names: Vec<_> = pool.names.list.iter().map(named).collect();
    for bar in pool.threads.values().flat_map(|thread| bars(thread, begin, end)) {
        if let Some(named) = bar.name.and_then(|name| names.get_mut(name)) {
            named.tasks += 1;
            named.running += (bar.end - bar.begin).saturating_sub(bar.covered);
        }
    }
    names.retain(|named| named.tasks > 0);
    names.sort_by_key(|named| Reverse(named.running));
    names
}

/// Returns the bars of a thread between the two times.
fn bars(thread: &Thread, begin: u64, end: u64) -> Vec<Bar> {
    let bar = |event: &super::read::Event| {
        let (What::Task(length) | What::Sleep(length)) = event.what else { return None };
        let is_there = event.at + length >= begin && event.at <= end;
        let (from, to) = (event.at.clamp(begin, end), (event.at + length).clamp(begin, end));
        is_there.then_some(Bar { begin: from, end: to, name: event.name, covered: 0 })
    };
    let mut bars: Vec<_> = thread.events.iter().filter_map(bar).collect();
    // An outer bar comes before those on top of it. Where both are the same, the file has the inner one first.
    bars.reverse();
    bars.sort_by_key(|bar| (bar.begin, Reverse(bar.end)));
    let mut open: Vec<usize> = Vec::new();
    for at in 0..bars.len() {
        let (begin, end) = (bars[at].begin, bars[at].end);
        while open.last().is_some_and(|&outer| bars[outer].end <= begin) {
            open.pop();
        }
        if let Some(&outer) = open.last() {
            bars[outer].covered += end.min(bars[outer].end) - begin;
        }
        open.push(at);
    }
    bars
}

#[cfg(test)]
mod tests {
    use super::super::read::Event;
    use super::*;

    fn pool(names: &[&str], events: &[(u64, What, Option<usize>)]) -> Pool {
        let event = |&(at, what, name): &(u64, What, Option<usize>)| Event { at, what, name };
        let thread = Thread { lost: 0, events: events.iter().map(event).collect() };
        let mut pool = Pool { threads: [(1, thread)].into(), ..Pool::default() };
        for name in names {
            pool.names.place(name);
        }
        pool
    }

    fn figures(named: &[Named]) -> Vec<(&str, u64, u64)> {
        named.iter().map(|named| (&*named.name, named.tasks, named.running)).collect()
    }

    #[test]
    fn a_task_does_not_run_while_it_waits() {
        let events = [
            (30, What::Task(20), Some(1)),
            (60, What::Sleep(10), None),
            (80, What::Task(5), Some(1)),
            (0, What::Task(100), Some(0)),
            (100, What::Task(50), Some(1)),
            (150, What::Steal, None),
        ];
        let pool = pool(&["outer", "inner", "none"], &events);
        assert_eq!(figures(&add_up(&pool, 0, 150)), [("inner", 3, 75), ("outer", 1, 65)]);
        // From the middle of the first one on.
        assert_eq!(figures(&add_up(&pool, 40, 110)), [("outer", 1, 35), ("inner", 3, 25)]);
    }

    #[test]
    fn tasks_without_a_name_are_left_out() {
        let pool = pool(&["one"], &[(0, What::Task(10), None), (10, What::Task(10), Some(0))]);
        assert_eq!(figures(&add_up(&pool, 0, 20)), [("one", 1, 10)]);
    }
}
