//! Where tasks wait: the strategies behind one trait, so that everything else is written once.

mod global;
mod locked;
mod single;
mod stealing;

use std::fmt;

use heist_deque::Steal;

use crate::stats::Tally;
use crate::task::Task;
pub(crate) use global::Global;
pub(crate) use locked::Locked;
pub(crate) use single::Single;
pub(crate) use stealing::Stealing;

/// How a pool keeps its tasks.
///
/// All three strategies keep every promise of the pool. Change one word to compare them, or to rule the queues out as
/// the cause of a problem.
///
/// ```
/// use heist::{Pool, Strategy};
///
/// for strategy in Strategy::ALL {
///     let pool = Pool::builder().workers(2).strategy(strategy).build()?;
///     assert_eq!(pool.spawn(|| 6 * 7).join().unwrap(), 42);
/// }
/// # Ok::<(), heist::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// A lock-free deque for each worker, from which the others steal. This is the recommended strategy.
    #[default]
    WorkStealing,
    /// A deque with a mutex for each worker. Thieves only try to lock it.
    LockedDeques,
    /// One queue with one mutex for all workers: the baseline.
    GlobalQueue,
}

impl Strategy {
    /// Every strategy, the default first.
    ///
    /// ```
    /// assert_eq!(heist::Strategy::ALL[0], heist::Strategy::default());
    /// ```
    pub const ALL: [Self; 3] = [Self::WorkStealing, Self::LockedDeques, Self::GlobalQueue];
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::WorkStealing => "work stealing",
            Self::LockedDeques => "locked deques",
            Self::GlobalQueue => "global queue",
        })
    }
}

/// The result of one look into a queue.
pub(crate) enum Found {
    /// A task, and how many more were moved into the worker's own deque with it.
    Task(Task, usize),
    Nothing,
    /// Another thread was in the way. There may be a task.
    Contended,
}

/// All queues of a pool.
pub(crate) trait Queues: Send + Sync + Sized + 'static {
    /// The owner's ends of one worker's queues.
    type Own: Send + 'static;

    /// Can tasks be stolen from other workers?
    const STEALS: bool;

    /// Does a worker that finds nothing look again for a while before it sleeps, and does a thread that pushes a task
    /// rely on such a worker? If not, every push wakes a sleeper, as a condition variable would.
    const PATIENT: bool;

    /// How often a searching worker looks before it sleeps, for work that is about to be spawned. All looks together
    /// take some microseconds, while to sleep and to be woken takes twenty. Few under a checker, so that it explores
    /// what comes after the looks.
    const LOOKS: u32 = if cfg!(shuttle) { 2 } else { 32 };

    /// Returns queues for that many workers, and the owner's ends for each.
    fn new(workers: usize) -> (Self, Vec<Self::Own>);

    /// Pushes a new task of a worker to its own deque.
    fn push_local(&self, own: &Self::Own, task: Task, tally: Tally<'_>);

    /// Pushes a task to the injector: from outside, or from a thread without a core.
    fn push_remote(&self, task: Task, tally: Tally<'_>);

    /// Pops the worker's own newest task.
    fn pop(&self, own: &Self::Own, tally: Tally<'_>) -> Option<Task>;

    /// Pops the worker's own newest task, if `is_it` says so.
    fn take_back(
        &self,
        own: &Self::Own,
        is_it: impl Fn(&Task) -> bool,
        tally: Tally<'_>,
    ) -> Option<Task> {
        let newest = self.pop(own, tally)?;
        if is_it(&newest) {
            return Some(newest);
        }
        self.push_local(own, newest, tally);
        None
    }

    /// Pushes a job that the worker publishes. The job comes back if there is no room.
    fn push_job(&self, own: &Self::Own, job: Task, tally: Tally<'_>) -> Result<(), Task>;

    /// Pops the newest job that the worker has published.
    fn pop_job(&self, own: &Self::Own, tally: Tally<'_>) -> Option<Task>;

    /// Pops the newest job that the worker has published, if `is_it` says so.
    fn take_back_job(
        &self,
        own: &Self::Own,
        is_it: impl Fn(&Task) -> bool,
        tally: Tally<'_>,
    ) -> Option<Task> {
        let newest = self.pop_job(own, tally)?;
        if is_it(&newest) {
            return Some(newest);
        }
        // The job was popped from there a moment ago, so there is room for it as a rule.
        self.push_job(own, newest, tally).map_or_else(|job| self.push_remote(job, tally), |()| ());
        None
    }

    /// Steals the oldest job that another worker has published, and only that one: the others are smaller, and that
    /// worker will run them next.
    fn steal_job(&self, victim: usize, tally: Tally<'_>) -> Found;

    /// Returns whether that worker has a published job.
    fn has_job(&self, victim: usize) -> bool;

    /// Takes tasks from the injector, oldest first: one to run, and perhaps more into the worker's own deque.
    fn take_injected(&self, own: &Self::Own, tally: Tally<'_>) -> Found;

    /// Steals from another worker, its oldest tasks first.
    fn steal(&self, own: &Self::Own, victim: usize, tally: Tally<'_>) -> Found;

    /// Takes one task from the injector.
    fn take_one_injected(&self, tally: Tally<'_>) -> Option<Task>;

    /// Returns whether there is a task that any worker could take. This is the last look before sleep.
    fn any(&self) -> bool;

    /// Pushes one task to each worker's broadcast queue, in the order of their numbers. If there are several
    /// broadcasts, all workers get them in the same order. `sent` is called with the number of the worker before that
    /// worker can take its task. Tasks for workers that were abandoned are returned.
    fn broadcast(&self, _tasks: impl Iterator<Item = Task>, _sent: impl Fn(usize)) -> Vec<Task> {
        unreachable!("only an engine broadcasts")
    }

    /// Notes that no thread will ever be this worker, and returns the tasks in its broadcast queue.
    fn abandon_worker(&self, _of: usize, _tally: Tally<'_>) -> Vec<Task> {
        Vec::new()
    }

    /// Takes the oldest task from that worker's broadcast queue. Only the worker itself calls this.
    fn pop_broadcast(&self, _of: usize, _tally: Tally<'_>) -> Option<Task> {
        None
    }

    /// Returns whether that worker's broadcast queue has a task.
    fn has_broadcast(&self, _of: usize) -> bool {
        false
    }
}

/// Steals until it is certain whether there is a task.
fn steal_until_decided(steal: impl Fn() -> Steal<Task>, tally: Tally<'_>) -> Option<Task> {
    loop {
        match steal() {
            Steal::Success(task) => return Some(task),
            Steal::Empty => return None,
            Steal::Retry => tally.one(|block| &block.failed_cas),
        }
    }
}

fn to_found(stolen: Steal<Task>, more: usize, tally: Tally<'_>) -> Found {
    match stolen {
        Steal::Success(task) => Found::Task(task, more),
        Steal::Empty => Found::Nothing,
        Steal::Retry => {
            tally.one(|block| &block.failed_cas);
            Found::Contended
        }
    }
}
