//! Counters of what a pool has done: one block per worker, written by that worker alone.
//!
//! A worker's block has one writer, so that counting is a load and a store. Threads that are not workers (spawns
//! from outside, threads without a core) share one more block, by atomic additions.

#[cfg(feature = "prometheus")]
mod prometheus;

use std::ops::AddAssign;

use crate::order;
use crate::sync::{Arc, AtomicU64, Ordering, Padded};

macro_rules! counters {
    ($($(#[doc = $doc:literal])* $name:ident)*) => {
        /// What one worker, or all of them, have done.
        ///
        /// ```
        /// let pool = heist::Pool::builder().workers(2).build()?;
        /// pool.spawn(|| ()).join().unwrap();
        /// pool.stop();
        /// let counters: heist::Counters = pool.stats().total;
        /// assert_eq!((counters.tasks_submitted, counters.tasks_completed), (1, 1));
        /// # Ok::<(), heist::BuildError>(())
        /// ```
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Counters {
            $($(#[doc = $doc])* pub $name: u64,)*
        }

        #[cfg(feature = "prometheus")]
        impl Stats {
            /// Returns the counters of threads that were not workers.
            fn outside(&self) -> Counters {
                let of_workers = |value: fn(&Counters) -> u64| self.per_worker.iter().map(value).sum::<u64>();
                Counters { $($name: self.total.$name.saturating_sub(of_workers(|worker| worker.$name)),)* }
            }
        }

        impl AddAssign for Counters {
            fn add_assign(&mut self, other: Self) {
                $(self.$name += other.$name;)*
            }
        }

        #[cfg(feature = "prometheus")]
        impl Counters {
            /// Returns each counter with its name and its description.
            fn named(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                [$((stringify!($name), concat!($($doc),*), self.$name),)*].into_iter()
            }
        }

        /// One block of counters, as threads write it.
        #[derive(Default)]
        pub(crate) struct Block {
            $(pub(crate) $name: AtomicU64,)*
        }

        impl Block {
            /// Returns a copy. `tasks_submitted` must be read again: see [`Ledger::read`].
            fn read(&self) -> Counters {
                Counters { $($name: self.$name.load(order::count_read()),)* }
            }
        }
    };
}

counters! {
    /// Tasks that were submitted. Equal to `tasks_completed + panics + cancellations` once the pool has stopped, and
    /// never less than that sum.
    tasks_submitted
    /// Tasks that returned.
    tasks_completed
    /// Tasks that panicked.
    panics
    /// Tasks that a stop dropped before they started.
    cancellations
    /// Looks into another thread's queues in order to steal.
    steal_attempts
    /// Steal attempts that got at least one task.
    successful_steals
    /// Successful steals from a thread on the same NUMA node. Where the threads are is known of workers that are pinned;
    /// otherwise a cluster of up to eight workers counts as being on the node on which one of them first ran, and all of a
    /// pool with one cluster as being on one node. A machine whose nodes are not known is one node.
    near_steals
    /// Successful steals from a thread on another NUMA node. Together with `near_steals` these are `successful_steals`.
    far_steals
    /// Steals, and takes from the injector, that lost a race and had to be tried again.
    failed_cas
    /// Tasks that were moved by steals; one steal moves one or several. Tasks that were stolen again at once may be
    /// missing.
    tasks_moved
    /// Tasks and published parts that a worker took from its own queues.
    local_pops
    /// Tasks that were taken from the injector (in `GlobalQueue`, from the queue); one take moves one or several.
    /// Tasks that were stolen again at once may be missing.
    injector_pops
    /// Tasks and parts near a worker that ran there: see [`TaskBuilder::near`](crate::TaskBuilder::near).
    near_tasks_kept
    /// Tasks and parts near a worker that ran elsewhere: on another worker, or on a thread that waited for them. The worker is that
    /// of the spawn, also for a future that is polled after the pool was resized.
    near_tasks_taken
    /// Second halves of joins, parts of scopes, and private tasks, that were published so that other workers can take them.
    /// Each is counted as a task as well; a join whose second half stayed private is not. Parts of batches that a waiting thread
    /// has published are included, and are no tasks: each closure of a batch is one.
    publications
    /// Times that a thread's deque was full and half of it was moved to the injector.
    overflows
    /// Rounds of looking everywhere without finding a task.
    idle_spins
    /// Times that a worker went to sleep.
    parks
    /// Sleeping workers that were woken because there was work.
    wake_ups_sent
    /// Wake-ups after which the worker found nothing.
    futile_wake_ups
    /// Times that a thread found a lock of a locked strategy, or of published parts, taken.
    lock_contention
    /// Times that a thread which waited in the middle of a task gave its core to another thread.
    hand_offs
    /// Cores that workers gave to threads whose wait was over.
    cores_returned
    /// Nanoseconds that threads spent with their tasks after a wait, without a core.
    nanoseconds_without_core
}

/// All counters of a pool.
pub(crate) struct Ledger {
    /// One block for each worker, and one for each cluster, in which the threads count that are not workers and turn to it.
    blocks: Box<[Arc<Padded<Block>>]>,
    workers: usize,
}

/// The block that a thread counts in at the moment.
#[derive(Clone, Copy)]
pub(crate) struct Tally<'l> {
    block: &'l Block,
    /// Is the thread the only writer?
    own: bool,
}

/// A worker's own block, which only that worker writes.
pub(crate) struct OwnBlock(Arc<Padded<Block>>);

impl OwnBlock {
    #[inline(always)]
    pub(crate) fn tally(&self) -> Tally<'_> {
        Tally { block: &self.0, own: true }
    }
}

impl<'b> Tally<'b> {
    /// Returns the counters of the worker that the calling thread is.
    #[inline(always)]
    pub(crate) fn own(block: &'b Block) -> Self {
        Self { block, own: true }
    }

    #[inline(always)]
    pub(crate) fn add(self, counter: impl FnOnce(&Block) -> &AtomicU64, count: u64) {
        let counter = counter(self.block);
        if self.own {
            // Ordering: relaxed. No other thread writes it.
            counter.store(counter.load(Ordering::Relaxed) + count, order::count_publish());
        } else {
            counter.fetch_add(count, order::count_publish());
        }
    }

    #[inline(always)]
    pub(crate) fn one(self, counter: impl FnOnce(&Block) -> &AtomicU64) {
        self.add(counter, 1);
    }
}

impl Ledger {
    /// Returns the counters of a pool with that many workers and clusters.
    pub(crate) fn new(workers: usize, clusters: usize) -> Self {
        Self { blocks: (0..workers + clusters).map(|_| Arc::default()).collect(), workers }
    }

    /// Returns the block of that worker.
    pub(crate) fn of_worker(&self, worker: usize) -> OwnBlock {
        OwnBlock(Arc::clone(&self.blocks[worker]))
    }

    /// Returns the counters of that worker, which only that worker writes.
    pub(crate) fn block_of_worker(&self, worker: usize) -> &Block {
        &self.blocks[worker]
    }

    /// Returns a block of threads that are not workers, for what is counted seldom.
    #[inline(always)]
    pub(crate) fn of_non_workers(&self) -> Tally<'_> {
        self.of_outsiders(0)
    }

    /// Returns the block of the threads that are not workers and turn to that cluster.
    #[inline(always)]
    pub(crate) fn of_outsiders(&self, cluster: usize) -> Tally<'_> {
        Tally { block: &self.blocks[self.workers + cluster], own: false }
    }

    /// Returns how many tasks have ended, in whatever way. The number may be a moment old.
    pub(crate) fn ended(&self) -> u64 {
        // Ordering: relaxed. It is only compared with an earlier one.
        let ended = |block: &Arc<Padded<Block>>| {
            [&block.tasks_completed, &block.panics, &block.cancellations]
                .map(|count| count.load(Ordering::Relaxed))
        };
        self.blocks.iter().flat_map(ended).sum()
    }

    pub(crate) fn read(&self) -> Stats {
        let mut all: Vec<_> = self.blocks.iter().map(|block| block.read()).collect();
        // Read last, so that no end of a task is seen without its submission.
        for (counters, block) in all.iter_mut().zip(&self.blocks) {
            counters.tasks_submitted = block.tasks_submitted.load(order::count_read());
        }
        let mut total = Counters::default();
        all.iter().for_each(|&counters| total += counters);
        all.truncate(self.workers);
        Stats { total, per_worker: all, threads: 0, peak_threads: 0 }
    }
}

/// The counters of a pool at one time: the [`total`](Self::total), and those of each worker.
///
/// Reading them costs the workers nothing. While the pool runs, the counters are a moment old, and
/// `tasks_completed + panics + cancellations` is never more than `tasks_submitted`. After
/// [`Pool::stop`](crate::Pool::stop) they are exact, with one exception: a task that a thread outside is
/// submitting at that moment, by a spawn or by a pipeline whose results were dropped, is counted as submitted a
/// moment before it is counted as cancelled.
///
/// ```
/// let pool = heist::Pool::builder().workers(2).build()?;
/// for _ in 0..100 {
///     pool.spawn(|| ());
/// }
/// pool.stop();
/// let stats = pool.stats();
/// assert_eq!(stats.total.tasks_completed, 100);
/// assert_eq!(stats.per_worker.iter().map(|worker| worker.tasks_completed).sum::<u64>(), 100);
/// # Ok::<(), heist::BuildError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// The sum over all workers and over the threads outside that have spawned tasks.
    pub total: Counters,
    /// The counters of each worker, by its number.
    pub per_worker: Vec<Counters>,
    /// The number of threads that the pool has at the moment. More threads than workers are started when tasks wait
    /// for each other: see [`Builder::max_threads`](crate::Builder::max_threads).
    pub threads: usize,
    /// The largest number of threads that the pool ever had.
    pub peak_threads: usize,
}
