//! Fairness: at times a worker looks into other queues than the nearest.
//!
//! A worker takes its own newest task first, and work from outside last. So a task that spawns itself again and again
//! could keep all others from ever starting. Once in a while the worker therefore takes a *turn*: it looks first into
//! one of six places, each time into the next one, and takes the oldest task or part there:
//!
//! 1. the injector; if there are several, each time it begins with the next one, and looks into all of them,
//! 2. its own deque,
//! 3. its own lane,
//! 4. the deque and the lane of another thread, each time of the next one. That thread may wait for long. If there is nothing,
//!    it asks that thread to publish what it keeps private. If that has not been heard when its turn comes again, it raids,
//!    at the latest when its turn comes for the third time,
//! 5. its own inbox,
//! 6. the inbox of another worker, the same one twice, and then the next. If the oldest entry is the same at both times, it takes
//!    that: the worker may run a long task.
//!
//! Before that, it looks into its broadcast queue.
//!
//! A turn comes after at most [`MOST`] tasks, while the thread has spawned or stolen something, something is in an inbox, or there
//! are several injectors ([`WorkerThread::has_spawned`]). So what is the oldest in its queue starts after at most `6 * MOST` other
//! starts by a worker that takes turns, times the number of threads for the fourth place, twice the number of workers and one for the
//! sixth, and times the number of injectors for the first. If tasks take long, turns come sooner, so that what waits is not kept for longer than about [`PERIOD`],
//! or two tasks.

use crate::queues::Found;
use crate::task::Task;
use crate::trace::{EventKind, record};
use crate::worker::core::Core;
use crate::worker::policy::PoolQueues;
use crate::worker::private::Kind;
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
const PLACES: usize = 6;

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
        if let Some(task) = self.next_broadcast(core) {
            return Some(task);
        }
        let count = turns.count.get();
        turns.count.set(count.wrapping_add(1));
        (0..PLACES).find_map(|more| self.oldest_in(core, count.wrapping_add(more)))
    }

    fn oldest_in(&self, core: &Core, count: usize) -> Option<Task> {
        let (queues, table, tally) = (&self.shared.queues, &self.shared.table, core.tally());
        let me = &table.entry(self.place.index).queues;
        match count % PLACES {
            0 => {
                let first = queues.cluster(&self.place.own) + count / PLACES;
                let taken = queues.take_one_injected(first, tally)?;
                tally.one(|block| &block.injector_pops);
                record(EventKind::InjectorTake { tasks: 1 });
                Some(taken)
            }
            1 => {
                let oldest = to_task(queues.steal_one(me, tally))
                    .or_else(|| self.take_oldest_private(Kind::Task))?;
                tally.one(|block| &block.local_pops);
                Some(oldest)
            }
            2 => {
                let oldest = to_task(queues.steal_job(me, tally))
                    .or_else(|| self.take_oldest_private(Kind::Part))?;
                tally.one(|block| &block.local_pops);
                Some(oldest)
            }
            3 => self.oldest_of_another(core, count / PLACES % table.len()),
            4 => {
                let near = self.next_near(core)?;
                tally.one(|block| &block.local_pops);
                Some(near)
            }
            _ => self.take_left_alone(core, count / PLACES),
        }
    }

    /// Returns the oldest task or part of the thread in that place, or a part from outside.
    fn oldest_of_another(&self, core: &Core, victim: usize) -> Option<Task> {
        let (queues, tally) = (&self.shared.queues, core.tally());
        if victim == self.place.index {
            return None;
        }
        let from = &self.shared.table.reach(victim)?.queues;
        let oldest = to_task(queues.steal_job(from, tally))
            .or_else(|| to_task(queues.steal_one(from, tally)))
            .or_else(|| to_task(queues.steal_job_remote(tally)));
        let Some(oldest) = oldest else { return self.ask_or_raid(core, victim) };
        tally.one(|block| &block.steal_attempts);
        self.count_steal(tally, victim, 0);
        Some(oldest)
    }
}

fn to_task(found: Found) -> Option<Task> {
    match found {
        Found::Task(task, _) => Some(task),
        Found::Nothing | Found::Contended => None,
    }
}

/// Returns the number of tasks until the next turn, if the last ones, `tasks`, took that many nanoseconds.
fn interval(tasks: u32, took: u64) -> u32 {
    let each = (took / u64::from(tasks)).max(1);
    let fit = u32::try_from(PERIOD / each).unwrap_or(u32::MAX);
    // It grows slowly: short tasks say little about the next ones.
    fit.min(tasks.saturating_mul(2)).clamp(LEAST, MOST)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{LEAST, MOST, PLACES, interval};
    use crate::cluster::Clusters;
    use crate::queues::{NO_GROUP, Stealing};
    use crate::sync::Arc;
    use crate::task::Task;
    use crate::worker::config::Config;
    use crate::worker::core::Core;
    use crate::worker::shared::Shared;
    use crate::worker::thread::WorkerThread;

    #[test]
    fn long_tasks_have_turns_soon_and_short_ones_seldom() {
        assert_eq!(interval(MOST, 610_000_000), LEAST, "ten milliseconds each");
        assert_eq!(interval(MOST, 6_100), MOST, "a tenth of a microsecond each");
        assert_eq!(interval(2, 200), 4, "it grows step by step");
        assert_eq!(interval(2, 0), 4);
    }

    const CLUSTERS: usize = 3;

    /// Returns the first worker of a pool of several clusters that has no other threads.
    fn first_worker() -> WorkerThread<Stealing> {
        let workers = 8 * CLUSTERS;
        let clusters = Clusters::of_size(workers, 8);
        let shared = Arc::new(Shared::with_clusters(Config::plain(workers, workers), clusters));
        let place = shared.enter().expect("there is a place");
        let thread = WorkerThread::new(Arc::clone(&shared), place);
        thread.acquire_core(Box::new(Core::new(0, shared.ledger.of_worker(0))));
        thread
    }

    fn task() -> Task {
        // SAFETY: it borrows nothing.
        unsafe { Task::new(|| ()) }.0
    }

    /// Returns how many tasks the worker takes until it takes the one that waits in the injector of that cluster. The other
    /// injectors are never empty. `next` prepares and takes the worker's next task.
    fn tasks_until(
        cluster: usize,
        next: impl Fn(&WorkerThread<Stealing>, &Core) -> Option<Task>,
    ) -> usize {
        let thread = first_worker();
        let push = |to: usize, task: Task| thread.shared.push_remote(to, task, 1);
        let bound = PLACES * MOST as usize * CLUSTERS;
        let others = (0..CLUSTERS).filter(|&other| other != cluster);
        others.for_each(|other| (0..=bound).for_each(|_| push(other, task())));
        let awaited = task();
        let id = awaited.id();
        push(cluster, awaited);
        let core = thread.core.borrow();
        let core = core.as_ref().expect("it has a core");
        let is_it = |task: &Task| task.id() == id;
        let found = (1..=bound).find(|_| is_it(&next(&thread, core).expect("there is a task")));
        found.expect("the task is kept from starting")
    }

    #[test]
    fn endless_tasks_of_its_own_keep_a_worker_from_no_injector() {
        for cluster in 0..CLUSTERS {
            tasks_until(cluster, |thread, core| {
                thread.push_local(task(), 1);
                thread.next_own(core)
            });
        }
    }

    /// Returns how many tasks a worker that has tasks of its own without an end takes until it takes one that is near that worker.
    fn tasks_until_near(worker: usize, bound: usize) -> Option<usize> {
        let thread = first_worker();
        let near = task();
        let id = near.id();
        thread.shared.inboxes.push(worker, near, NO_GROUP);
        let core = thread.core.borrow();
        let core = core.as_ref().expect("it has a core");
        // The worst case: the first visit to that inbox has just been.
        core.turns.count.set(PLACES * (2 * worker) + PLACES);
        (1..=bound).find(|_| {
            thread.push_local(task(), 1);
            thread.next_own(core).expect("there is a task").id() == id
        })
    }

    #[test]
    fn endless_tasks_of_its_own_keep_a_worker_from_no_inbox() {
        let bound = PLACES * MOST as usize;
        assert!(tasks_until_near(0, bound).is_some(), "its own");
        for worker in [1, 23] {
            assert!(tasks_until_near(worker, (2 * 24 + 1) * bound).is_some(), "of {worker}");
        }
    }

    #[test]
    fn a_worker_leaves_the_inbox_of_another_that_takes_from_it() {
        let thread = first_worker();
        let (inboxes, core) = (&thread.shared.inboxes, thread.core.borrow());
        let core = core.as_ref().expect("it has a core");
        for _ in 0..3 {
            (0..2).for_each(|_| inboxes.push(2, task(), NO_GROUP));
            assert!(thread.take_left_alone(core, 4).is_none(), "the first look");
            drop(inboxes.pop(2));
            assert!(thread.take_left_alone(core, 5).is_none(), "something was taken meanwhile");
        }
        assert!(thread.take_left_alone(core, 4).is_none());
        assert!(thread.take_left_alone(core, 5).is_some());
        assert!(thread.take_left_alone(core, 5).is_none(), "it has to look again");
    }

    #[test]
    fn a_full_injector_of_its_own_cluster_keeps_a_worker_from_no_other() {
        for cluster in 1..CLUSTERS {
            tasks_until(cluster, |thread, core| {
                thread.next_own(core).or_else(|| thread.search_others(core))
            });
        }
    }
}
