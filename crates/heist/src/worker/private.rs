//! How a worker keeps what it spawns private, and publishes it when another one wants it: `idle/README.md`, section D.

use std::iter;

use crate::fork::job;
use crate::fork::private::{PrivateTasks, Stack};
use crate::fork::raid::More;
use crate::stats::Tally;
use crate::sync::{HeavyFence, heavy_fence_state};
use crate::task::Task;
use crate::trace::{EventKind, record};
use crate::worker::current::AnyWorker;
use crate::worker::policy::PoolQueues;
use crate::worker::thread::WorkerThread;

/// While a worker spawns, it answers a demand when it has at least this many private tasks. A guess.
const MANY: usize = if cfg!(any(loom, shuttle)) { 2 } else { 8 };

/// At most this many private tasks go to the thread's deque at once. If there are more, they go to the injector.
const FEW: usize = 128;

/// What a worker keeps private.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Parts of a scope that the thread has opened.
    Part,
    /// Tasks that have not started.
    Task,
}

impl Kind {
    #[inline(always)]
    fn of(self, private: &PrivateTasks) -> &Stack {
        match self {
            Self::Part => &private.parts,
            Self::Task => &private.tasks,
        }
    }
}

/// How many private tasks are to be published.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// As many as other workers want (steps D2 and D3).
    AsDemanded,
    All,
}

impl<Q: PoolQueues> WorkerThread<Q> {
    /// Keeps a new task private, and publishes some if other workers want them. Returns the task if the thread keeps none
    /// private. A thread without a core keeps only parts private: it may not come to run a task that it has spawned.
    #[inline(always)]
    pub(crate) fn push_private(&self, kind: Kind, task: Task) -> Result<(), Task> {
        if !Q::PRIVATE || heavy_fence_state() != HeavyFence::Ready {
            return Err(task);
        }
        let mut task = Some(task);
        let pushed = job::with_tasks(|private, _| {
            // SAFETY: these are the private tasks of the calling thread.
            task = unsafe { kind.of(private).push(task.take()?) }.err();
            Some(())
        });
        match task {
            Some(task) if pushed.is_none() => return Err(task),
            Some(task) => Self::push_to_full(kind, task),
            None => {}
        }
        if job::is_demanded() {
            self.answer_if_many();
        }
        Ok(())
    }

    /// Pushes a part of a scope that this thread has opened. So the thread that waits for the scope, which is this one, finds
    /// it where it is. (If another thread kept a part private, and then waited for it by other means than the pool's, the
    /// thread that waits for the scope could not reach it.)
    pub(crate) fn push_part(&self, part: Task) {
        if !Self::keeps_private() {
            return AnyWorker::push_job(self, part);
        }
        self.pick_up_core();
        // Before another worker can count its end.
        self.with_tally(|tally| tally.one(|block| &block.tasks_submitted));
        self.has_spawned.set(true);
        let pushed = self.push_private(Kind::Part, part);
        debug_assert!(pushed.is_ok(), "the thread keeps tasks private");
    }

    /// Returns whether this thread keeps tasks private, if it has a core, and parts in any case.
    #[inline(always)]
    fn keeps_private() -> bool {
        Q::PRIVATE
            && heavy_fence_state() == HeavyFence::Ready
            && job::with_tasks(|_, _| Some(())).is_some()
    }

    /// Takes the newest private part of this thread, if it belongs to that group. If it does not, all of them are published.
    pub(crate) fn pop_part_of(&self, group: usize) -> Option<Task> {
        let part = self.pop_private(Kind::Part)?;
        // SAFETY: it was in no queue, and has no handle.
        let its_group = unsafe { part.group() };
        if its_group == group {
            return Some(part);
        }
        self.publish_tasks(Wanted::All);
        self.shared.queues.push_job(&self.place.own, part, its_group);
        self.with_tally(|tally| tally.one(|block| &block.publications));
        record(EventKind::Publish { tasks: 1 });
        self.announce_own();
        None
    }

    /// Returns whether this thread has a part, private or published.
    pub(crate) fn has_part(&self) -> bool {
        let has_private = || job::with_tasks(|private, _| private.parts.any().then_some(()));
        (Q::PRIVATE && has_private().is_some())
            || self.shared.queues.has_job(&self.shared.table.entry(self.place.index).queues)
    }

    /// Publishes private jobs and tasks that other workers want, when a task was pushed. A few tasks stay private unless a
    /// worker sleeps: as a rule this thread goes on to spawn more of them, or waits for them and runs them.
    #[cold]
    #[inline(never)]
    fn answer_if_many(&self) {
        let few = job::with_tasks(|private, demand| {
            (private.len() < MANY && !job::any() && demand.may_keep(&self.shared.idle))
                .then_some(())
        });
        if few.is_none() {
            self.answer_demand();
        }
    }

    /// Adds a private task, for which there may be no room.
    #[cold]
    #[inline(never)]
    fn push_to_full(kind: Kind, task: Task) {
        job::with_tasks(|private, demand| {
            let guard = demand.guard().expect("private tasks can be raided");
            let stack = kind.of(private);
            // SAFETY: the owner, which holds the lock.
            unsafe { stack.make_room(&guard) };
            // SAFETY: the owner.
            let pushed = unsafe { stack.push(task) };
            debug_assert!(pushed.is_ok(), "there is room now");
            Some(())
        });
    }

    /// Gives back the memory of very many private tasks, when there are none.
    pub(crate) fn shrink_private(&self) {
        if !Q::PRIVATE {
            return;
        }
        job::with_tasks(|private, demand| {
            for stack in [&private.parts, &private.tasks] {
                if stack.is_large() {
                    let guard = demand.guard().expect("private tasks can be raided");
                    // SAFETY: the owner, which holds the lock.
                    unsafe { stack.shrink(&guard) };
                }
            }
            Some(())
        });
    }

    /// Takes the newest private task.
    #[inline(always)]
    pub(crate) fn pop_private(&self, kind: Kind) -> Option<Task> {
        if !Q::PRIVATE {
            return None;
        }
        // SAFETY: these are the private tasks of the calling thread, and its demand.
        let task = job::with_tasks(|private, demand| unsafe { kind.of(private).pop(demand) })?;
        if job::is_demanded() {
            self.answer_with_rest();
        }
        Some(task)
    }

    /// Publishes the other private tasks, as many as are wanted.
    #[cold]
    #[inline(never)]
    fn answer_with_rest(&self) {
        if job::any() || job::with_tasks(|private, _| private.any().then_some(())).is_some() {
            self.answer_demand();
        }
    }

    /// Takes the newest published task of this thread.
    #[inline(always)]
    pub(crate) fn pop_published(&self, tally: Tally<'_>) -> Option<Task> {
        let task = self.shared.queues.pop(&self.place.own, tally)?;
        if Q::PRIVATE && self.shared.config.workers > 1 {
            // It may have been published for a worker that sleeps, and has woken no one (step D4).
            job::with_tasks(|_, demand| {
                if self.shared.idle.has_sleeper() {
                    demand.restore();
                }
                Some(())
            });
        }
        Some(task)
    }

    /// Returns whether this thread has private tasks that have not started.
    pub(crate) fn has_private_tasks(&self) -> bool {
        Q::PRIVATE && job::with_tasks(|private, _| private.tasks.any().then_some(())).is_some()
    }

    /// Takes the newest private task, if it has that number.
    pub(crate) fn pop_private_if(&self, id: usize) -> Option<Task> {
        job::with_tasks(|private, _| (private.tasks.newest()? == id).then_some(()))?;
        self.pop_private(Kind::Task)
    }

    /// Takes the oldest private task or part.
    pub(crate) fn take_oldest_private(&self, kind: Kind) -> Option<Task> {
        if !Q::PRIVATE {
            return None;
        }
        job::with_tasks(|private, demand| {
            let guard = demand.guard().expect("private tasks can be raided");
            // SAFETY: the owner, which holds the lock.
            unsafe { kind.of(private).take_oldest(&guard) }
        })
    }

    /// Keeps what this thread has taken in a raid beyond the task that it runs, the oldest first.
    pub(crate) fn keep_raided(&self, tasks: More) {
        if tasks.len() == 0 {
            return;
        }
        let (queues, own) = (&self.shared.queues, &self.place.own);
        for task in tasks {
            self.with_tally(|tally| queues.push_local(own, task, tally));
        }
        self.announce_own();
    }

    /// Publishes private tasks, the oldest first.
    pub(crate) fn publish_tasks(&self, wanted: Wanted) {
        if !Q::PRIVATE {
            return;
        }
        let (queues, own) = (&self.shared.queues, &self.place.own);
        let mut count = 0;
        job::with_tasks(|private, demand| {
            if !private.any() {
                return None;
            }
            let guard = demand.guard().expect("private tasks can be raided");
            // SAFETY: the owner, which holds the lock.
            let oldest = |stack: &Stack| unsafe { stack.take_oldest(&guard) };
            // If there are very many, others get a good part of them at once.
            let most = |stack: &Stack| match wanted {
                Wanted::All => stack.len(),
                Wanted::AsDemanded => demand.count().max(stack.len() / MANY).min(stack.len()),
            };
            for _ in 0..most(&private.parts) {
                let Some(part) = oldest(&private.parts) else { break };
                // Before others can see it, and only for one that they will see.
                demand.lower();
                // SAFETY: it was in no queue, and has no handle.
                let group = unsafe { part.group() };
                queues.push_job(own, part, group);
                count += 1;
            }
            let next = || {
                let task =
                    iter::from_fn(|| oldest(&private.tasks)).find(|task| !task.is_stale())?;
                demand.lower();
                count += 1;
                Some(task)
            };
            let most = most(&private.tasks);
            let mut tasks = iter::from_fn(next).take(most);
            self.with_tally(|tally| {
                if most > FEW {
                    queues.push_many_local(own, &mut tasks, tally);
                } else {
                    tasks.for_each(|task| queues.push_local(own, task, tally));
                }
            });
            Some(())
        });
        if count > 0 {
            self.with_tally(|tally| tally.add(|block| &block.publications, count));
            record(EventKind::Publish { tasks: count as usize });
            self.announce_own();
        }
    }

    /// Announces what this thread has published.
    fn announce_own(&self) {
        self.with_tally(|tally| self.shared.announce(tally, self.place.index));
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::thread;

    use crate::idle::{IdleWorker, LastLook, WakeReason};
    use crate::queues::{Queues, Stealing};
    use crate::sync::{Arc, AtomicBool, HeavyFence, Ordering, heavy_fence_state};
    use crate::task::Task;
    use crate::task::listener::Listener;
    use crate::worker::config::Config;
    use crate::worker::core::Core;
    use crate::worker::current::enter;
    use crate::worker::shared::Shared;
    use crate::worker::thread::WorkerThread;

    fn task() -> Task {
        // SAFETY: it borrows nothing.
        unsafe { Task::new(|| ()) }.0
    }

    /// Calls `f` on the thread of the first worker of a pool of that many workers, which has no other threads. Does nothing on
    /// a system on which nothing is private.
    fn as_worker(workers: usize, f: impl FnOnce(&WorkerThread<Stealing>)) {
        let shared = Arc::new(Shared::new(Config::plain(workers, workers)));
        while heavy_fence_state() == HeavyFence::Pending {
            thread::yield_now();
        }
        if !shared.has_raids() {
            return;
        }
        let place = shared.enter().expect("there is a place");
        let thread = Box::new(WorkerThread::new(Arc::clone(&shared), place));
        thread.acquire_core(Box::new(Core::new(0, shared.ledger.of_worker(0))));
        let work = || {
            thread.be_raided();
            f(&thread);
        };
        // SAFETY: a worker thread of the pool with that id, and one of that pool's demands.
        unsafe { enter(shared.id(), &*thread, &shared.demand_when_idle, work) };
    }

    /// Takes all tasks of the worker, private and published.
    fn drain(thread: &WorkerThread<Stealing>) -> usize {
        let core = thread.core.borrow();
        let core = core.as_ref().expect("it has a core");
        std::iter::from_fn(|| thread.next_own(core)).count()
    }

    #[test]
    fn a_worker_that_sleeps_is_not_forgotten() {
        as_worker(3, |thread| {
            let shared = &thread.shared;
            let awake = Arc::new(AtomicBool::new(false));
            let (of_sleeper, is_awake) = (Arc::clone(shared), Arc::clone(&awake));
            let (send, receive) = std::sync::mpsc::channel();
            let sleeper = thread::spawn(move || {
                let listener = Arc::new(Listener::thread());
                send.send(Arc::clone(&listener)).expect("the test waits for it");
                let done = || is_awake.load(Ordering::SeqCst);
                let me = IdleWorker { listener: &listener, place: 2, searching: false, end: None };
                of_sleeper.idle.sleep(me, || LastLook::Nothing, || false, done, || ())
            });
            let listener = receive.recv().expect("the thread sends it");
            while !shared.idle.has_sleeper() {
                thread::yield_now();
            }
            // Another worker searches, so that nobody is woken, and takes each task before that one comes.
            assert!(shared.idle.start_search(1));
            let entry = shared.table.entry(thread.place.index);
            // All but one of what it wanted was answered.
            entry.demand.take();
            entry.demand.restore();
            for n in 0..1_000 {
                thread.push_local(task(), 1);
                assert!(shared.queues.has_any(&entry.queues), "task {n} is out of reach");
                let tally = shared.ledger.of_non_workers();
                drop(shared.queues.steal_one(&entry.queues, tally));
            }
            awake.store(true, Ordering::SeqCst);
            listener.notify();
            assert_eq!(sleeper.join().expect("it does not panic"), WakeReason::Done);
        });
    }

    #[test]
    fn what_nobody_wants_stays_private() {
        as_worker(1, |thread| {
            let entry = thread.shared.table.entry(thread.place.index);
            for count in [1, 10, 100_000] {
                (0..count).for_each(|_| thread.push_local(task(), 1));
                assert!(!thread.shared.queues.has_any(&entry.queues));
                assert!(!thread.shared.queues.has_remote());
                assert_eq!(drain(thread), count);
            }
            let private = entry.demand.tasks.as_deref().expect("in a pool of one cluster");
            assert!(private.tasks.is_large());
            thread.shrink_private();
            assert!(!private.tasks.is_large(), "the memory is given back");
        });
    }

    #[test]
    fn stale_entries_do_not_pile_up() {
        as_worker(1, |thread| {
            let hook = Arc::default();
            for _ in 0..100_000 {
                // SAFETY: it borrows nothing.
                let (task, handle) = unsafe { Task::new(|| ()) };
                thread.push_local(task, 1);
                let claimed = crate::task::Awaited::claim(&handle).expect("it has not started");
                let _ = claimed.execute(&hook);
                claimed.done();
            }
            let entry = thread.shared.table.entry(thread.place.index);
            let private = entry.demand.tasks.as_deref().expect("in a pool of one cluster");
            assert!(!private.tasks.is_large(), "{} are left", private.tasks.len());
            drain(thread);
        });
    }
}
