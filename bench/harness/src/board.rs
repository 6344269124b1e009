//! Counts tasks, and verifies that each has run exactly once.
//!
//! One counter for all threads would dominate what is measured. Therefore every thread has a counter on a cache line
//! of its own, which only that thread writes, without a locked instruction. The thread that waits for the last task
//! adds them up from time to time.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::threads::Padded;

/// The number of counters, one for each thread that ever runs a task: the threads of all pools, and a reserve.
const COUNTERS: usize = 1 << 14;

/// A counter holds the number of tasks above this bit, and the sum of their indices below it. With up to a million
/// tasks in a lap, neither overflows. Over many laps they do, but the differences remain correct.
const COUNT: u32 = 40;

/// The shortest time between two looks at the counters.
const SHORTEST: Duration = Duration::from_micros(20);

/// The time between two looks is also at least this fraction of the time so far. A look has a small cost, and this
/// bounds how late the end is noticed.
const PART: u32 = 128;

/// A lap that takes longer than this has lost a task.
const PATIENCE: Duration = Duration::from_secs(60);

/// The counters of all threads.
pub struct Board([Padded<AtomicU64>; COUNTERS]);

static BOARD: Board = Board([const { Padded(AtomicU64::new(0)) }; COUNTERS]);

/// The number of counters in use. The others are zero.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// The sum of the counters at the end of the last lap. There is one lap at a time.
static LAST: Mutex<u64> = Mutex::new(0);

const NONE: usize = usize::MAX;

thread_local! {
    static INDEX: Cell<usize> = const { Cell::new(NONE) };
}

impl Board {
    /// Returns the board.
    pub fn get() -> &'static Self {
        &BOARD
    }

    /// Notes that the task with this index has run on this thread.
    #[inline]
    pub fn tick(&self, index: u64) {
        self.add(1, index);
    }

    /// Notes that this number of tasks has run on this thread, and the sum of their indices.
    #[inline]
    pub fn add(&self, tasks: u64, sum: u64) {
        let counter = &self.0[index()].0;
        // Ordering: relaxed. Only this thread writes the counter, and it publishes nothing else.
        let now = counter.load(Ordering::Relaxed);
        counter.store(now.wrapping_add(pack(tasks, sum)), Ordering::Relaxed);
    }

    fn total(&self) -> u64 {
        let taken = TAKEN.load(Ordering::Relaxed).min(COUNTERS);
        let counters = self.0[..taken].iter().map(|counter| counter.0.load(Ordering::Relaxed));
        counters.fold(0, u64::wrapping_add)
    }
}

fn pack(tasks: u64, sum: u64) -> u64 {
    (tasks << COUNT) + sum
}

#[inline]
fn index() -> usize {
    match INDEX.get() {
        NONE => claim(),
        index => index,
    }
}

#[cold]
#[inline(never)]
fn claim() -> usize {
    let index = TAKEN.fetch_add(1, Ordering::Relaxed);
    assert!(index < COUNTERS, "more than {COUNTERS} threads have run tasks: increase COUNTERS");
    INDEX.set(index);
    index
}

/// A lap: from before the first task is spawned until after the last one has run.
pub struct Lap {
    begin: Instant,
    before: u64,
    last: MutexGuard<'static, u64>,
}

impl Lap {
    /// Begins a lap.
    ///
    /// # Panics
    ///
    /// Panics if a task has run since the end of the last lap, because that task ran twice.
    pub fn begin() -> Self {
        let last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        let before = BOARD.total();
        assert_eq!(before, *last, "a task ran after the end of its lap: it ran twice");
        Self { begin: Instant::now(), before, last }
    }

    /// Waits until this number of tasks has run, with indices from 0.
    ///
    /// # Panics
    ///
    /// Panics if a task has run twice, or if one has not run after a minute.
    pub fn wait(mut self, pool: &str, tasks: u64) -> Done {
        let mut looks = 0;
        loop {
            let ran = BOARD.total().wrapping_sub(self.before);
            let time = self.begin.elapsed();
            if ran >> COUNT >= tasks {
                *self.last = self.before.wrapping_add(ran);
                let expected = pack(tasks, tasks * (tasks - 1) / 2);
                assert_eq!(ran, expected, "{pool}: some of {tasks} tasks did not run exactly once");
                return Done { time, looks };
            }
            let missing = tasks - (ran >> COUNT);
            assert!(time < PATIENCE, "{pool}: {missing} of {tasks} tasks have not run yet");
            thread::sleep((time / PART).max(SHORTEST));
            looks += 1;
        }
    }
}

/// A lap that has ended.
pub struct Done {
    /// How long it took.
    pub time: Duration,
    /// How often the waiting thread slept. These context switches are not the pool's.
    pub looks: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "some of 3 tasks did not run exactly once")]
    fn a_task_that_runs_twice_is_noticed() {
        let lap = Lap::begin();
        [0, 1, 1].into_iter().for_each(|index| BOARD.tick(index));
        lap.wait("test", 3);
    }

    #[test]
    fn order_and_threads_do_not_matter() {
        let lap = Lap::begin();
        thread::scope(|scope| {
            for indices in [[2, 0], [3, 1]] {
                scope.spawn(move || indices.into_iter().for_each(|index| BOARD.tick(index)));
            }
        });
        lap.wait("test", 4);
    }
}
