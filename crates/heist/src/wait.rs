//! What a thread does while it waits for a task.
//!
//! Outside of any pool it sleeps. On a worker it first tries to run the task itself: that is what it
//! needs, so nothing is buried under anything that does not depend on it. If the task is running
//! elsewhere, the worker's seat goes to another thread as soon as there is something to do, and
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

use crate::core::count_wake_up;
use crate::help::Verdict;
use crate::idle::Rise;
use crate::job;
use crate::listener::Listener;
use crate::member::{Host, Intake, Member, with_host};
use crate::queues::Queues;
use crate::sync::{Arc, AtomicUsize, pause, thread_local, yield_now};
use crate::task::{Awaited, Refusal, Started, Task};
use crate::trace::{self, EventKind, record};
use crate::worker::Refused;

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

/// After so many claimed tasks their husks are looked for; a guess.
const HUSKS: usize = 64;

thread_local! {
    /// Of a thread that belongs to no pool.
    static LISTENER: Arc<Listener> = Arc::new(Listener::thread());
}

/// Returns when the task is done, whatever thread this is. `pool` is where it was spawned.
pub(crate) fn wait(awaited: &dyn Awaited, pool: usize) {
    if awaited.is_done() {
        return;
    }
    if with_host(|host| host.wait(awaited, pool)).is_none() {
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
            listener.berth().park();
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
            listener.berth().park_for(left);
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

impl<Q: Queues> Host for Member<Q> {
    fn submit(&self, task: Task, count: u64) {
        if Q::NESTS {
            self.publish_each();
        }
        self.push(task, count);
    }

    fn submit_job(&self, job: Task) {
        if Q::NESTS {
            self.publish_each();
        }
        self.push_jobs(iter::once(job));
    }

    fn intake(&self) -> NonNull<dyn Intake> {
        NonNull::from(&*self.core as &dyn Intake)
    }

    fn pool(&self) -> Arc<dyn Intake> {
        Arc::clone(&self.core) as _
    }

    fn workers(&self) -> usize {
        self.core.config.workers
    }

    fn has_searcher(&self) -> bool {
        self.core.idle.has_searcher()
    }

    fn answer_demand(&self) {
        Self::answer_demand(self);
    }

    fn wait(&self, awaited: &dyn Awaited, pool: usize) {
        if Q::NESTS {
            return self.nest(awaited);
        }
        let ours = pool == self.core.id();
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
        self.publish_all();
        match delegate {
            None => self.wait_long(awaited, false),
            Some(task) => self.wait_for_delegate(awaited, task),
        }
    }

    fn wait_for_job(&self, awaited: &dyn Awaited, thief: Option<&AtomicUsize>) {
        Self::wait_for_job(self, awaited, thief);
    }
}

/// How a wait with a seat has ended.
enum Waited {
    Done,
    /// The seat has gone to another thread.
    Unseated,
    /// There is something to do that may be done here.
    Found(Started),
    /// There is something to do, and nobody else to do it.
    Pressed(Task),
}

impl<Q: Queues> Member<Q> {
    /// Runs the task right here, unless it has started.
    fn run_awaited(&self, awaited: &dyn Awaited) -> bool {
        let at_hand = self.seat.borrow().as_ref().and_then(|seat| {
            let is_it = |task: &Task| task.id() == awaited.id();
            self.core.queues.take_back(&seat.own, is_it, seat.tally())
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
        if self.core.is_cancelling() && !claimed.is_job() {
            claimed.refuse(Refusal::Cancelled);
            self.with_tally(|tally| tally.one(|block| &block.cancellations));
        } else {
            let execute = || trace::task(|| claimed.execute(&self.core.config.on_panic));
            let root = if claimed.is_job() { job::root() } else { awaited.id() };
            self.count(job::in_root(root, execute));
        }
        claimed.done();
        self.clear_away();
        true
    }

    /// Is there enough of the stack left to run something on top of what waits?
    pub(crate) fn is_shallow(&self) -> bool {
        self.stack_used() < self.core.config.stack_size / STACK_SHARE
    }

    /// Likewise, when nobody else could run it?
    fn has_room(&self) -> bool {
        self.stack_used() < self.core.config.stack_size / STACK_SHARE * (STACK_SHARE - 1)
    }

    /// Sleeps, most of the time, until it is done.
    pub(crate) fn wait_long(&self, awaited: &dyn Awaited, helps: bool) {
        while !awaited.is_done() {
            if self.seat.borrow().is_none() {
                // It has been away since it gave its seat, and is until it retires.
                return self.sleep_until(awaited);
            }
            self.core.idle.step_aside();
            match self.wait_seated(awaited, helps) {
                Waited::Done => self.core.idle.step_back(),
                Waited::Unseated => {}
                Waited::Found(job) => {
                    self.core.idle.step_back();
                    self.restock();
                    self.run_started(job);
                }
                Waited::Pressed(task) => {
                    self.core.idle.step_back();
                    self.run(task);
                }
            }
        }
    }

    /// Likewise, while another thread is to run what is waited for.
    pub(crate) fn wait_for_delegate(&self, awaited: &dyn Awaited, task: Task) {
        if self.seat.borrow().is_none() {
            self.core.inject(task, 0);
            return self.sleep_until(awaited);
        }
        self.core.idle.step_aside();
        match self.give_seat(task) {
            Ok(()) => self.sleep_until(awaited),
            Err(refused) => {
                // Nobody has more stack.
                let task = match refused {
                    Refused::Kept(task) => {
                        self.core.relief.resume();
                        task
                    }
                    Refused::Last(task) => task,
                };
                self.core.idle.step_back();
                self.run(task);
            }
        }
    }

    /// A task that was claimed leaves a husk in a queue. Whoever comes upon it drops it; but a task that
    /// goes on spawning and waiting might never let its worker come upon it. So now and then it takes
    /// tasks out of the queues where they are, twice as many as it has left husks, drops the husks and
    /// puts back the rest: then there are never many more husks than tasks.
    fn clear_away(&self) {
        let husks = self.husks.get() + 1;
        self.husks.set(husks % HUSKS);
        let seat = self.seat.borrow();
        let Some(seat) = &*seat else { return };
        if husks < HUSKS {
            return;
        }
        let (queues, tally) = (&self.core.queues, seat.tally());
        let newest = iter::from_fn(|| queues.pop(&seat.own, tally)).take(HUSKS);
        let outside = iter::from_fn(|| queues.withdraw(tally)).take(2 * HUSKS);
        let mut rest = [const { None }; 3 * HUSKS];
        let live = newest.chain(outside).filter_map(Task::unless_husk);
        let count = rest.iter_mut().zip(live).map(|(place, task)| *place = Some(task)).count();
        for task in rest.into_iter().take(count).rev().flatten() {
            queues.push(&seat.own, task, tally);
        }
        if count > 0 {
            self.core.announce(tally);
        }
    }

    /// Waits as an idle worker does, until the task is done, or until there is work: then the seat goes
    /// to another thread with it, unless it may be run here.
    fn wait_seated(&self, awaited: &dyn Awaited, helps: bool) -> Waited {
        let core = &*self.core;
        let mut searching = false;
        while !awaited.is_done() {
            let (found, index) = {
                let seat = self.seat.borrow();
                let seat = seat.as_ref().expect("it is not given away but below");
                (seat.next(core).or_else(|| seat.hunt(core)), seat.index)
            };
            if let Some(task) = found {
                self.leave_search(&mut searching);
                if awaited.is_done() {
                    self.put_back(task);
                    return Waited::Done;
                }
                let may_help = helps && self.is_shallow();
                let task = match self.judge(task, may_help) {
                    Verdict::Husk => continue,
                    Verdict::Ours(job) => return Waited::Found(job),
                    Verdict::NotOurs(task) => task,
                };
                if may_help && let Some(job) = self.seek_ours() {
                    self.put_back(task);
                    return Waited::Found(job);
                }
                match self.give_seat(task) {
                    Ok(()) => return Waited::Unseated,
                    Err(Refused::Kept(task)) => return self.keep_seat(task, awaited, helps),
                    Err(Refused::Last(task)) => match self.press(task, helps) {
                        Some(found) => return found,
                        None => continue,
                    },
                }
            }
            let rise = self.sleep(searching, index, || awaited.is_done());
            debug_assert!(
                matches!(rise, Rise::Early | Rise::Called),
                "no end while a thread is away"
            );
            searching = true;
        }
        self.leave_search(&mut searching);
        Waited::Done
    }

    pub(crate) fn leave_search(&self, searching: &mut bool) {
        let core = &*self.core;
        if std::mem::take(searching) && core.idle.leave_search(|| core.queues.any()) {
            self.with_tally(count_wake_up);
        }
    }

    /// Nobody can take the seat: there are too many threads. What was found goes to the others, and this
    /// thread sleeps with its seat.
    #[cold]
    fn keep_seat(&self, found: Task, awaited: &dyn Awaited, helps: bool) -> Waited {
        // Nobody has more stack, if it is that.
        let found = match self.judge(found, helps) {
            Verdict::Husk => None,
            Verdict::Ours(job) => {
                self.core.relief.resume();
                return Waited::Found(job);
            }
            Verdict::NotOurs(task) => Some(task),
        };
        found.into_iter().for_each(|task| self.put_back(task));
        self.sleep_until(awaited);
        self.core.relief.resume();
        Waited::Done
    }

    /// Nobody can take the seat, and it is the last one in use: what was found is run here, if there is enough of the stack left.
    /// If not, it waits for a while: a thread may end somewhere, and leave room for one of ours.
    #[cold]
    fn press(&self, found: Task, helps: bool) -> Option<Waited> {
        let task = match self.judge(found, helps) {
            Verdict::Husk => return None,
            Verdict::Ours(job) => return Some(Waited::Found(job)),
            Verdict::NotOurs(task) => task,
        };
        if helps && let Some(job) = self.seek_ours() {
            self.put_back(task);
            return Some(Waited::Found(job));
        }
        if self.has_room() {
            return Some(Waited::Pressed(task));
        }
        self.put_back(task);
        self.listener.berth().park_for(LATER);
        None
    }

    pub(crate) fn sleep_until(&self, awaited: &dyn Awaited) {
        record(EventKind::Park);
        while !awaited.is_done() {
            self.listener.berth().park();
        }
        record(EventKind::Unpark);
    }

    /// A task that was taken out of a queue and cannot be run here.
    pub(crate) fn put_back(&self, task: Task) {
        let core = &*self.core;
        self.with_tally(|tally| {
            core.queues.inject(task, tally);
            core.announce(tally);
        });
    }
}
