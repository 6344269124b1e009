//! Where tasks wait: three strategies behind one trait, so that the rest is written once.

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
/// All three keep every promise of the pool; switch by one word to compare them, or to settle a
/// doubt.
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
    /// A lock-free deque for each worker, from which the others steal: the one to use.
    #[default]
    WorkStealing,
    /// A deque with a mutex for each worker; thieves only try the lock.
    LockedDeques,
    /// One queue with one mutex for all: the baseline.
    GlobalQueue,
}

impl Strategy {
    /// All of them, the best first.
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

/// What one look for a task brought.
pub(crate) enum Found {
    /// The task, and how many more came along, into the worker's own deque.
    Task(Task, usize),
    Nothing,
    /// Somebody was in the way. There may be something.
    Contended,
}

/// All queues of a pool.
pub(crate) trait Queues: Send + Sync + Sized + 'static {
    /// What the worker in one core has to itself.
    type Own: Send + 'static;

    /// Is there anything to steal from other workers?
    const STEALS: bool;

    /// Does a worker that finds nothing look again for a while before it sleeps, and does a
    /// submitter leave it at one that does? Otherwise every submission wakes a sleeper, as a condition
    /// variable would.
    const PATIENT: bool;

    /// A searcher looks this often before it sleeps, for work that is about to be spawned: some microseconds in all, where
    /// to sleep and to be woken takes twenty. Few for a checker, so that it sees what comes after them.
    const LOOKS: u32 = if cfg!(shuttle) { 2 } else { 32 };

    /// For that many workers.
    fn new(workers: usize) -> (Self, Vec<Self::Own>);

    /// From inside: a worker's new task.
    fn push_local(&self, own: &Self::Own, task: Task, tally: Tally<'_>);

    /// From outside.
    fn push_remote(&self, task: Task, tally: Tally<'_>);

    /// The worker's own newest.
    fn pop(&self, own: &Self::Own, tally: Tally<'_>) -> Option<Task>;

    /// The worker's newest, if that is it.
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

    /// A job that the worker publishes; it comes back if there is no room.
    fn push_job(&self, own: &Self::Own, job: Task, tally: Tally<'_>) -> Result<(), Task>;

    /// The newest job that the worker has published.
    fn pop_job(&self, own: &Self::Own, tally: Tally<'_>) -> Option<Task>;

    /// The newest job that the worker has published, if that is it.
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
        // There was room for it.
        self.push_job(own, newest, tally).map_or_else(|job| self.push_remote(job, tally), |()| ());
        None
    }

    /// The oldest job that another worker has published, and that alone: the rest is smaller, and
    /// that worker's next.
    fn steal_job(&self, victim: usize, tally: Tally<'_>) -> Found;

    /// Has that worker published a job?
    fn has_job(&self, victim: usize) -> bool;

    /// From outside, oldest first.
    fn take_injected(&self, own: &Self::Own, tally: Tally<'_>) -> Found;

    /// From another worker, its oldest.
    fn steal(&self, own: &Self::Own, victim: usize, tally: Tally<'_>) -> Found;

    /// From outside, one, without a deque to put more into.
    fn take_one_injected(&self, tally: Tally<'_>) -> Option<Task>;

    /// Is there something anywhere, for anybody? The last look before sleep.
    fn any(&self) -> bool;

    /// One for each worker and no other, in the order of their numbers. Of two such calls all workers get the
    /// letters in the same order. `sent` is told for whom a letter is, before it can be fetched; letters to workers that
    /// will never come are returned.
    fn broadcast(&self, _tasks: impl Iterator<Item = Task>, _sent: impl Fn(usize)) -> Vec<Task> {
        unreachable!("only an engine has left")
    }

    /// That worker will never come. Returns its mail.
    fn abandon_worker(&self, _of: usize, _tally: Tally<'_>) -> Vec<Task> {
        Vec::new()
    }

    /// What was posted to that worker first. Only for itself.
    fn pop_broadcast(&self, _of: usize, _tally: Tally<'_>) -> Option<Task> {
        None
    }

    /// Was something posted to that worker?
    fn has_broadcast(&self, _of: usize) -> bool {
        false
    }
}

/// Steals until it is clear whether there is something.
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
