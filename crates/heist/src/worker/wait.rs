//! What a thread does while it waits for a task.
//!
//! Outside of any pool it sleeps. On a worker it first tries to run the task itself: that is what it
//! needs, so nothing is buried under anything that does not depend on it. If the task is running
//! elsewhere, the worker's core goes to another thread as soon as there is something to do, and
//! this one sleeps. So every stack is a chain of tasks each of which waits for the one above it,
//! and whoever waits at the top waits for a task that is running: no wait waits for ever that would
//! not on threads of their own.
//!
//! Only where the system refuses threads the last worker that is up runs what there is on top of what
//! waits, whatever it is: then a wait may wait for what lies beneath it, but nothing would run otherwise.
//!
//! A stack is kept from growing without bound in the same way: a thread that has used a good part
//! of it does not run the task itself but lets the next thread do it, on a stack of its own.

use std::iter;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

use crate::fork::job;
use crate::idle::WakeReason;
use crate::queues::Queues;
use crate::sync::{Arc, AtomicUsize, pause, thread_local, yield_now};
use crate::task::listener::Listener;
use crate::task::{Awaited, Refusal, Started, Task};
use crate::trace::{self, EventKind, record};
use crate::worker::current::{AnyPool, AnyWorker, with_worker};
use crate::worker::help::Classified;
use crate::worker::run::Refused;
use crate::worker::shared::count_wake_up;
use crate::worker::thread::WorkerThread;

/// A task is run on top of the one that waits for it while the stack is used up to one part in
/// this many. The rest is for the task.
const STACK_SHARE: usize = 4;

/// Looks at a task that is running elsewhere before sleeping is considered. To sleep and to be
/// woken takes some ten microseconds on a good day.
#[cfg(not(shuttle))]
pub(crate) const LOOKS: u32 = 64;
/// Few, so that a checker sees what comes after them.
#[cfg(shuttle)]
pub(crate) const LOOKS: u32 = 1;
/// Pauses between two looks.
#[cfg(not(shuttle))]
pub(crate) const PAUSES: u32 = 8;
/// Likewise.
#[cfg(shuttle)]
pub(crate) const PAUSES: u32 = 1;
/// And then the core is yielded so often: the task may have been on it.
#[cfg(not(shuttle))]
pub(crate) const YIELDS: u32 = 4;
/// Likewise.
#[cfg(shuttle)]
pub(crate) const YIELDS: u32 = 1;

/// How long one waits for the system to have room for another thread; a guess.
const LATER: Duration = Duration::from_millis(10);

/// After so many claimed tasks their stale entries are looked for; a guess.
const STALE_ENTRIES: usize = 64;

thread_local! {
    /// Of a thread that belongs to no pool.
    static LISTENER: Arc<Listener> = Arc::new(Listener::thread());
}

/// Returns when the task is done, whatever thread this is. `pool` is where it was spawned.
pub(crate) fn wait(awaited: &dyn Awaited, pool: usize) {
    if awaited.is_done() {
        return;
    }
    if with_worker(|worker| worker.wait(awaited, pool)).is_none() {
        wait_outside(awaited);
    }
}

/// For a thread of no pool, and something that is short.
pub(crate) fn watch_outside(awaited: &dyn Awaited) {
    if !watch(awaited) {
        wait_outside(awaited);
    }
}

fn wait_outside(awaited: &dyn Awaited) {
    // A thread that is being torn down has no listener any more.
    let listener = LISTENER.try_with(Arc::clone).unwrap_or_else(|_| Arc::new(Listener::thread()));
    if awaited.listen(Arc::clone(&listener)) {
        while !awaited.is_done() {
            listener.sleeper().park();
        }
    }
}

/// For a thread of no pool: sleeps until it is done, at most that long. Is it?
pub(crate) fn doze(awaited: &dyn Awaited, limit: Duration) -> bool {
    let listener = LISTENER.try_with(Arc::clone).unwrap_or_else(|_| Arc::new(Listener::thread()));
    let end = Instant::now() + limit;
    if awaited.listen(Arc::clone(&listener)) {
        while !awaited.is_done() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || cfg!(any(loom, shuttle)) {
                break;
            }
            // It may be woken by what was told to it before.
            listener.sleeper().park_for(left);
        }
    }
    awaited.is_done()
}

/// Looks for a moment. Is it done?
pub(crate) fn watch(awaited: &dyn Awaited) -> bool {
    for _ in 0..LOOKS {
        if awaited.is_done() {
            return true;
        }
        (0..PAUSES).for_each(|_| pause());
    }
    for _ in 0..YIELDS {
        yield_now();
        if awaited.is_done() {
            return true;
        }
    }
    false
}

impl<Q: Queues> AnyWorker for WorkerThread<Q> {
    fn push_local(&self, task: Task, count: u64) {
        if Q::NESTS {
            self.publish_private_jobs();
        }
        self.push_local(task, count);
    }

    fn push_job(&self, job: Task) {
        if Q::NESTS {
            self.publish_private_jobs();
        }
        self.push_jobs(iter::once(job));
    }

    fn any_pool(&self) -> NonNull<dyn AnyPool> {
        NonNull::from(&*self.shared as &dyn AnyPool)
    }

    fn pool(&self) -> Arc<dyn AnyPool> {
        Arc::clone(&self.shared) as _
    }

    fn workers(&self) -> usize {
        self.shared.config.workers
    }

    fn has_searcher(&self) -> bool {
        self.shared.idle.has_searcher()
    }

    fn answer_demand(&self) {
        Self::answer_demand(self);
    }

    fn wait(&self, awaited: &dyn Awaited, pool: usize) {
        if Q::NESTS {
            return self.wait_nested(awaited);
        }
        let ours = pool == self.shared.id();
        if ours && self.is_shallow() && self.run_awaited(awaited) {
            return;
        }
        if watch(awaited) || !awaited.listen(Arc::clone(&self.listener)) {
            return;
        }
        // Not shallow, then, or it has started. In the first case another thread is to run it, and that
        // before anything else: what else is there may wait for what this one holds.
        let claimed = if ours { awaited.claim() } else { None };
        // SAFETY: this thread waits until the task is done.
        let delegate = claimed.map(|claimed| unsafe { claimed.delegate() });
        self.publish_before_sleep();
        match delegate {
            None => self.wait_long(awaited, false),
            Some(task) => self.wait_for_delegate(awaited, task),
        }
    }

    fn wait_for_job(&self, awaited: &dyn Awaited, thief: Option<&AtomicUsize>) {
        Self::wait_for_job(self, awaited, thief);
    }
}

/// How a wait with a core has ended.
enum Waited {
    Done,
    /// The core has gone to another thread.
    CoreGone,
    /// There is something to do that may be done here.
    Found(Started),
    /// There is something to do, and nobody else to do it.
    NobodyElse(Task),
}

impl<Q: Queues> WorkerThread<Q> {
    /// Runs the task right here, unless it has started.
    fn run_awaited(&self, awaited: &dyn Awaited) -> bool {
        let at_hand = self.core.borrow().as_ref().and_then(|core| {
            let is_it = |task: &Task| task.id() == awaited.id();
            self.shared.queues.take_back(&core.own, is_it, core.tally())
        });
        if let Some(task) = at_hand {
            self.run(task);
            return true;
        }
        self.run_claimed(awaited)
    }

    /// Runs the task right here, wherever its other side is, unless it has started.
    pub(crate) fn run_claimed(&self, awaited: &dyn Awaited) -> bool {
        let Some(claimed) = awaited.claim() else { return false };
        if self.shared.is_cancelling() && !claimed.is_job() {
            claimed.refuse(Refusal::Cancelled);
            self.with_tally(|tally| tally.one(|block| &block.cancellations));
        } else {
            let execute = || trace::task(|| claimed.execute(&self.shared.config.on_panic));
            let root = if claimed.is_job() { job::root() } else { awaited.id() };
            self.count(job::in_root(root, execute));
        }
        claimed.done();
        self.drop_stale_entries();
        true
    }

    /// Is there enough of the stack left to run something on top of what waits?
    pub(crate) fn is_shallow(&self) -> bool {
        self.stack_used() < self.shared.config.stack_size / STACK_SHARE
    }

    /// Likewise, when nobody else could run it?
    fn has_room(&self) -> bool {
        self.stack_used() < self.shared.config.stack_size / STACK_SHARE * (STACK_SHARE - 1)
    }

    /// Sleeps, most of the time, until it is done.
    pub(crate) fn wait_long(&self, awaited: &dyn Awaited, helps: bool) {
        while !awaited.is_done() {
            if self.core.borrow().is_none() {
                // It has been away since it gave its core, and is until it retires.
                return self.sleep_until(awaited);
            }
            self.shared.idle.enter_away();
            match self.wait_with_core(awaited, helps) {
                Waited::Done => self.shared.idle.leave_away(),
                Waited::CoreGone => {}
                Waited::Found(job) => {
                    self.shared.idle.leave_away();
                    self.restore_demand();
                    self.run_started(job);
                }
                Waited::NobodyElse(task) => {
                    self.shared.idle.leave_away();
                    self.run(task);
                }
            }
        }
    }

    /// Likewise, while another thread is to run what is waited for.
    pub(crate) fn wait_for_delegate(&self, awaited: &dyn Awaited, task: Task) {
        if self.core.borrow().is_none() {
            self.shared.push_remote(task, 0);
            return self.sleep_until(awaited);
        }
        self.shared.idle.enter_away();
        match self.hand_off_core(task) {
            Ok(()) => self.sleep_until(awaited),
            Err(refused) => {
                // Nobody has more stack.
                let task = match refused {
                    Refused::Kept(task) => {
                        self.shared.handoff.resume();
                        task
                    }
                    Refused::Last(task) => task,
                };
                self.shared.idle.leave_away();
                self.run(task);
            }
        }
    }

    /// A task that was claimed leaves a stale entry in a queue. Whoever comes upon it drops it; but a task that
    /// goes on spawning and waiting might never let its worker come upon it. So now and then it takes
    /// tasks out of the queues where they are, twice as many as it has left stale entries, drops the stale entries and
    /// puts back the rest: then there are never many more stale entries than tasks.
    fn drop_stale_entries(&self) {
        let stale_entries = self.stale_entries.get() + 1;
        self.stale_entries.set(stale_entries % STALE_ENTRIES);
        let core = self.core.borrow();
        let Some(core) = &*core else { return };
        if stale_entries < STALE_ENTRIES {
            return;
        }
        let (queues, tally) = (&self.shared.queues, core.tally());
        let newest = iter::from_fn(|| queues.pop(&core.own, tally)).take(STALE_ENTRIES);
        let outside = iter::from_fn(|| queues.take_one_injected(tally)).take(2 * STALE_ENTRIES);
        let mut rest = [const { None }; 3 * STALE_ENTRIES];
        let live = newest.chain(outside).filter_map(Task::unless_stale);
        let count = rest.iter_mut().zip(live).map(|(place, task)| *place = Some(task)).count();
        for task in rest.into_iter().take(count).rev().flatten() {
            queues.push_local(&core.own, task, tally);
        }
        if count > 0 {
            self.shared.announce(tally);
        }
    }

    /// Waits as an idle worker does, until the task is done, or until there is work: then the core goes
    /// to another thread with it, unless it may be run here.
    fn wait_with_core(&self, awaited: &dyn Awaited, helps: bool) -> Waited {
        let shared = &*self.shared;
        let mut searching = false;
        while !awaited.is_done() {
            let (found, index) = {
                let core = self.core.borrow();
                let core = core.as_ref().expect("it is not given away but below");
                (core.next(shared).or_else(|| core.search_others(shared)), core.index)
            };
            if let Some(task) = found {
                self.leave_search(&mut searching);
                if awaited.is_done() {
                    self.put_back(task);
                    return Waited::Done;
                }
                let may_help = helps && self.is_shallow();
                let task = match self.classify(task, may_help) {
                    Classified::Stale => continue,
                    Classified::Ours(job) => return Waited::Found(job),
                    Classified::NotOurs(task) => task,
                };
                if may_help && let Some(job) = self.find_own_part() {
                    self.put_back(task);
                    return Waited::Found(job);
                }
                match self.hand_off_core(task) {
                    Ok(()) => return Waited::CoreGone,
                    Err(Refused::Kept(task)) => return self.keep_core(task, awaited, helps),
                    Err(Refused::Last(task)) => match self.run_as_last_worker(task, helps) {
                        Some(found) => return found,
                        None => continue,
                    },
                }
            }
            let wake_reason = self.sleep(searching, index, || awaited.is_done());
            debug_assert!(
                matches!(wake_reason, WakeReason::Early | WakeReason::Called),
                "no end while a thread is away"
            );
            searching = true;
        }
        self.leave_search(&mut searching);
        Waited::Done
    }

    pub(crate) fn leave_search(&self, searching: &mut bool) {
        let shared = &*self.shared;
        if std::mem::take(searching) && shared.idle.leave_search(|| shared.queues.any()) {
            self.with_tally(count_wake_up);
        }
    }

    /// Nobody can take the core: there are too many threads. What was found goes to the others, and this
    /// thread sleeps with its core.
    #[cold]
    fn keep_core(&self, found: Task, awaited: &dyn Awaited, helps: bool) -> Waited {
        // Nobody has more stack, if it is that.
        let found = match self.classify(found, helps) {
            Classified::Stale => None,
            Classified::Ours(job) => {
                self.shared.handoff.resume();
                return Waited::Found(job);
            }
            Classified::NotOurs(task) => Some(task),
        };
        found.into_iter().for_each(|task| self.put_back(task));
        self.sleep_until(awaited);
        self.shared.handoff.resume();
        Waited::Done
    }

    /// Nobody can take the core, and it is the last one in use: what was found is run here, if there is enough of the stack left.
    /// If not, it waits for a while: a thread may end somewhere, and leave room for one of ours.
    #[cold]
    fn run_as_last_worker(&self, found: Task, helps: bool) -> Option<Waited> {
        let task = match self.classify(found, helps) {
            Classified::Stale => return None,
            Classified::Ours(job) => return Some(Waited::Found(job)),
            Classified::NotOurs(task) => task,
        };
        if helps && let Some(job) = self.find_own_part() {
            self.put_back(task);
            return Some(Waited::Found(job));
        }
        if self.has_room() {
            return Some(Waited::NobodyElse(task));
        }
        self.put_back(task);
        self.listener.sleeper().park_for(LATER);
        None
    }

    pub(crate) fn sleep_until(&self, awaited: &dyn Awaited) {
        record(EventKind::Park);
        while !awaited.is_done() {
            self.listener.sleeper().park();
        }
        record(EventKind::Unpark);
    }

    /// A task that was taken out of a queue and cannot be run here.
    pub(crate) fn put_back(&self, task: Task) {
        let shared = &*self.shared;
        self.with_tally(|tally| {
            shared.queues.push_remote(task, tally);
            shared.announce(tally);
        });
    }
}
