//! What a thread does with its core while a task of its own waits: it keeps it as long as there is nothing else to do,
//! and hands it to another thread as soon as there is.

use std::mem;
use std::time::Duration;

use crate::idle::WakeReason;
use crate::sync::{Instant, pause, yield_now};
use crate::task::{Awaited, Started, Task};
use crate::worker::core::Core;
use crate::worker::find::Heed;
use crate::worker::handoff::{Grant, Need};
use crate::worker::policy::PoolQueues;
use crate::worker::shared::Shared;
use crate::worker::thread::WorkerThread;
use crate::worker::wait::{PAUSES, rest};

/// How long a thread waits until it asks the system for another thread again. A guess.
const THREAD_RETRY: Duration = Duration::from_millis(10);

/// How often a thread that sees work in a lane or deque, and finds no part of what it awaits, looks again before it hands
/// its core to another thread. Parts are often taken by another thread in just that moment, and a hand-off takes about as
/// long as these looks.
const LOOKS_FOR_PART: u32 = if cfg!(shuttle) { 1 } else { 8 };

/// How often a thread that is to park looks whether it may go on. That takes some sixty microseconds. A guess: twice as many
/// gained nothing in simulations.
const LINGERING_LOOKS: u32 = if cfg!(shuttle) { 1 } else { 256 };

/// A thread that keeps its core while queued tasks wait for one gives it away after this many grace periods, even if
/// other workers get tasks done meanwhile.
const PERIODS: u32 = 32;

/// How a wait with a core has ended.
pub(crate) enum Waited {
    Done,
    /// The core went to another thread.
    CoreGone,
    /// There is a part of what is awaited, which may run here.
    Found(Started),
    /// There is a task that only this thread can run.
    NobodyElse(Task),
}

/// How long a thread has kept its core although other tasks wait for one.
struct Patience {
    /// When it began, and when a task of the pool was last seen to end: [`Shared::now`].
    since: u64,
    progress: u64,
    /// How many tasks had ended by then.
    ended: u64,
    /// Is it at an end?
    is_over: bool,
}

impl Patience {
    fn new<Q: PoolQueues>(shared: &Shared<Q>) -> Self {
        let now = shared.now();
        Self { since: now, progress: now, ended: shared.ledger.ended(), is_over: false }
    }

    /// Looks whether it is at an end: no task has ended for a grace period, or many of them have passed.
    fn look<Q: PoolQueues>(&mut self, shared: &Shared<Q>, grace: Duration) -> bool {
        let (now, ended) = (shared.now(), shared.ledger.ended());
        if ended != mem::replace(&mut self.ended, ended) {
            self.progress = now;
        }
        let passed = |since: u64| Duration::from_nanos(now.saturating_sub(since));
        self.is_over = passed(self.progress) >= grace || passed(self.since) >= grace * PERIODS;
        self.is_over
    }
}

impl<Q: PoolQueues> WorkerThread<Q> {
    /// Waits as an idle worker does until the awaited task is done, or until there is work. Then the core goes to
    /// another thread with that work, unless the work is a part of the group, which runs here.
    pub(crate) fn wait_with_core(&self, awaited: &dyn Awaited, group: Option<usize>) -> Waited {
        let shared = &*self.shared;
        let worker = self.worker().expect("called with a core");
        let (mut searching, mut patience) = (false, None::<Patience>);
        let mut looks = 0;
        let waited = loop {
            if awaited.is_done() {
                break Waited::Done;
            }
            if shared.handoff.is_wanted() {
                // Before the core goes: the thread that gets it may fork at once, and must not be taken for a searcher (D6).
                self.leave_search(&mut searching);
                if self.give_away() {
                    break Waited::CoreGone;
                }
            }
            if let Some(job) = self.find_own_part(group.filter(|_| self.is_shallow())) {
                break Waited::Found(job);
            }
            // Otherwise the thread looks everywhere before it sleeps, which takes a while in a large pool.
            if searching || patience.is_some() || shared.clusters.count() == 1 {
                let is_any = shared.any();
                if is_any && group.is_some() && looks < LOOKS_FOR_PART {
                    // Perhaps another thread was about to take a part of the group.
                    looks += 1;
                    (0..PAUSES).for_each(|_| pause());
                    continue;
                }
                // A look that has found private jobs of another thread, or a broadcast, has kept this one from sleeping.
                let has_broadcast = || shared.queues.has_broadcast(worker);
                if is_any || has_broadcast() || (searching && self.sees_private()) {
                    if let Some(waited) =
                        self.pass_on_core(awaited, group, &mut searching, &mut patience)
                    {
                        break waited;
                    }
                    continue;
                }
            }
            // What is of another pool has no group, and may take long.
            let lingers = shared.lingers && group.is_some();
            let reason =
                self.sleep(searching, worker, awaited.end(), lingers, || awaited.is_done());
            debug_assert!(
                !matches!(reason, WakeReason::Ended | WakeReason::EndedHere),
                "the pool does not shut down while a thread is away"
            );
            (searching, patience, looks) = (reason != WakeReason::Done, None, 0);
        };
        self.leave_search(&mut searching);
        waited
    }

    /// Looks for a while whether the thread, which is on the list of sleepers and is about to park, is called or `done`. Returns
    /// whether it is.
    ///
    /// The end of a tree of joins is a chain of waits, each of which ends the next one. In a large pool the chain has up to
    /// hundreds of links, because parts run on top of waits. If each of these threads had to be woken, that would take
    /// milliseconds.
    pub(crate) fn linger(&self, done: impl Fn() -> bool) -> bool {
        let sleeper = self.listener.sleeper();
        (0..LINGERING_LOOKS).any(|look| {
            rest(look);
            sleeper.is_called() || done()
        })
    }

    /// Hands the core to another thread, with some of the work that there is. Returns `None` if the thread keeps its core
    /// for now, and has waited for a moment.
    fn pass_on_core(
        &self,
        awaited: &dyn Awaited,
        group: Option<usize>,
        searching: &mut bool,
        patience: &mut Option<Patience>,
    ) -> Option<Waited> {
        let shared = &*self.shared;
        let need = match patience {
            Some(Patience { is_over: true, .. }) => Need::Patient,
            _ => Need::First,
        };
        match shared.handoff.grant(need, shared.now()) {
            Grant::NotYet(grace) => {
                self.leave_search(searching);
                let patience = patience.get_or_insert_with(|| Patience::new(shared));
                // A patient thread that is refused has come just after another one.
                let was_patient = mem::replace(&mut patience.is_over, false);
                if was_patient || !patience.look(shared, grace) {
                    self.park_at_most(grace, awaited);
                }
                None
            }
            Grant::Full => {
                self.leave_search(searching);
                self.wait_without_thread(awaited, group)
            }
            grant @ Grant::Standby(_) => {
                let task = self.find_for_another();
                if task.is_none() {
                    shared.handoff.decline(grant);
                    yield_now();
                    return None;
                }
                self.leave_search(searching);
                let handed = self.hand_off_core(grant, task);
                debug_assert!(handed.is_ok(), "a standby thread is there");
                Some(Waited::CoreGone)
            }
            grant @ Grant::Start(_) => {
                self.leave_search(searching);
                // The new thread looks for a task itself. One that was taken out here would have to be put back if the
                // system refuses the thread, and whoever waits for it might miss it meanwhile.
                match self.hand_off_core(grant, None) {
                    Ok(()) => Some(Waited::CoreGone),
                    Err(_) => self.wait_without_thread(awaited, group),
                }
            }
        }
    }

    /// Takes a task or part for the thread that is to get this one's core.
    fn find_for_another(&self) -> Option<Task> {
        let core = self.core.borrow();
        let core = core.as_ref().expect("it is handed on later");
        self.next_of_all(core)
    }

    /// Returns a task or part as a worker picks its next one, or raids.
    fn next_of_all(&self, core: &Core) -> Option<Task> {
        self.look_far_soon(true);
        let ranked = self.next_ranked(core);
        let task = ranked.or_else(|| self.next_own(core)).or_else(|| self.search_others(core));
        task.or_else(|| self.take_near_others(core))
            .or_else(|| self.raid_others(core, Heed::Nothing))
    }

    /// Gives the core to a thread that goes on with its task after a wait. Returns whether there was one.
    fn give_away(&self) -> bool {
        let Some(core) = self.release_core() else { return false };
        match self.give_back(core) {
            Ok(()) => true,
            Err(core) => {
                self.acquire_core(core);
                false
            }
        }
    }

    /// Parks for that time, but not beyond the time at which the wait ends.
    fn park_at_most(&self, time: Duration, awaited: &dyn Awaited) {
        let left = awaited.end().map(|end| end.saturating_duration_since(Instant::now()));
        self.listener.sleeper().park_for(left.map_or(time, |left| left.min(time)));
    }

    /// Decides what to do with work that no other thread can take over. A part of the group runs here, if enough of the
    /// stack is left. While another core is in use, this thread waits for a while with all other work: a thread may become
    /// free. Otherwise that runs here as well.
    #[cold]
    fn wait_without_thread(&self, awaited: &dyn Awaited, group: Option<usize>) -> Option<Waited> {
        let shared = &*self.shared;
        // A deep stack has left the parts of the group to other threads so far. There is none.
        if let Some(job) = self.find_own_part(group) {
            return Some(Waited::Found(job));
        }
        if self.has_room() {
            // Nobody else can run what was broadcast to this core.
            let core = self.core.borrow();
            let core = core.as_ref().expect("it is kept");
            if let Some(task) = self.next_broadcast(core) {
                return Some(Waited::NobodyElse(task));
            }
        }
        if shared.handoff.keep_core() {
            self.park_at_most(THREAD_RETRY, awaited);
            shared.handoff.use_core();
            return None;
        }
        if !self.has_room() {
            self.park_at_most(THREAD_RETRY, awaited);
            return None;
        }
        let core = self.core.borrow();
        let core = core.as_ref().expect("it is kept");
        self.next_of_all(core).map(Waited::NobodyElse)
    }
}
