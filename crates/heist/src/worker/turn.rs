//! Fairness: at times a worker looks into other queues than the nearest.
//!
//! A worker takes its own newest task first, and work from outside last. So a task that spawns itself again and again
//! could keep all others from ever starting. Once in a while the worker therefore takes a *turn*: it looks first into
//! one of four places, each time into the next one, and takes the oldest task or part there:
//!
//! 1. the injector; if there are several, each time it begins with the next one, and looks into all of them,
//! 2. its own deque,
//! 3. its own lane,
//! 4. the deque and the lane of another thread, each time of the next one. That thread may wait for long.
//!
//! A turn comes after at most [`MOST`] tasks, while the thread has spawned or stolen something or there are several
//! injectors ([`WorkerThread::has_spawned`]). So what is the oldest in its queue starts after at most `4 * MOST` other
//! starts by a worker that takes turns, times the number of threads for the fourth place, and times the number of injectors
//! for the first. If tasks take long, turns come sooner, so that what waits is not kept for longer than about [`PERIOD`],
//! or two tasks.

use crate::queues::Found;
use crate::task::Task;
use crate::trace::{EventKind, record};
use crate::worker::core::Core;
use crate::worker::policy::PoolQueues;
use crate::worker::thread::WorkerThread;

/// The largest number of tasks from one turn to the next. A prime, so that it does not fall into step with other
/// periods. A turn costs about as much as five empty tasks: with 61, a tree of empty tasks took 5 % longer on two workers
/// (measured, on a Zen 4).
const MOST: u32 = 251;
/// The smallest number of tasks from one turn to the next: the worker's own work gets at least every other start.
const LEAST: u32 = 2;
/// The time, in nanoseconds, from one turn to the next, as far as the number of tasks allows. A guess.
const PERIOD: u64 = 200_000;
/// The number of places to look into.
const PLACES: usize = 4;

impl<Q: PoolQueues> WorkerThread<Q> {
    /// Takes a turn: returns the oldest task or part of one of the places.
    #[cold]
    #[inline(never)]
    pub(crate) fn take_turn(&self, core: &Core) -> Option<Task> {
        let turns = &core.turns;
        let now = self.shared.now();
        turns
            .interval
            .set(interval(turns.interval.get(), now.saturating_sub(turns.last.replace(now))));
        let count = turns.count.get();
        turns.count.set(count.wrapping_add(1));
        (0..PLACES).find_map(|more| self.oldest_in(core, count.wrapping_add(more)))
    }

    fn oldest_in(&self, core: &Core, count: usize) -> Option<Task> {
        let (queues, table, tally) = (&self.shared.queues, &self.shared.table, core.tally());
        let me = &table.entry(self.place.index).queues;
        let task = |found| match found {
            Found::Task(task, _) => Some(task),
            Found::Nothing | Found::Contended => None,
        };
        match count % PLACES {
            0 => {
                let first = queues.cluster(&self.place.own) + count / PLACES;
                let taken = queues.take_one_injected(first, tally)?;
                tally.one(|block| &block.injector_pops);
                record(EventKind::InjectorTake { tasks: 1 });
                Some(taken)
            }
            1 => {
                let oldest = task(queues.steal_one(me, tally))?;
                tally.one(|block| &block.local_pops);
                Some(oldest)
            }
            2 => {
                let oldest = task(queues.steal_job(me, tally))?;
                tally.one(|block| &block.local_pops);
                Some(oldest)
            }
            _ => {
                let victim = (count / PLACES) % table.len();
                if victim == self.place.index {
                    return None;
                }
                let from = &table.reach(victim)?.queues;
                let oldest = task(queues.steal_job(from, tally))
                    .or_else(|| task(queues.steal_one(from, tally)))
                    .or_else(|| task(queues.steal_job_remote(tally)))?;
                tally.one(|block| &block.steal_attempts);
                self.count_steal(core, victim, 0);
                Some(oldest)
            }
        }
    }
}

/// Returns the number of tasks until the next turn, if the last ones, `tasks`, took that many nanoseconds.
fn interval(tasks: u32, took: u64) -> u32 {
    let each = (took / u64::from(tasks)).max(1);
    let fit = u32::try_from(PERIOD / each).unwrap_or(u32::MAX);
    // It grows slowly: short tasks say little about the next ones.
    fit.min(tasks.saturating_mul(2)).clamp(LEAST, MOST)
}

#[cfg(test)]
mod tests {
    use super::{LEAST, MOST, interval};

    #[test]
    fn long_tasks_have_turns_soon_and_short_ones_seldom() {
        assert_eq!(interval(MOST, 610_000_000), LEAST, "ten milliseconds each");
        assert_eq!(interval(MOST, 6_100), MOST, "a tenth of a microsecond each");
        assert_eq!(interval(2, 200), 4, "it grows step by step");
        assert_eq!(interval(2, 0), 4);
    }
}
