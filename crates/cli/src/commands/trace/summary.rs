//! Adds up what each worker did in a trace.

use super::names::{self, Named};
use super::read::{Event, Pool, Thread, What};

/// What one worker did. Times are in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Figures {
    /// The number of tasks that it began.
    pub(super) tasks: u64,
    /// Inside a task, and awake.
    pub(super) running: u64,
    /// Awake between tasks.
    pub(super) searching: u64,
    pub(super) asleep: u64,
    /// Before any thread was this worker.
    pub(super) late: u64,
    pub(super) steals: u64,
    /// The number of jobs that it made available to others.
    pub(super) published: u64,
    /// The longest of its tasks, including waits inside of it.
    pub(super) longest: u64,
}

impl Figures {
    /// Returns the time in which it did not work. If the worker's thread has gone on with a task after a wait and has not
    /// noticed yet that it is a worker again, that is no idle time.
    pub(super) fn idle(&self) -> u64 {
        self.searching + self.asleep + self.late
    }

    fn add(&mut self, other: &Self) {
        self.tasks += other.tasks;
        self.running += other.running;
        self.searching += other.searching;
        self.asleep += other.asleep;
        self.late += other.late;
        self.steals += other.steals;
        self.published += other.published;
        self.longest = self.longest.max(other.longest);
    }
}

/// What the workers of a pool did, from the beginning of its first task to the end of its last one.
#[derive(Debug, Default)]
pub(super) struct Summary {
    /// The name of the pool.
    pub(super) name: String,
    /// The length of that time.
    pub(super) nanoseconds: u64,
    pub(super) workers: Vec<Figures>,
    /// What threads did that were no workers: they went on with their tasks after a wait, before they got a worker again.
    pub(super) others: Figures,
    /// The number of older events that are not in the file.
    pub(super) lost: u64,
    /// The tasks by their names, those that ran longest first. Empty if the file has no names.
    pub(super) names: Vec<Named>,
}

impl Summary {
    pub(super) fn new(pool: &Pool) -> Self {
        let span = Span::of(pool);
        let workers = workers(pool);
        let mut summary = Self {
            name: pool.name.clone(),
            nanoseconds: span.end - span.begin,
            workers: vec![Figures::default(); workers],
            lost: pool.threads.values().map(|thread| thread.lost).sum(),
            names: names::add_up(pool, span.begin, span.end),
            ..Self::default()
        };
        let mut begins = vec![span.end; workers];
        for (&number, thread) in &pool.threads {
            let roles = Roles::of(thread, number, workers);
            for (at, worker) in roles.begins() {
                if let Some(begin) = begins.get_mut(worker) {
                    *begin = at.min(*begin);
                }
            }
            summary.add_thread(thread, &roles, span);
        }
        for (worker, begin) in summary.workers.iter_mut().zip(begins) {
            worker.late = begin.saturating_sub(span.begin);
        }
        summary
    }

    /// Returns the sum of all threads.
    pub(super) fn total(&self) -> Figures {
        let mut total = self.others;
        self.workers.iter().for_each(|worker| total.add(worker));
        total
    }

    fn add_thread(&mut self, thread: &Thread, roles: &Roles, span: Span) {
        let mut changes = roles.changes.iter().map(|&(at, _)| (at, Change::Role)).collect();
        for event in &thread.events {
            self.count(event, roles, span);
            let (depth, length) = match event.what {
                What::Task(length) => (Change::Task as fn(isize) -> Change, length),
                What::Sleep(length) => (Change::Sleep as fn(isize) -> Change, length),
                _ => continue,
            };
            push_bar(&mut changes, event.at, length, depth);
        }
        changes.sort_by_key(|&(at, _)| at);
        let (mut since, mut tasks, mut sleeps) = (span.begin, 0, 0);
        for (at, change) in changes.into_iter().chain([(span.end, Change::Role)]) {
            let now = at.clamp(since, span.end);
            self.add_time(roles.at(since), now - since, tasks > 0, sleeps > 0);
            since = now;
            match change {
                Change::Role => {}
                Change::Task(by) => tasks += by,
                Change::Sleep(by) => sleeps += by,
            }
        }
    }

    fn add_time(&mut self, worker: Option<usize>, time: u64, in_task: bool, asleep: bool) {
        let is_worker = worker.is_some();
        let figures = self.of(worker);
        match (in_task, asleep) {
            (true, false) => figures.running += time,
            // A thread that is no worker does not search, and nobody misses it while it sleeps.
            _ if !is_worker => {}
            (_, true) => figures.asleep += time,
            (false, false) => figures.searching += time,
        }
    }

    fn count(&mut self, event: &Event, roles: &Roles, span: Span) {
        let figures = self.of(roles.at(event.at));
        match event.what {
            What::Task(length) if event.at + length >= span.begin => {
                figures.tasks += 1;
                figures.longest = figures.longest.max(length);
            }
            What::Steal if event.at >= span.begin => figures.steals += 1,
            What::Publish(jobs) if event.at >= span.begin => figures.published += jobs,
            _ => {}
        }
    }

    fn of(&mut self, worker: Option<usize>) -> &mut Figures {
        match worker.and_then(|worker| self.workers.get_mut(worker)) {
            Some(figures) => figures,
            None => &mut self.others,
        }
    }
}

/// A change of what a thread does.
enum Change {
    /// It becomes a worker, or ceases to be one: see [`Roles`].
    Role,
    /// The number of tasks on its stack changes.
    Task(isize),
    /// It goes to sleep, or wakes up.
    Sleep(isize),
}

fn push_bar(changes: &mut Vec<(u64, Change)>, at: u64, length: u64, by: fn(isize) -> Change) {
    changes.push((at, by(1)));
    changes.push((at + length, by(-1)));
}

/// The time that a summary covers.
#[derive(Debug, Clone, Copy)]
struct Span {
    begin: u64,
    end: u64,
}

impl Span {
    /// From the first task to the last one. If older events of a thread are missing, it begins when those of every thread
    /// are there.
    fn of(pool: &Pool) -> Self {
        let tasks = pool.threads.values().flat_map(|thread| &thread.events).filter_map(|event| {
            let What::Task(length) = event.what else { return None };
            Some((event.at, event.at + length))
        });
        let (begin, end) =
            tasks.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1))).unwrap_or_default();
        let first = |thread: &Thread| thread.events.iter().map(|event| event.at).min();
        let cut = pool.threads.values().filter(|thread| thread.lost > 0).filter_map(first).max();
        Self { begin: begin.max(cut.unwrap_or(0)).min(end), end }
    }
}

/// Which worker a thread was, and when.
struct Roles {
    /// The worker before the first change.
    first: Option<usize>,
    /// In the order of their times.
    changes: Vec<(u64, Option<usize>)>,
}

impl Roles {
    fn of(thread: &Thread, number: u64, workers: usize) -> Self {
        let mut changes: Vec<_> = thread
            .events
            .iter()
            .filter_map(|event| match event.what {
                What::WorkerBegin(worker) => Some((event.at, Some(worker))),
                What::WorkerEnd => Some((event.at, None)),
                _ => None,
            })
            .collect();
        changes.sort_by_key(|&(at, _)| at);
        // The event in which it became a worker may be missing. The first threads are those of the workers, as long as
        // no task waits.
        let likely = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        let first = likely.filter(|&worker| thread.lost > 0 && worker < workers);
        Self { first, changes }
    }

    /// Returns which worker the thread became, and when.
    fn begins(&self) -> impl Iterator<Item = (u64, usize)> {
        let later = self.changes.iter().filter_map(|&(at, worker)| Some((at, worker?)));
        self.first.map(|worker| (0, worker)).into_iter().chain(later)
    }

    fn at(&self, time: u64) -> Option<usize> {
        match self.changes.partition_point(|&(at, _)| at <= time) {
            0 => self.first,
            count => self.changes[count - 1].1,
        }
    }
}

/// Returns the number of workers, which the name of the pool ends with.
fn workers(pool: &Pool) -> usize {
    let named = pool.name.strip_suffix(" workers").and_then(|name| name.rsplit(' ').next());
    let events = pool.threads.values().flat_map(|thread| &thread.events);
    let seen = events.filter_map(|event| match event.what {
        What::WorkerBegin(worker) => Some(worker + 1),
        _ => None,
    });
    // A pool has fewer, so that a number that is larger is no pool's.
    const MOST: usize = 1 << 16;
    let named = named.and_then(|number| number.parse().ok()).filter(|&number| number < MOST);
    named.unwrap_or_else(|| seen.filter(|&worker| worker < MOST).max().unwrap_or(0))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn thread(lost: u64, events: &[(u64, What)]) -> Thread {
        let events = events.iter().map(|&(at, what)| Event { at, what, name: None }).collect();
        Thread { lost, events }
    }

    fn pool(threads: Vec<Thread>) -> Pool {
        let name = "heist 1: work stealing, 2 workers".to_owned();
        Pool { name, threads: (1..).zip(threads).collect(), ..Pool::default() }
    }

    /// A run of 1000 ns. The first worker is busy, and the second one sleeps, steals, and sleeps again.
    pub(crate) fn uneven() -> Pool {
        pool(vec![
            thread(
                0,
                &[
                    (0, What::WorkerBegin(0)),
                    (150, What::Task(50)),
                    (100, What::Task(1000)),
                    (200, What::Publish(3)),
                    (1100, What::WorkerEnd),
                ],
            ),
            thread(
                0,
                &[
                    (0, What::WorkerBegin(1)),
                    (50, What::Sleep(250)),
                    (400, What::Steal),
                    (400, What::Task(300)),
                    (800, What::Sleep(400)),
                    (1300, What::WorkerEnd),
                ],
            ),
        ])
    }

    #[test]
    fn times_are_those_between_the_first_task_and_the_last() {
        let summary = Summary::new(&uneven());
        assert_eq!((summary.nanoseconds, summary.lost), (1000, 0));
        let first =
            Figures { tasks: 2, running: 1000, published: 3, longest: 1000, ..Figures::default() };
        let second = Figures {
            tasks: 1,
            running: 300,
            searching: 200,
            asleep: 500,
            steals: 1,
            longest: 300,
            ..Figures::default()
        };
        assert_eq!(summary.workers, [first, second]);
        assert_eq!(summary.others, Figures::default());
        assert_eq!((summary.total().tasks, summary.total().running), (3, 1300));
    }

    /// The first thread waits inside a task and gives its core to the third, which runs a task.
    #[test]
    fn a_worker_can_be_several_threads() {
        let waiting = thread(
            0,
            &[
                (0, What::WorkerBegin(0)),
                (0, What::Task(100)),
                (20, What::WorkerEnd),
                (20, What::Sleep(40)),
            ],
        );
        let other = thread(0, &[(20, What::WorkerBegin(0)), (20, What::Task(70))]);
        let summary = Summary::new(&pool(vec![waiting, Thread::default(), other]));
        let worker = summary.workers[0];
        assert_eq!((worker.tasks, worker.running, worker.searching), (2, 90, 10));
        // It slept, and then ran without a core.
        assert_eq!(summary.others, Figures { running: 40, ..Figures::default() });
        assert_eq!(summary.workers[1], Figures { late: 100, ..Figures::default() });
        assert_eq!((worker.late, worker.idle()), (0, 10));
    }

    #[test]
    fn a_sleep_inside_a_task_is_a_sleep() {
        let events = [(0, What::WorkerBegin(0)), (0, What::Task(100)), (10, What::Sleep(30))];
        let worker = Summary::new(&pool(vec![thread(0, &events)])).workers[0];
        assert_eq!((worker.running, worker.asleep, worker.longest), (70, 30, 100));
    }

    #[test]
    fn what_is_lost_shortens_the_time() {
        let whole = thread(0, &[(0, What::WorkerBegin(0)), (0, What::Task(1000))]);
        let cut = thread(7, &[(600, What::Task(100)), (700, What::Sleep(200))]);
        let summary = Summary::new(&pool(vec![whole, cut]));
        assert_eq!((summary.nanoseconds, summary.lost), (400, 7));
        assert_eq!(summary.workers[0].running, 400);
        // The event in which the second thread became a worker is missing.
        let second = summary.workers[1];
        assert_eq!((second.running, second.asleep, second.searching), (100, 200, 100));
    }

    #[test]
    fn a_pool_without_tasks_has_no_time() {
        let summary = Summary::new(&pool(vec![thread(0, &[(5, What::WorkerBegin(0))])]));
        assert_eq!((summary.nanoseconds, summary.total()), (0, Figures::default()), "no tasks");
        let unnamed = Pool { name: "heist".into(), ..uneven() };
        assert_eq!(Summary::new(&unnamed).workers.len(), 2);
    }
}
