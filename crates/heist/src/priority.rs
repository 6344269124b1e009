//! `Priority`: which queued tasks start first.

/// Which of the queued tasks of a pool start first: see [`TaskBuilder::priority`](crate::TaskBuilder::priority).
///
/// * A worker that becomes free starts a queued `High` task before all others, and a `Low` task only if it finds no other.
/// * Every priority makes progress. A worker that has started [`MOST_HIGH`](Self::MOST_HIGH) `High` tasks in a row starts
///   another task next, if it finds one. After [`LOW_SHARE`](Self::LOW_SHARE) tasks that a worker starts while `Low` tasks are
///   queued, it starts a `Low` one, unless a row of `High` tasks is under way.
/// * What a task spawns has the priority of that task, unless it is set. So have the parts of the task: what it forks, and the
///   parts of its scopes.
/// * A task that [joins](crate::JoinHandle::join) a task which has not started runs it at once, whatever the priority of either: a
///   join never waits for a queued task of its own pool because that is less urgent. To *await* a handle, in a future or in
///   [`block_on`](crate::block_on()), raises nothing: a poll cannot run a task. What is awaited starts by its own priority, and a
///   `Low` task by its share. Spawn it with the priority of what awaits it, which it inherits unless another one is set.
///
/// Priorities only order tasks that have not started. A running task is never interrupted, and what has started goes on before
/// `Normal` and `Low` tasks that have not: the parts of its scopes, the halves of its joins. A worker that runs short closures of
/// a batch looks for `High` tasks after 16 of them. A closure that is [installed](crate::Pool::install) on another pool is queued
/// there as a `Normal` task. The polls of a future have the priority of the future.
///
/// `Normal` tasks cost what they cost in a pool without priorities. Those of another priority go through one queue for the
/// whole pool, and each needs an allocation.
///
/// ```
/// use heist::{Pool, Priority};
/// use std::sync::{Arc, Mutex, mpsc};
///
/// let pool = Pool::builder().workers(1).build()?;
/// let (begin, begun) = mpsc::channel();
/// let (gate, opened) = mpsc::channel::<()>();
/// pool.spawn(move || begin.send(()).is_ok() && opened.recv().is_err());
/// begun.recv().unwrap();
///
/// // The only worker is busy.
/// let order = Arc::new(Mutex::new(Vec::new()));
/// for priority in [Priority::Low, Priority::Normal, Priority::High] {
///     let order = Arc::clone(&order);
///     pool.task().priority(priority).spawn(move || order.lock().unwrap().push(priority));
/// }
/// drop(gate);
/// pool.stop();
/// assert_eq!(*order.lock().unwrap(), [Priority::High, Priority::Normal, Priority::Low]);
/// # Ok::<(), heist::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Priority {
    /// Starts before all other queued tasks.
    High,
    /// The priority of tasks for which none is set.
    #[default]
    Normal,
    /// Starts when there is nothing else to do, and now and then.
    Low,
}

impl Priority {
    /// Every priority, the most urgent first.
    ///
    /// ```
    /// use heist::Priority;
    /// assert_eq!(Priority::ALL, [Priority::High, Priority::Normal, Priority::Low]);
    /// ```
    pub const ALL: [Self; 3] = [Self::High, Self::Normal, Self::Low];

    /// The number of `High` tasks that a worker starts in a row while it could find others.
    ///
    /// ```
    /// assert_eq!(heist::Priority::MOST_HIGH, 31);
    /// ```
    pub const MOST_HIGH: u32 = 31;

    /// Of this many tasks that a worker starts while `Low` tasks are queued, one is `Low`, at least; but a row of `High` tasks
    /// is not interrupted for it before it has [`MOST_HIGH`](Self::MOST_HIGH).
    ///
    /// ```
    /// assert_eq!(heist::Priority::LOW_SHARE, 64);
    /// ```
    pub const LOW_SHARE: u32 = 64;

    /// Returns the queue for tasks of this priority, unless it is normal.
    #[inline]
    pub(crate) fn rank(self) -> Option<Rank> {
        match self {
            Self::High => Some(Rank::High),
            Self::Normal => None,
            Self::Low => Some(Rank::Low),
        }
    }
}

/// A priority other than the normal one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rank {
    High,
    Low,
}
