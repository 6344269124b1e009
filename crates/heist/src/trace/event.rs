//! The public types of a trace: threads, events, and kinds of events.

/// The last events of every thread of a pool; see [`Pool::trace_snapshot`](crate::Pool::trace_snapshot).
///
/// ```
/// let pool = heist::Pool::builder().workers(2).trace(1000).build()?;
/// let trace: heist::trace::Trace = pool.trace_snapshot().expect("it was asked for");
/// assert_eq!((trace.pool.as_str(), trace.workers), ("work stealing", 2));
/// # Ok::<(), heist::BuildError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trace {
    /// The name of the pool: its strategy.
    pub pool: String,
    /// The number of workers.
    pub workers: usize,
    /// The time from the start of the pool to this snapshot.
    pub nanoseconds: u64,
    /// Every thread of the pool, in the order in which they were started. Of the threads that have ended, only some
    /// are kept.
    pub threads: Vec<ThreadTrace>,
}

/// What one thread did.
///
/// ```
/// let pool = heist::Pool::builder().workers(1).trace(1000).build()?;
/// pool.install(|| ());
/// let thread = &pool.trace_snapshot().unwrap().threads[0];
/// assert_eq!((thread.name.as_str(), thread.lost), ("heist-0", 0));
/// # Ok::<(), heist::BuildError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadTrace {
    /// The name of the thread. One that has none is called `thread`, with its place in the pool.
    pub name: String,
    /// The number of events that were overwritten by newer ones.
    pub lost: u64,
    /// The events, in the order in which they happened.
    pub events: Vec<Event>,
}

/// Something that a thread did.
///
/// ```
/// let pool = heist::Pool::builder().workers(1).trace(1000).build()?;
/// pool.install(|| ());
/// pool.stop();
/// let trace = pool.trace_snapshot().unwrap();
/// let events = &trace.threads[0].events;
/// assert!(events.is_sorted_by_key(|event| event.nanoseconds));
/// let start = events.iter().find(|event| event.kind == heist::trace::EventKind::Start).unwrap();
/// assert!(start.name.unwrap().contains("{{closure}}"));
/// # Ok::<(), heist::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// The time since the start of the pool.
    pub nanoseconds: u64,
    /// What happened.
    pub kind: EventKind,
    /// The name of the task, for a [`Start`](EventKind::Start): as a rule, the type of its closure.
    pub name: Option<&'static str>,
}

/// What a thread of a pool can do.
///
/// ```
/// use heist::trace::EventKind;
///
/// let pool = heist::Pool::builder().workers(1).trace(1000).build()?;
/// pool.install(|| ());
/// pool.stop();
/// let trace = pool.trace_snapshot().unwrap();
/// let kinds: Vec<_> = trace.threads[0].events.iter().map(|event| event.kind).collect();
/// assert_eq!(kinds[0], EventKind::WorkerBegin { worker: 0 });
/// assert!(kinds.contains(&EventKind::InjectorTake { tasks: 1 }));
/// # Ok::<(), heist::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// Begins to run a task. While a task waits, its thread may run others on top of it.
    Start,
    /// Ends the task that was begun last.
    End,
    /// Steals tasks from another thread: this one runs one of them and moves the others to its own queues.
    Steal {
        /// The place of the thread that they were stolen from. The first places are those of the threads that the pool
        /// was started with, in the order of their numbers.
        victim: usize,
        /// The number of tasks.
        tasks: usize,
    },
    /// Takes tasks that came from outside from the injector.
    InjectorTake {
        /// The number of tasks.
        tasks: usize,
    },
    /// Publishes second halves of joins, or parts of a scope, so that other workers can take them.
    Publish {
        /// The number of jobs.
        tasks: usize,
    },
    /// Goes to sleep, because there is no work, or because what it waits for is not done.
    Park,
    /// Is awake again.
    Unpark,
    /// Wakes a worker, of this pool or of another, because there is work.
    Wake,
    /// Begins to be the worker with this number: the thread has acquired its core.
    WorkerBegin {
        /// The worker's number.
        worker: usize,
    },
    /// Ceases to be a worker: another thread has its core, or the pool has shut down.
    WorkerEnd,
}

/// The position of the worker's number in a word.
const WORKER: u32 = 8;
/// The position of the number of tasks in a word.
const TASKS: u32 = 32;
/// The position of the number of a name in a word.
const NAME: u32 = 32;
/// The word, without the name, that gives another name to the task that was begun last. A reader gets it as the name of that
/// task.
pub(super) const RENAME: u64 = 10;

/// Adds the number of a name to a word.
pub(super) fn pack_named(word: u64, name: u32) -> u64 {
    word | u64::from(name) << NAME
}

/// Returns the events that were packed, with the names of tasks. `name_of` returns the name with a number.
pub(super) fn unpack(
    words: Vec<(u64, u64)>,
    name_of: impl Fn(u32) -> Option<&'static str>,
) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::with_capacity(words.len());
    // Where the tasks begin that have not ended.
    let mut open: Vec<usize> = Vec::new();
    for (nanoseconds, word) in words {
        let name = || name_of((word >> NAME) as u32);
        if word & 0xFF == RENAME {
            // The beginning of the task may have been overwritten.
            if let Some(&start) = open.last() {
                events[start].name = name();
            }
            continue;
        }
        let kind = EventKind::unpack(word);
        let name = if kind == EventKind::Start { name() } else { None };
        match kind {
            EventKind::Start => open.push(events.len()),
            EventKind::End => _ = open.pop(),
            _ => {}
        }
        events.push(Event { nanoseconds, kind, name });
    }
    events
}

impl EventKind {
    /// Packs the kind into one word: the kind in the lowest byte, a worker above it, a number of tasks above that.
    pub(super) fn pack(self) -> u64 {
        let tasks = |count: usize| u64::from(u32::try_from(count).unwrap_or(u32::MAX)) << TASKS;
        // There are fewer than 2^16 workers.
        let worker = |worker: usize| (worker as u64 & 0xFF_FFFF) << WORKER;
        match self {
            Self::Start => 0,
            Self::End => 1,
            Self::Steal { victim, tasks: count } => 2 | worker(victim) | tasks(count),
            Self::InjectorTake { tasks: count } => 3 | tasks(count),
            Self::Publish { tasks: count } => 4 | tasks(count),
            Self::Park => 5,
            Self::Unpark => 6,
            Self::Wake => 7,
            Self::WorkerBegin { worker: number } => 8 | worker(number),
            Self::WorkerEnd => 9,
        }
    }

    /// Unpacks what [`pack`](Self::pack) has packed.
    pub(super) fn unpack(word: u64) -> Self {
        let worker = (word >> WORKER & 0xFF_FFFF) as usize;
        let tasks = (word >> TASKS) as usize;
        match word & 0xFF {
            0 => Self::Start,
            1 => Self::End,
            2 => Self::Steal { victim: worker, tasks },
            3 => Self::InjectorTake { tasks },
            4 => Self::Publish { tasks },
            5 => Self::Park,
            6 => Self::Unpark,
            7 => Self::Wake,
            8 => Self::WorkerBegin { worker },
            9 => Self::WorkerEnd,
            other => unreachable!("no event is packed as {other}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_out_again() {
        for kind in [
            EventKind::Start,
            EventKind::End,
            EventKind::Steal { victim: 0xFFFE, tasks: 1 },
            EventKind::Steal { victim: 0, tasks: u32::MAX as usize },
            EventKind::InjectorTake { tasks: 33 },
            EventKind::Publish { tasks: 2 },
            EventKind::Park,
            EventKind::Unpark,
            EventKind::Wake,
            EventKind::WorkerBegin { worker: 12 },
            EventKind::WorkerEnd,
        ] {
            assert_eq!(EventKind::unpack(kind.pack()), kind);
        }
    }

    #[test]
    fn names_are_those_of_the_tasks_that_run() {
        let (start, end) = (EventKind::Start.pack(), EventKind::End.pack());
        let words = [
            // The beginning of this task is lost.
            pack_named(RENAME, 3),
            end,
            pack_named(start, 1),
            pack_named(start, 2),
            pack_named(RENAME, 3),
            end,
            EventKind::Wake.pack(),
            pack_named(RENAME, 4),
            end,
            start,
        ];
        let names = ["one", "two", "three", "four"];
        let name_of = |n: u32| names.get((n as usize).checked_sub(1)?).copied();
        let events = unpack((0..).zip(words).collect(), name_of);
        let starts = events.iter().filter(|event| event.kind == EventKind::Start);
        let starts: Vec<_> = starts.map(|event| (event.nanoseconds, event.name)).collect();
        assert_eq!(starts, [(2, Some("four")), (3, Some("three")), (9, None)]);
        assert_eq!(events.len(), 7);
        assert!(events.iter().all(|event| event.name.is_none() || event.kind == EventKind::Start));
    }
}
