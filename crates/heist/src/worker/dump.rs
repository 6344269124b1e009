//! What a pool does at some moment, as text: for a program that hangs.
//!
//! The numbers are read one after the other while the pool goes on, so they need not fit together. No lock is waited for that
//! another thread holds while it does anything but change a list.

use std::fmt;

use crate::cluster::NO_PLACE;
use crate::fork::private::{PrivateTasks, Stack};
use crate::idle::Counts;
use crate::queues::{Lengths, RemoteLengths};
use crate::stats::Stats;
use crate::sync::Ordering;
use crate::trace::LastEvents;
use crate::worker::admission::Admission;
use crate::worker::handoff::Waiting;
use crate::worker::limit::Room;
use crate::worker::policy::PoolQueues;
use crate::worker::shared::Shared;
use crate::worker::table::Entry;

/// The number of events of each thread that are shown, if the pool keeps a trace.
const EVENTS: usize = 5;

/// What a pool did at some moment, to be printed when a program hangs: see [`Pool::dump`](crate::Pool::dump).
///
/// ```
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let text = pool.dump().to_string();
/// assert!(text.starts_with("pool of 2 workers, running"), "{text}");
/// # Ok::<(), heist::BuildError>(())
/// ```
pub struct PoolDump {
    /// How many workers are used.
    workers: usize,
    /// How many there are.
    max_workers: usize,
    max_threads: usize,
    state: &'static str,
    clusters: Vec<Counts>,
    /// The number of the NUMA node of each cluster, where it is known and there are several.
    nodes: Vec<Option<usize>>,
    remote: RemoteLengths,
    /// How many tasks and parts are near each worker.
    near: Vec<usize>,
    threads: Vec<ThreadDump>,
    /// `None` if another thread held the lock.
    free: Option<Vec<usize>>,
    /// `None` if another thread held the lock.
    waiting: Option<Waiting>,
    /// `None` without a bound on queued tasks, `Some(None)` if another thread held the lock.
    room: Option<Option<Room>>,
    stats: Stats,
    /// `None` if the pool keeps no trace.
    events: Option<LastEvents>,
}

/// What others can see of a thread.
struct ThreadDump {
    place: usize,
    worker: Option<usize>,
    lengths: Lengths,
    /// Tasks and parts of scopes that the thread has not published.
    private: usize,
    /// How many of its private jobs and tasks are wanted by others.
    wanted: usize,
}

impl<Q: PoolQueues> Shared<Q> {
    /// Returns what the pool does at the moment.
    pub(crate) fn dump(&self) -> PoolDump {
        let thread = |place| Some(self.dump_thread(place, self.table.reach(place)?));
        PoolDump {
            workers: self.workers_in_use(),
            max_workers: self.config.workers,
            max_threads: self.config.max_threads,
            state: match (self.idle.has_ended(), self.idle.is_stopping(), self.is_cancelling()) {
                (true, ..) => "ended",
                (_, true, true) => "stopping now",
                (_, true, false) => "stopping",
                (_, false, _) => "running",
            },
            clusters: self.idle.counts(),
            nodes: (0..self.clusters.count())
                .map(|cluster| self.clusters.node_id(cluster))
                .collect(),
            remote: self.queues.remote_lengths(),
            near: self.inboxes.lengths(),
            threads: (0..self.table.len()).filter_map(thread).collect(),
            free: self.table.free(),
            waiting: self.handoff.waiting(),
            room: self.config.admission.as_deref().and_then(Admission::room),
            stats: self.stats(),
            events: self.config.trace.as_ref().map(|log| log.read_last(EVENTS)),
        }
    }

    fn dump_thread(&self, place: usize, thread: &Entry<Q>) -> ThreadDump {
        let worker = thread.worker.load(Ordering::Relaxed);
        ThreadDump {
            place,
            worker: (worker != NO_PLACE).then_some(worker),
            lengths: self.queues.lengths(&thread.queues),
            private: thread.demand.tasks.as_deref().map_or(0, count_private),
            wanted: thread.demand.count(),
        }
    }
}

/// Returns how many tasks and parts a thread keeps private, as others see it.
fn count_private(private: &PrivateTasks) -> usize {
    // The two ends of a stack are read one after the other, and may seem to have passed each other.
    let len = |stack: &Stack| isize::try_from(stack.len()).map_or(0, isize::unsigned_abs);
    len(&private.parts) + len(&private.tasks)
}

/// A number, or the word "locked" if another thread was in the way.
struct OrLocked(Option<usize>);

impl fmt::Display for OrLocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(number) => write!(f, "{number}"),
            None => f.write_str("locked"),
        }
    }
}

impl PoolDump {
    /// Says what the thread in that place seems to do, if it has no core.
    fn without_core(&self, place: usize) -> &'static str {
        let is_in = |places: &Vec<usize>| places.contains(&place);
        let waiting = self.waiting.as_ref();
        if self.free.as_ref().is_some_and(is_in) {
            "has ended"
        } else if waiting.is_some_and(|waiting| is_in(&waiting.standby)) {
            "stands by"
        } else if waiting.is_some_and(|waiting| is_in(&waiting.resumed)) {
            "goes on without a core"
        } else {
            "no core: waits in a task, is a guest, or begins or ends"
        }
    }
}

impl PoolDump {
    fn write_clusters(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, counts) in self.clusters.iter().enumerate() {
            let Counts { asleep, searching, away, listed } = counts;
            let listed = OrLocked(*listed);
            write!(f, "cluster {n}")?;
            if let Some(node) = self.nodes[n] {
                write!(f, " on node {node}")?;
            }
            writeln!(
                f,
                ": {asleep} workers asleep (list: {listed}), {searching} searching, {away} threads away"
            )?;
        }
        Ok(())
    }

    fn write_threads(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for thread in &self.threads {
            let ThreadDump { place, lengths: Lengths { tasks, parts }, private, wanted, .. } =
                thread;
            match thread.worker {
                Some(worker) => write!(f, "thread {place}: worker {worker}")?,
                None => write!(f, "thread {place}: {}", self.without_core(*place))?,
            }
            writeln!(f, "; {tasks} tasks, {parts} parts, {private} private, {wanted} wanted")?;
            let events = self.events.as_ref().map(|events| events.of(*place));
            events.into_iter().flatten().try_for_each(|event| writeln!(f, "    {event}"))?;
        }
        if self.events.is_none() {
            writeln!(
                f,
                "events: not kept; `Builder::trace` or the environment variable HEIST_TRACE keeps those of each thread"
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for PoolDump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workers, max_threads, state, stats, .. } = self;
        let (now, most, total) = (stats.threads, stats.peak_threads, &stats.total);
        writeln!(
            f,
            "pool of {workers} workers, {state}: {now} threads, {most} at most so far, limit {max_threads}"
        )?;
        let ended = total.tasks_completed + total.panics + total.cancellations;
        let left = total.tasks_submitted.saturating_sub(ended);
        writeln!(f, "tasks: {} submitted, {left} of them not ended", total.tasks_submitted)?;
        match self.room {
            None => {}
            Some(None) => writeln!(f, "max_queued: locked")?,
            Some(Some(Room { bound, queued, waiting })) => {
                writeln!(f, "max_queued: {bound}; {queued} queued, {waiting} spawners wait")?;
            }
        }
        self.write_clusters(f)?;
        for (n, &tasks) in self.remote.injectors.iter().enumerate() {
            writeln!(f, "injector {n}: {} tasks", OrLocked(tasks))?;
        }
        let [high, low] = self.remote.ranked.map(OrLocked);
        writeln!(f, "priorities: {high} tasks of high priority, {low} of low priority")?;
        writeln!(f, "from outside: {} parts", self.remote.parts)?;
        writeln!(f, "near the workers: {:?} tasks and parts", self.near)?;
        match &self.waiting {
            None => writeln!(f, "hand-off: locked")?,
            Some(Waiting { standby, resumed, extra, kept, retired }) => {
                let (standby, resumed) = (standby.len(), resumed.len());
                writeln!(
                    f,
                    "hand-off: {extra} threads beyond the workers, {standby} stand by, {resumed} want a core, {kept} \
                     waiting threads keep theirs"
                )?;
                if self.workers < self.max_workers {
                    writeln!(
                        f,
                        "size: {} of {}; retired workers: {retired:?}",
                        self.workers, self.max_workers
                    )?;
                }
            }
        }
        self.write_threads(f)?;
        write!(f, "{total:?}")
    }
}

impl fmt::Debug for PoolDump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
