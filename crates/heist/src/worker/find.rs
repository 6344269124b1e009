//! How a worker picks its next task.
//!
//! It takes its own newest part first, then its own newest task. If it has none, it takes the oldest part of another
//! thread: parts of started work come before work that has not started. Then it steals the oldest tasks of the other
//! threads, and then it takes tasks from the injector. If there are several injectors, one for each cluster, it tries them
//! before it steals, that of its own cluster first: they have tasks by the batch, and few workers use the same one. At times
//! it looks in another order (`turn`). What is near it comes before all search, and what is near others after it (`inbox`). Tasks
//! of high priority come before all of this, and those of low priority after it
//! (`rank`).

use crate::cluster::NO_PLACE;
use crate::fork::private::PrivateTasks;
use crate::fork::purse;
use crate::fork::raid::{self, Raided};
use crate::queues::Found;
use crate::stats::Tally;
use crate::sync::lock;
use crate::task::{Started, Task};
use crate::trace::{EventKind, record};
use crate::worker::core::{Core, victims};
use crate::worker::policy::{PoolQueues, WaitPolicy};
use crate::worker::private::Kind;
use crate::worker::thread::WorkerThread;

/// How often one search tries every victim, if another thread was in the way the first time.
const ROUNDS: usize = 2;

/// How often one search tries the injector, if another thread is in the way.
const INJECTOR_TRIES: usize = 4;

/// In a pool on several NUMA nodes, a thread looks this many times in a row in vain for halves of joins on its own node, and then
/// once on all of them. So none on another node waits for ever. The looks take some microseconds, in which what one thread of
/// the node has fetched from afar spreads to the others. Other parts are taken from wherever they are. Of the parts of a scope there
/// is always a small one on the own node, while the large ones stay elsewhere; and loops are somewhat slower otherwise.
const NEAR_LOOKS: u32 = 6;

/// A random turn is below this. There are more than there are clusters, many times.
const TURNS: usize = 1 << 16;

/// A thread without work raids others, and looks for the parts that it waits for, in one cluster at a time beside its own. That
/// is on another NUMA node once in this many times.
const FAR_TURNS: usize = 4;

/// Does a thief heed that the owner of a few private tasks goes on to look at its demand, and leave them to it for now?
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heed {
    Looks,
    Nothing,
}

impl<Q: PoolQueues> WorkerThread<Q> {
    /// Returns a task that this worker can take without disturbing another thread.
    #[inline]
    pub(crate) fn next_own(&self, core: &Core) -> Option<Task> {
        let tally = core.tally();
        let takes_turns = || self.has_spawned.get() || self.shared.inboxes.any();
        if Q::Waiting::TURNS && takes_turns() && core.is_turn(core.turns.interval.get()) {
            if let Some(task) = self.take_turn(core) {
                return Some(task);
            }
        }
        let (queues, own) = (&self.shared.queues, &self.place.own);
        let task = self.pop_private(Kind::Part).or_else(|| queues.pop_job(own));
        let task = task.or_else(|| self.pop_private(Kind::Task));
        let task = task.or_else(|| self.pop_published(tally)).or_else(|| self.next_near(core));
        let task = task.or_else(|| {
            self.has_spawned.set(false);
            self.next_broadcast(core)
        })?;
        tally.one(|block| &block.local_pops);
        Some(task)
    }

    /// Returns the next task from this worker's broadcast queue.
    pub(crate) fn next_broadcast(&self, core: &Core) -> Option<Task> {
        let shared = &*self.shared;
        let task = shared.queues.pop_broadcast(core.index, core.tally())?;
        if !shared.is_attached(core.index) {
            // It counts in the place with the number of its worker, whichever thread has the core.
            shared.idle.leave_away(core.index);
        }
        Some(task)
    }

    /// Searches the other threads and then the injector; if there are several injectors, these before the tasks of the other
    /// threads. The thread's own queues are empty.
    pub(crate) fn search_others(&self, core: &Core) -> Option<Task> {
        let injector_first = self.shared.queues.injectors() > 1;
        let found = self.steal_job(core, self.looks_far()).or_else(|| {
            // The next thing to run is no part of the scope of which there is credit, if any.
            purse::flush();
            let first = if injector_first { self.take_injected(core) } else { None };
            let then = || if injector_first { None } else { self.take_injected(core) };
            first.or_else(|| self.steal(core)).or_else(then)
        });
        let found = found.or_else(|| self.next_of_any_rank(core));
        Q::Waiting::after_search(self, core, found.is_some());
        found
    }

    /// Notes the result of a look of a thread that searches. After [`NEAR_LOOKS`] in a row that have found nothing, one goes to
    /// all nodes.
    fn after_look(&self, core: &Core, found: bool) {
        if !self.shared.clusters.on_one_node() {
            let looks = self.near_looks.get();
            self.near_looks.set(if found || self.looks_far() { 0 } else { looks + 1 });
        }
        Q::Waiting::after_search(self, core, found);
    }

    /// Has this thread look at all nodes next, or after one more look in vain at its own: there may be work on another one only.
    pub(crate) fn look_far_soon(&self, at_once: bool) {
        self.near_looks.set(if at_once { NEAR_LOOKS } else { NEAR_LOOKS - 1 });
    }

    /// Returns whether this look goes to the threads on other NUMA nodes as well.
    fn looks_far(&self) -> bool {
        self.shared.clusters.on_one_node() || self.near_looks.get() >= NEAR_LOOKS
    }

    /// Searches for parts of started work, then in the injector, and then the other threads' tasks. A worker that has
    /// just been woken does this: if it was woken for work from outside, the others' deques are empty and not in its
    /// cache. With `everywhere`, it looks for parts in all lanes of the pool.
    pub(crate) fn search_injector_first(&self, core: &Core, everywhere: bool) -> Option<Task> {
        let looks_far = self.looks_far();
        let find_job = || {
            // A look at other nodes leaves out none of their threads.
            let is_far = looks_far && !self.shared.clusters.on_one_node();
            if everywhere || is_far {
                self.steal_job(core, looks_far)
            } else {
                self.steal_job_near(core)
            }
        };
        let found = self
            .next_broadcast(core)
            .or_else(|| self.next_ranked(core))
            .or_else(|| self.next_near(core))
            .or_else(find_job)
            .or_else(|| self.take_injected(core))
            .or_else(|| self.steal(core))
            .or_else(|| self.next_of_any_rank(core));
        self.after_look(core, found.is_some());
        found
    }

    /// Returns whether another thread has private jobs that it may not offer (step D6), and notes which one, for the next
    /// raid.
    pub(crate) fn sees_private(&self) -> bool {
        let seen = self.shared.find_private(self.place.index);
        self.seen_private.set(seen.unwrap_or(NO_PLACE));
        seen.is_some()
    }

    /// Counts a look into other clusters.
    fn next_turn(&self) -> usize {
        self.turn.replace(self.turn.get().wrapping_add(1))
    }

    /// Returns the places of the other threads of this thread's cluster, and then those of one other cluster, which is
    /// another one at each turn, and on another NUMA node at few of them. In a pool with one cluster these are all other
    /// places.
    fn near_and_far(&self, turn: usize) -> impl Iterator<Item = usize> + use<'_, Q> {
        let (clusters, count) = (&self.shared.clusters, self.shared.table.len());
        let (me, near) = (self.place.index, clusters.of(self.place.index));
        let far = clusters.other(near, turn, FAR_TURNS);
        let rotated = move |of: usize| {
            let places = move || clusters.places_of(of, count);
            let first = turn % clusters.size().min(count);
            places().skip(first).chain(places().take(first))
        };
        rotated(near)
            .chain((far != near).then(|| rotated(far)).into_iter().flatten())
            .filter(move |&place| place != me)
    }

    /// Returns the places of the other threads from which it may steal a part, beginning with a random one: all, or those with
    /// something [near](Self::has_near_part).
    fn victims_of_job(
        &self,
        core: &Core,
        looks_far: bool,
    ) -> impl Iterator<Item = usize> + use<'_, Q> {
        core.victims(self.place.index, self.shared.table.len())
            .filter(move |&victim| looks_far || self.has_near_part(victim))
    }

    /// Returns whether that thread is on the NUMA node of this one, or has a part that is taken from afar as well.
    fn has_near_part(&self, victim: usize) -> bool {
        let shared = &*self.shared;
        let has_far_part =
            || shared.table.reach(victim).is_some_and(|it| shared.queues.has_far_part(&it.queues));
        shared.clusters.are_near(self.place.index, victim) || has_far_part()
    }

    /// Requests private jobs from other threads, because this worker has found nothing (step D1).
    pub(crate) fn raise_demand(&self, core: &Core) {
        let shared = &*self.shared;
        shared.raise_demand(self.place.index, core.random_below(TURNS));
    }

    /// Returns whether there is work in a queue. Looks first where this thread has just found something.
    pub(crate) fn is_work_left(&self) -> bool {
        let (shared, mine) = (&*self.shared, self.place.index);
        shared.queues.has_any(&shared.table.entry(mine).queues)
            || shared.any_from(self.last_victim.get())
            || shared.has_remote()
    }

    /// Steals the oldest published part of another thread, or one from outside.
    fn steal_job(&self, core: &Core, looks_far: bool) -> Option<Task> {
        let shared = &*self.shared;
        for _ in 0..ROUNDS {
            let mut contended = false;
            for victim in self.victims_of_job(core, looks_far) {
                match self.steal_job_from(core, victim) {
                    Found::Task(job, _) => return Some(job),
                    Found::Nothing => {}
                    Found::Contended => contended = true,
                }
            }
            match shared.queues.steal_job_remote(core.tally()) {
                Found::Task(job, _) => return Some(job),
                Found::Nothing => {}
                Found::Contended => contended = true,
            }
            if !contended {
                break;
            }
        }
        None
    }

    /// Steals the oldest published part of a thread of this cluster or of another one, or one from outside.
    fn steal_job_near(&self, core: &Core) -> Option<Task> {
        let job = |found| match found {
            Found::Task(job, _) => Some(job),
            Found::Nothing | Found::Contended => None,
        };
        let near = self.near_and_far(self.next_turn());
        near.filter(|&victim| self.has_near_part(victim))
            .map(|victim| self.steal_job_from(core, victim))
            .find_map(job)
            .or_else(|| job(self.shared.queues.steal_job_remote(core.tally())))
    }

    /// Steals the oldest published part of the thread in that place.
    pub(crate) fn steal_job_from(&self, core: &Core, victim: usize) -> Found {
        let (shared, tally) = (&*self.shared, core.tally());
        let Some(thread) = shared.table.reach(victim) else { return Found::Nothing };
        tally.one(|block| &block.steal_attempts);
        let moving = if shared.queues.has_many_jobs(&thread.queues) {
            shared.moving.try_lock().ok()
        } else {
            None
        };
        let stolen = match &moving {
            Some(_) => shared.queues.steal_jobs(&self.place.own, &thread.queues, tally),
            None => shared.queues.steal_job(&thread.queues, tally),
        };
        drop(moving);
        if let Found::Task(_, more) = stolen {
            self.count_steal(tally, victim, more);
            self.share(core, more);
            // It was the last published job, and other workers may want more of them.
            if !shared.queues.has_job(&thread.queues) {
                if shared.keeps_one_published() {
                    thread.demand.raise_after_steal();
                } else {
                    thread.demand.raise();
                }
            }
        }
        stolen
    }

    /// Steals tasks of another thread, the oldest first. The victims are random ones of all nodes, as they are for parts in the
    /// first look after a thread has run out of work: that keeps trees balanced between the nodes (ARCHITECTURE, "Rejected").
    fn steal(&self, core: &Core) -> Option<Task> {
        let (shared, tally) = (&*self.shared, core.tally());
        for _ in 0..ROUNDS {
            let mut contended = false;
            for victim in core.victims(self.place.index, shared.table.len()) {
                let Some(thread) = shared.table.reach(victim) else { continue };
                match shared.queues.steal(&self.place.own, &thread.queues, tally) {
                    Found::Task(task, more) => {
                        self.count_steal(tally, victim, more);
                        self.share(core, more);
                        return Some(task);
                    }
                    Found::Nothing => {}
                    Found::Contended => contended = true,
                }
            }
            if !contended {
                break;
            }
        }
        None
    }

    /// Counts a steal. A worker that lives on them takes turns as well.
    pub(crate) fn count_steal(&self, tally: Tally<'_>, victim: usize, more: usize) {
        self.has_spawned.set(true);
        self.last_victim.set(victim);
        tally.one(|block| &block.successful_steals);
        if self.shared.clusters.are_near(self.place.index, victim) {
            tally.one(|block| &block.near_steals);
        } else {
            tally.one(|block| &block.far_steals);
        }
        tally.add(|block| &block.tasks_moved, 1 + more as u64);
        record(EventKind::Steal { victim, tasks: 1 + more });
    }

    /// Takes a part of that group, as [`find_part`](Self::find_part) does, and misses none: no part is moved from lane to
    /// lane meanwhile.
    pub(crate) fn find_part_before_sleep(&self, group: usize) -> Option<Started> {
        let _moving = lock(&self.shared.moving.0);
        self.find_part(group, NO_PLACE, true)
    }

    /// Takes a part of that group, wherever it lies, and starts it: for a thread that waits for the group, with or
    /// without a core. It looks first into its own lane, then into that of `thief`, which may have parts that descend
    /// from the awaited one, then into others nearby. Nothing else is moved. With `waits`, it looks into all lanes and inboxes,
    /// and misses no part because another thread is in the way.
    pub(crate) fn find_part(&self, group: usize, thief: usize, waits: bool) -> Option<Started> {
        let (queues, table) = (&self.shared.queues, &self.shared.table);
        let (me, count) = (self.place.index, table.len());
        let take = |place: usize| {
            let thread = table.reach(place)?;
            // A stale entry is dropped by `start`, and there may be another part behind it.
            while let Some(job) = queues.take_job(&thread.queues, group, waits) {
                if place != me && !queues.has_job(&thread.queues) {
                    // It was the last published job, and other workers may want more of them.
                    thread.demand.raise();
                }
                if let Some(started) = job.start() {
                    return Some(started);
                }
            }
            None
        };
        let of_others = || {
            if waits {
                return victims(me, me, count).find_map(take);
            }
            let of_thief = if thief < count && thief != me { take(thief) } else { None };
            of_thief.or_else(|| self.near_and_far(self.next_turn()).find_map(take))
        };
        let from_outside =
            || std::iter::from_fn(|| queues.take_job_remote(group, waits)).find_map(Task::start);
        let private = || self.pop_part_of(group).and_then(Task::start);
        let own = private().or_else(|| take(me)).or_else(|| self.find_near_part(group));
        let found = own.or_else(of_others).or_else(from_outside);
        found.or_else(|| if waits { self.find_part_near_any(group) } else { None })
    }

    /// Takes a private job or task from a thread that has not looked at its demand for a while, if the policy allows raids.
    pub(crate) fn raid_others(&self, core: &Core, heed: Heed) -> Option<Task> {
        if !Q::Waiting::RAIDS {
            return None;
        }
        let table = &self.shared.table;
        let turn = self.raids.get();
        self.raids.set(turn.wrapping_add(1));
        let raid =
            |victim: usize, seen| Some((raid::raid(&table.reach(victim)?.demand, seen)?, victim));
        let seen = (heed == Heed::Looks).then_some(&self.seen);
        let private = self.seen_private.replace(NO_PLACE);
        let private = if private == NO_PLACE { None } else { raid(private, None) };
        let others = || self.near_and_far(turn).find_map(|victim| raid(victim, seen));
        let (raided, victim) = private.or_else(others)?;
        Some(self.count_raid(core.tally(), victim, raided))
    }

    /// Requests what the thread in that place keeps private. If that was requested before, and the thread has not looked
    /// since, takes it.
    pub(crate) fn ask_or_raid(&self, core: &Core, victim: usize) -> Option<Task> {
        let demand = &self.shared.table.reach(victim)?.demand;
        if !demand.tasks.as_deref().is_some_and(PrivateTasks::any) {
            return None;
        }
        if demand.count() == 0 {
            demand.ask();
            return None;
        }
        let raided = raid::raid(demand, Some(&self.seen))?;
        Some(self.count_raid(core.tally(), victim, raided))
    }

    /// Counts a raid, and returns the task.
    pub(crate) fn count_raid(&self, tally: Tally<'_>, victim: usize, raided: Raided) -> Task {
        tally.one(|block| &block.steal_attempts);
        match raided {
            Raided::Tasks(task, more) => {
                tally.add(|block| &block.publications, 1 + more.len() as u64);
                self.count_steal(tally, victim, more.len());
                self.keep_raided(more);
                task
            }
            Raided::Job(job) => {
                tally.add(|block| &block.tasks_submitted, u64::from(job.counts()));
                tally.one(|block| &block.publications);
                self.count_steal(tally, victim, 0);
                job
            }
        }
    }

    /// Notes from which threads nothing has been heard when the next raid comes.
    pub(crate) fn forget_seen(&self) {
        if Q::PRIVATE {
            let near = self.near_and_far(self.raids.get());
            let near = near.filter_map(|place| self.shared.table.reach(place));
            near.for_each(|thread| _ = thread.demand.take_seen());
        }
    }

    /// Takes tasks from any injector.
    fn take_injected(&self, core: &Core) -> Option<Task> {
        let (queues, tally) = (&self.shared.queues, core.tally());
        for _ in 0..INJECTOR_TRIES {
            match queues.take_injected(&self.place.own, tally) {
                Found::Task(task, more) => {
                    if queues.injectors() > 1 {
                        // It must be fair to the tasks in the others.
                        self.has_spawned.set(true);
                    }
                    tally.add(|block| &block.injector_pops, 1 + more as u64);
                    record(EventKind::InjectorTake { tasks: 1 + more });
                    self.share(core, more);
                    return Some(task);
                }
                Found::Nothing => break,
                Found::Contended => {}
            }
        }
        None
    }

    /// Wakes another worker if this one has moved more tasks to its deque than it can run at once. So a burst of work
    /// wakes the workers one after the other.
    fn share(&self, core: &Core, more: usize) {
        if more > 0 && self.shared.config.workers > 1 {
            self.shared.announce(core.tally(), self.place.index);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
