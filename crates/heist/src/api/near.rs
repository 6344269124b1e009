//! Near tasks: tasks and parts of scopes that should run on a certain worker.

use crate::api::task::TaskBuilder;
use crate::priority::Priority;
use crate::task::Control;
use crate::worker::current::with_worker;
use crate::worker::inbox::Affinity;

impl TaskBuilder<'_> {
    /// Has the task run on the worker with that number, if that worker gets to it soon: for example because what the task works
    /// on is in that worker's cache.
    ///
    /// The number counts modulo the number of workers that the pool uses at the moment ([`Pool::workers`](crate::Pool::workers)),
    /// so any number will do: the chunks of an array may be near the workers of their own numbers.
    ///
    /// A near task waits for its worker. If the worker sleeps, it is woken for the task; else it takes the task after its own
    /// tasks, and before it looks for other work. But the task is not bound to that worker: another worker that finds nothing else
    /// to do takes it after some microseconds, and one that has other work takes it if nothing was taken out of that worker's
    /// inbox for a while. So a near task is not kept waiting by a long task, nor by a worker that a [`resize`](crate::Pool::resize) has retired.
    /// A task that joins the near task, and finds that it has not started, runs it right there, as it does with every task. In a
    /// loop within a task, use [`spawn_in`](Self::spawn_in): whoever waits for a scope leaves near parts to their workers
    /// at first, as long as it finds others.
    ///
    /// [`Counters::near_tasks_kept`](crate::Counters::near_tasks_kept) and [`near_tasks_taken`](crate::Counters::near_tasks_taken)
    /// say how many of them ran where they should and elsewhere.
    ///
    /// For a task whose [`priority`](Self::priority) is not [`Normal`](Priority::Normal) this has no effect: such a task starts on
    /// the next worker that may start one of its priority.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(4).build()?;
    /// let chunks = [1, 2, 3, 4].map(|n| vec![n; 100]);
    /// let tasks: Vec<_> = (0..).zip(chunks).map(|(n, chunk)| {
    ///     pool.task().near(n).spawn(move || chunk.iter().sum::<u64>())
    /// }).collect();
    /// let sums: Vec<_> = tasks.into_iter().map(|task| task.join().unwrap()).collect();
    /// assert_eq!(sums, [100, 200, 300, 400]);
    ///
    /// let counters = pool.stats().total;
    /// assert_eq!(counters.near_tasks_kept + counters.near_tasks_taken, 4);
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn near(mut self, worker: usize) -> Self {
        self.near = Some(Affinity::Worker(worker));
        self
    }

    /// Has the task run on the worker to which that key belongs, if that worker gets to it soon: see [`near`](Self::near). Tasks
    /// with equal keys are near the same worker, as long as the pool has the same number of workers.
    ///
    /// Keys are spread over the workers by a hash, so that they may be small numbers as well as hashes. If the pool is
    /// [resized](crate::Pool::resize), as few keys as possible go to other workers: those of the workers that retire, or as many
    /// as the new ones need.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let words = ["a", "few", "words"];
    /// for _ in 0..10 {
    ///     // Each word is on the same worker every time, unless that is busy.
    ///     let tasks = words.map(|word| {
    ///         pool.task().near_key(word.len() as u64).spawn(move || word.to_uppercase())
    ///     });
    ///     assert_eq!(tasks.map(|task| task.join().unwrap()), ["A", "FEW", "WORDS"]);
    /// }
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn near_key(mut self, hash: u64) -> Self {
        self.near = Some(Affinity::Key(hash));
        self
    }

    /// Returns the worker that a task of that priority is near, if any.
    pub(super) fn worker_for(&self, priority: Priority) -> Option<usize> {
        let near = self.near.filter(|_| priority == Priority::Normal);
        near.and_then(|near| self.pool.near_worker(near))
    }
}

/// Counts what is about to run on the calling thread, if it is near a worker.
pub(super) fn count_run(control: &Control) {
    if let Some(worker) = control.near {
        with_worker(|thread| thread.count_near(worker));
    }
}
