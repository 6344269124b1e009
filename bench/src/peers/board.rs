//! Where tasks say that they have run, and how we know that each did, once.
//!
//! A counter for all would be what is measured. So every thread has one of its own, on a cache line
//! of its own, which only it writes, without a locked instruction; and whoever waits for the last
//! task adds them up from time to time.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use harness::threads::Padded;

/// Threads that may ever run a task: those of all pools that are kept, with some to spare.
const SEATS: usize = 1 << 14;

/// A counter holds a number of tasks above this bit, and the sum of their indices below. With up to
/// a million tasks in a lap neither overflows; over many laps they do, and differences are right
/// all the same.
const COUNT: u32 = 40;

/// No wait is looked at more often than this.
const SHORTEST: Duration = Duration::from_micros(20);

/// Nor more often than after this part of what it has taken so far: a look costs a little, and this
/// is how late the end is noticed.
const PART: u32 = 128;

/// No lap takes this long unless a task was lost.
const PATIENCE: Duration = Duration::from_secs(60);

/// The counters of all threads.
pub(crate) struct Board([Padded<AtomicU64>; SEATS]);

static BOARD: Board = Board([const { Padded(AtomicU64::new(0)) }; SEATS]);

/// Seats that are taken; the counters behind are zero.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// What the counters came to at the end of the last lap. There is one lap at a time.
static LAST: Mutex<u64> = Mutex::new(0);

const NONE: usize = usize::MAX;

thread_local! {
    static SEAT: Cell<usize> = const { Cell::new(NONE) };
}

impl Board {
    pub(crate) fn get() -> &'static Self {
        &BOARD
    }

    /// A task with this index has run on this thread.
    #[inline]
    pub(crate) fn tick(&self, index: u64) {
        self.add(1, index);
    }

    /// So many have, whose indices have this sum.
    #[inline]
    pub(crate) fn add(&self, tasks: u64, sum: u64) {
        let counter = &self.0[seat()].0;
        // Ordering: relaxed. Nobody else writes it, and nothing is passed on by it.
        let now = counter.load(Ordering::Relaxed);
        counter.store(now.wrapping_add(pack(tasks, sum)), Ordering::Relaxed);
    }

    fn total(&self) -> u64 {
        let taken = TAKEN.load(Ordering::Relaxed).min(SEATS);
        let counters = self.0[..taken].iter().map(|counter| counter.0.load(Ordering::Relaxed));
        counters.fold(0, u64::wrapping_add)
    }
}

fn pack(tasks: u64, sum: u64) -> u64 {
    (tasks << COUNT) + sum
}

#[inline]
fn seat() -> usize {
    match SEAT.get() {
        NONE => sit_down(),
        seat => seat,
    }
}

#[cold]
#[inline(never)]
fn sit_down() -> usize {
    let seat = TAKEN.fetch_add(1, Ordering::Relaxed);
    assert!(seat < SEATS, "more than {SEATS} threads have run tasks: give the board more seats");
    SEAT.set(seat);
    seat
}

/// From before the first task is spawned until after the last has run.
pub(crate) struct Lap {
    begin: Instant,
    before: u64,
    last: MutexGuard<'static, u64>,
}

impl Lap {
    /// Panics if a task has run since the end of the last lap: it ran twice.
    pub(crate) fn begin() -> Self {
        let last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        let before = BOARD.total();
        assert_eq!(before, *last, "a task has run after all had");
        Self { begin: Instant::now(), before, last }
    }

    /// Waits until as many tasks have run, with the indices from 0, or panics.
    pub(crate) fn wait(mut self, pool: &str, tasks: u64) -> Done {
        let mut looks = 0;
        loop {
            let ran = BOARD.total().wrapping_sub(self.before);
            let time = self.begin.elapsed();
            if ran >> COUNT >= tasks {
                *self.last = self.before.wrapping_add(ran);
                let expected = pack(tasks, tasks * (tasks - 1) / 2);
                assert_eq!(ran, expected, "{pool}: not each of {tasks} tasks has run once");
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
pub(crate) struct Done {
    pub(crate) time: Duration,
    /// How often the waiting thread slept: context switches that are not the pool's.
    pub(crate) looks: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "not each of 3 tasks has run once")]
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
