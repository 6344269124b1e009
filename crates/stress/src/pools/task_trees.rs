//! Random trees of tasks: tasks spawn tasks and futures, one by one and in batches, with priorities, near workers and within
//! bounds, in contexts, wait for them or do not, cancel them, panic, resize the pool, and are cut off by a stop.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use heist::{
    Builder, CancelToken, FutureHandle, JoinError, JoinHandle, Pool, Priority, Stats, Strategy,
};

use super::task_log::{LoggedTask, TaskLog};
use crate::planned::{expect_planned, planned_panic};
use crate::rng::Rng;
use crate::{Error, Violation};

/// How the pool ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Stop,
    Drop,
    /// `stop` while external threads still spawn.
    StopEarly,
    /// `stop_now` while external threads still spawn.
    StopNowEarly,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskTrees {
    strategy: Strategy,
    workers: usize,
    /// The number of external threads that spawn.
    external_threads: u64,
    /// The number of trees that each external thread spawns.
    trees: u64,
    /// The largest number of tasks in all trees.
    max_tasks: usize,
    /// One in this many tasks panics, or none if this is 0.
    panic_interval: u64,
    /// One in this many tasks is cancelled, by its handle or by a token, or none if this is 0.
    cancel_interval: u64,
    /// Do tasks have random priorities?
    priorities: bool,
    /// Are tasks near random workers?
    near: bool,
    /// One in this many tasks is a future, or none if this is 0.
    future_interval: u64,
    /// One in this many tasks resizes the pool, or none if this is 0.
    resize_interval: u64,
    /// The bound on queued tasks, or 0 for none.
    max_queued: usize,
    end: End,
    /// How many events of each thread the pool records; 0 disables the trace.
    trace: usize,
    seed: u64,
    /// Do tasks run in the context in which they were spawned?
    context: bool,
}

impl TaskTrees {
    pub(crate) fn random(rng: &mut Rng, max_tasks: u64) -> Self {
        Self {
            strategy: rng.pick(&Strategy::ALL),
            workers: rng.pick(&[1, 2, 3, 4, 8, 20]),
            external_threads: 1 + rng.below(4),
            trees: 1 + rng.below(40),
            max_tasks: 1 + rng.below(max_tasks) as usize,
            panic_interval: rng.pick(&[0, 0, 5, 30]),
            cancel_interval: rng.pick(&[0, 0, 3, 20]),
            priorities: rng.one_in(2),
            near: rng.one_in(3),
            future_interval: rng.pick(&[0, 0, 2, 10]),
            resize_interval: rng.pick(&[0, 0, 3, 20]),
            max_queued: rng.pick(&[0, 0, 0, 2, 50]),
            end: rng.pick(&[End::Stop, End::Stop, End::Drop, End::StopEarly, End::StopNowEarly]),
            trace: rng.pick(&[0, 0, 0, 64]),
            seed: rng.below(1 << 30),
            context: rng.one_in(4),
        }
    }

    /// Returns a case in which tasks have everything that they can have.
    pub(crate) fn with_everything(strategy: Strategy, max_tasks: usize) -> Self {
        Self {
            strategy,
            workers: 4,
            external_threads: 3,
            trees: 100,
            max_tasks,
            panic_interval: 30,
            cancel_interval: 10,
            priorities: true,
            near: true,
            future_interval: 4,
            resize_interval: 20,
            max_queued: 20,
            end: End::Stop,
            trace: 64,
            seed: 1,
            context: true,
        }
    }

    fn stops_early(&self) -> bool {
        matches!(self.end, End::StopEarly | End::StopNowEarly)
    }

    /// Runs the case, and returns how many tasks it had.
    pub(crate) fn run(&self) -> Result<u64, Error> {
        let may_refuse = self.stops_early() || self.cancel_interval > 0;
        let log = Arc::new(TaskLog::new(self.max_tasks, may_refuse));
        let hook = Arc::clone(&log);
        let builder = match self.max_queued {
            0 => Pool::builder(),
            bound => Pool::builder().max_queued(bound),
        };
        let builder = builder
            .workers(self.workers)
            .strategy(self.strategy)
            .trace(self.trace)
            .on_panic(move |panic| hook.record_panic(panic.message()));
        let contexts = Arc::new(Contexts::default());
        let builder = if self.context { contexts.hook_into(builder) } else { builder };
        let pool = Arc::new(builder.build()?);
        thread::scope(|scope| {
            let start = |number: u64| {
                let spawner =
                    Spawner { pool: Arc::clone(&pool), log: Arc::clone(&log), case: *self };
                let spawn_trees = move || spawner.spawn_trees(self.seed << 8 | number);
                thread::Builder::new().spawn_scoped(scope, spawn_trees)
            };
            let threads: Vec<_> =
                (0..self.external_threads).map(start).collect::<Result<_, _>>()?;
            self.check_trace(&pool, &log);
            self.stop_if_early(&pool);
            threads
                .into_iter()
                .for_each(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
            Ok::<_, Error>(())
        })?;
        let stats = self.end_pool(pool);
        contexts.check(&log);
        log.check(stats.as_ref()).map_err(|violation| violation.in_case(self))?;
        Ok(log.tasks() as u64)
    }

    /// Reads the trace while the tasks run: this must not disturb them.
    fn check_trace(&self, pool: &Pool, log: &TaskLog) {
        let (traced, expected) = (pool.trace_snapshot().is_some(), self.trace > 0);
        if traced != expected {
            let text = format!("the pool has a trace: {traced}, expected: {expected}");
            log.record_violation(Violation::Result(text));
        }
    }

    /// Stops the pool after some time if the case says so.
    fn stop_if_early(&self, pool: &Pool) {
        if self.stops_early() {
            (0..self.seed % 200).for_each(|_| thread::yield_now());
        }
        match self.end {
            End::StopEarly => pool.stop(),
            End::StopNowEarly => pool.stop_now(),
            End::Stop | End::Drop => {}
        }
    }

    /// Ends the pool, and returns its counters unless the pool is dropped. All threads of the pool have
    /// ended when this returns.
    fn end_pool(&self, pool: Arc<Pool>) -> Option<Stats> {
        if self.end == End::Drop {
            // If a task held the last reference, dropping it would only request the stop, without waiting
            // for it.
            while Arc::strong_count(&pool) > 1 {
                thread::yield_now();
            }
            return None;
        }
        pool.stop();
        Some(pool.stats())
    }
}

/// Counts the contexts of tasks: each that was captured is dropped, and restored at most once.
#[derive(Default)]
struct Contexts {
    captured: AtomicUsize,
    restored: AtomicUsize,
    dropped: AtomicUsize,
}

/// The context of a task.
struct Captured(Arc<Contexts>);

impl Contexts {
    fn hook_into(self: &Arc<Self>, builder: Builder) -> Builder {
        let contexts = Arc::clone(self);
        builder.context(move || {
            contexts.captured.fetch_add(1, Ordering::Relaxed);
            let captured = Captured(Arc::clone(&contexts));
            move |run: &mut dyn FnMut()| {
                captured.0.restored.fetch_add(1, Ordering::Relaxed);
                run();
            }
        })
    }

    /// Checks the counts when the pool has ended.
    fn check(&self, log: &TaskLog) {
        let [captured, restored, dropped] = [&self.captured, &self.restored, &self.dropped]
            .map(|count| count.load(Ordering::Relaxed));
        if captured != dropped || restored > captured {
            let text =
                format!("{captured} contexts captured, {restored} restored, {dropped} dropped");
            log.record_violation(Violation::Result(text));
        }
    }
}

impl Drop for Captured {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

/// What a task needs to spawn others.
struct Spawner {
    pool: Arc<Pool>,
    log: Arc<TaskLog>,
    case: TaskTrees,
}

/// Handles that will be joined later, each with the result that must come out of it.
#[derive(Default)]
struct Pending {
    tasks: Vec<(Handle, usize)>,
    batches: Vec<(JoinHandle<Vec<usize>>, Vec<usize>)>,
}

/// The handle of a task or of a future.
enum Handle {
    Task(JoinHandle<usize>),
    Future(FutureHandle<usize>),
}

impl Handle {
    fn join(self) -> Result<usize, JoinError> {
        match self {
            Self::Task(handle) => handle.join(),
            Self::Future(handle) => handle.join(),
        }
    }

    fn cancel(&self) {
        match self {
            Self::Task(handle) => _ = handle.cancel(),
            Self::Future(handle) => handle.cancel(),
        }
    }
}

impl Spawner {
    fn another(&self) -> Self {
        Self { pool: Arc::clone(&self.pool), log: Arc::clone(&self.log), case: self.case }
    }

    /// Spawns all trees of an external thread.
    fn spawn_trees(&self, seed: u64) {
        let mut rng = Rng::new(seed);
        for tree in 0..self.case.trees {
            // `install` panics on a pool that has stopped.
            if rng.one_in(8) && !self.case.stops_early() {
                let Some(task) = self.log.register() else { return };
                let number = task.number();
                let result = catch_unwind(AssertUnwindSafe(|| {
                    self.pool.install(|| self.run_task(task, seed ^ tree << 40))
                }));
                self.log.check_installed(result, number);
            } else if !self.spawn_some(&mut rng, seed ^ tree << 40, &mut Pending::default()) {
                return;
            }
        }
    }

    /// Runs one task: spawns children, waits for some of them, and panics or returns the number of the task.
    fn run_task(&self, mut task: LoggedTask, seed: u64) -> usize {
        task.runs();
        let mut rng = Rng::new(seed);
        if self.case.resize_interval > 0 && rng.one_in(self.case.resize_interval) {
            let size = 1 + rng.below(self.case.workers as u64) as usize;
            if let Err(error) = self.pool.resize(size) {
                self.log.record_violation(Violation::Result(format!("size {size}: {error}")));
            }
        }
        let mut pending = Pending::default();
        for child in 0..rng.below(6) {
            let seed = seed.wrapping_mul(31).wrapping_add(child);
            if !self.spawn_some(&mut rng, seed, &mut pending) {
                break;
            }
        }
        let Pending { mut tasks, batches } = pending;
        if rng.one_in(2) {
            tasks.reverse();
        }
        tasks
            .into_iter()
            .for_each(|(handle, number)| self.log.check_joined(handle.join(), &number));
        for (handle, numbers) in batches {
            self.log.check_joined(handle.join(), &numbers);
        }
        if self.case.panic_interval > 0 && rng.one_in(self.case.panic_interval) {
            task.panics();
            planned_panic();
        }
        task.number()
    }

    /// Spawns a task or a batch, and joins it now, leaves it to the caller to join it later, or drops its
    /// handle. Returns whether there is room for more tasks.
    fn spawn_some(&self, rng: &mut Rng, seed: u64, pending: &mut Pending) -> bool {
        if rng.one_in(4) {
            self.spawn_batch(rng, seed, pending);
            return true;
        }
        let Some(task) = self.log.register() else { return false };
        let (number, spawner) = (task.number(), self.another());
        let handle = if rng.one_in(3) {
            // A closure that is too large for a task slot.
            let ballast = [seed; 20];
            self.spawn_task(rng, move || spawner.run_task(task, ballast[7]))
        } else {
            self.spawn_task(rng, move || spawner.run_task(task, seed))
        };
        match rng.below(3) {
            0 => drop(handle),
            1 => self.log.check_joined(handle.join(), &number),
            _ => pending.tasks.push((handle, number)),
        }
        true
    }

    /// Spawns a task or a future: by a builder, if the case says so, with a priority, a token, or a worker that it is near. May
    /// cancel it.
    fn spawn_task<F>(&self, rng: &mut Rng, f: F) -> Handle
    where
        F: FnOnce() -> usize + Send + 'static,
    {
        let cancels = self.case.cancel_interval > 0 && rng.one_in(self.case.cancel_interval);
        let by_token = cancels && rng.one_in(2);
        let is_future = self.case.future_interval > 0 && rng.one_in(self.case.future_interval);
        if !by_token && !self.case.priorities && !self.case.near {
            let handle = if is_future {
                // One poll, which counts as one task.
                Handle::Future(self.pool.spawn_future(async move { f() }))
            } else {
                Handle::Task(self.pool.spawn(f))
            };
            if cancels {
                handle.cancel();
            }
            return handle;
        }
        let token = CancelToken::new();
        let mut builder = self.pool.task();
        if self.case.priorities && rng.one_in(2) {
            builder = builder.priority(rng.pick(&Priority::ALL));
        }
        if by_token {
            builder = builder.cancel_on(&token);
        }
        if self.case.near && rng.one_in(2) {
            builder = builder.near_key(rng.below(1 << 10));
        }
        let handle = if is_future {
            Handle::Future(builder.spawn_future(async move { f() }))
        } else {
            Handle::Task(builder.spawn(f))
        };
        if by_token {
            token.cancel();
        } else if cancels {
            handle.cancel();
        }
        handle
    }

    fn spawn_batch(&self, rng: &mut Rng, seed: u64, pending: &mut Pending) {
        let tasks: Vec<_> = (0..rng.below(6)).map_while(|_| self.log.register()).collect();
        let numbers: Vec<_> = tasks.iter().map(LoggedTask::number).collect();
        let closures = tasks.into_iter().map(|task| {
            let (spawner, seed) = (self.another(), seed ^ (task.number() as u64) << 20);
            move || spawner.run_task(task, seed)
        });
        let handle = self.pool.spawn_batch(closures);
        match rng.below(3) {
            0 => drop(handle),
            1 => self.log.check_joined(handle.join(), &numbers),
            _ => pending.batches.push((handle, numbers)),
        }
    }
}

impl TaskLog {
    /// Checks the result of a call of `install`.
    fn check_installed(&self, result: thread::Result<usize>, number: usize) {
        match result {
            Ok(got) => self.check_joined(Ok(got), &number),
            Err(payload) => {
                if let Err(violation) = expect_planned(&*payload) {
                    self.record_violation(violation);
                }
            }
        }
    }

    /// Checks that a result is that of its own task, and that its absence has a reason.
    fn check_joined<T: PartialEq + fmt::Debug>(&self, result: Result<T, JoinError>, expected: &T) {
        let violation = match result {
            Ok(got) if got == *expected => return,
            Err(JoinError::Cancelled | JoinError::Stopped) if self.may_refuse() => return,
            Err(JoinError::Panicked(panic)) => return self.record_panic(panic.message()),
            Ok(got) => format!("the handle of {expected:?} returned {got:?}"),
            Err(error) => format!("the handle of {expected:?} returned an error: {error}"),
        };
        self.record_violation(Violation::Result(violation));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_cases_are_right() {
        for seed in 0..150 {
            let case = TaskTrees::random(&mut Rng::new(seed), 60);
            assert_eq!(case.run().map(|_| ()), Ok(()), "seed {seed}");
        }
    }

    #[test]
    fn cases_with_everything_are_right() {
        for strategy in Strategy::ALL {
            let case = TaskTrees::with_everything(strategy, 500);
            assert_eq!(case.run().map(|_| ()), Ok(()), "{strategy}");
        }
    }

    #[test]
    fn a_context_that_is_kept_is_found() {
        let (contexts, log) = (Contexts::default(), TaskLog::new(0, false));
        contexts.check(&log);
        assert_eq!(log.check(None), Ok(()));
        contexts.captured.store(1, Ordering::Relaxed);
        contexts.check(&log);
        let violation = log.check(None).unwrap_err();
        assert_eq!(violation.to_string(), "1 contexts captured, 0 restored, 0 dropped");
    }

    #[test]
    fn a_result_of_another_task_is_found() {
        let log = TaskLog::new(2, false);
        log.check_joined(Ok(1), &2);
        let violation = log.check(None).unwrap_err();
        assert_eq!(violation.to_string(), "the handle of 2 returned 1");
    }

    #[test]
    fn a_cancelled_task_is_wrong_unless_tasks_may_be_refused() {
        for (may_refuse, wrong) in [(false, true), (true, false)] {
            let log = TaskLog::new(0, may_refuse);
            log.check_joined(Err(JoinError::Cancelled), &0);
            assert_eq!(log.check(None).is_err(), wrong);
        }
    }
}
