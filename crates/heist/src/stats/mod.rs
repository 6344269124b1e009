//! What the pool has done, in numbers: one block of counters per worker, written by its owner.
//!
//! A worker's block has one writer, so counting is a load and a store; what threads without a core
//! count (spawns from outside) goes to one more block, by atomic additions.

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
            /// Of threads that are no worker just then.
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
            /// With the name of each, and what it counts.
            fn named(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                [$((stringify!($name), concat!($($doc),*), self.$name),)*].into_iter()
            }
        }

        /// The counters as they are written.
        #[derive(Default)]
        pub(crate) struct Block {
            $(pub(crate) $name: AtomicU64,)*
        }

        impl Block {
            /// A copy; `tasks_submitted` is to be read again: see [`Ledger::read`].
            fn read(&self) -> Counters {
                Counters { $($name: self.$name.load(order::count_read()),)* }
            }
        }
    };
}

counters! {
    /// Tasks that the pool has taken in. Equal to `tasks_completed + panics + cancellations` once
    /// the pool has stopped, and never less.
    tasks_submitted
    /// Tasks that ran to their end.
    tasks_completed
    /// Tasks that ended in a panic.
    panics
    /// Tasks that were dropped before they started, by a stop.
    cancellations
    /// Looks into another worker's deque, with the intent to take something.
    steal_attempts
    /// Those that brought something.
    successful_steals
    /// Steals, and takes from the injector, that lost a race and had to be tried again.
    failed_cas
    /// Tasks that steals have moved; a steal moves one or several. Some that were stolen again at once
    /// may be missing.
    tasks_moved
    /// Tasks that a worker took from its own deque.
    local_pops
    /// Tasks that came out of the injector (in `GlobalQueue`, out of the queue); one take moves one
    /// or several. Some that were stolen again at once may be missing.
    injector_pops
    /// Second halves of joins, and parts of scopes, that were put where others can take them. Each is a
    /// task as well; a join that nobody wanted to take part in is not.
    publications
    /// Times that a worker's deque was full and half of it went to the injector.
    overflows
    /// Rounds of looking everywhere and finding nothing.
    idle_spins
    /// Times that a worker went to sleep.
    parks
    /// Sleepers that were woken because there was work.
    wake_ups_sent
    /// Wake-ups after which the worker found nothing.
    futile_wake_ups
    /// Times that a lock of a locked strategy was taken when it was wanted.
    lock_contention
}

/// All counters of a pool.
pub(crate) struct Ledger {
    /// One for each worker, and one for everybody else.
    blocks: Box<[Arc<Padded<Block>>]>,
}

/// Where a thread counts just now.
#[derive(Clone, Copy)]
pub(crate) struct Tally<'l> {
    block: &'l Block,
    /// Is there no other writer?
    own: bool,
}

/// A worker's own block, which it alone writes.
pub(crate) struct OwnBlock(Arc<Padded<Block>>);

impl OwnBlock {
    #[inline(always)]
    pub(crate) fn tally(&self) -> Tally<'_> {
        Tally { block: &self.0, own: true }
    }
}

impl Tally<'_> {
    #[inline(always)]
    pub(crate) fn add(self, counter: impl FnOnce(&Block) -> &AtomicU64, count: u64) {
        let counter = counter(self.block);
        if self.own {
            // Ordering: relaxed. Nobody else writes it.
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
    pub(crate) fn new(workers: usize) -> Self {
        Self { blocks: (0..=workers).map(|_| Arc::default()).collect() }
    }

    /// For the worker in that core.
    pub(crate) fn of_worker(&self, worker: usize) -> OwnBlock {
        OwnBlock(Arc::clone(&self.blocks[worker]))
    }

    /// Of everybody who has no core.
    #[inline(always)]
    pub(crate) fn of_non_workers(&self) -> Tally<'_> {
        Tally { block: &self.blocks[self.blocks.len() - 1], own: false }
    }

    pub(crate) fn read(&self) -> Stats {
        let mut all: Vec<_> = self.blocks.iter().map(|block| block.read()).collect();
        // Last, so that no end of a task is seen without its submission.
        for (counters, block) in all.iter_mut().zip(&self.blocks) {
            counters.tasks_submitted = block.tasks_submitted.load(order::count_read());
        }
        let mut total = Counters::default();
        all.iter().for_each(|&counters| total += counters);
        all.pop();
        Stats { total, per_worker: all }
    }
}

/// The counters of a pool at one time: [`total`](Self::total), to which this dereferences, and each
/// worker's.
///
/// Reading them costs the workers nothing. While the pool runs they are a moment old, and `tasks_completed + panics +
/// cancellations` is never more than `tasks_submitted`. After [`Pool::stop`](crate::Pool::stop) they are exact. What a
/// thread outside is in the middle of submitting just then, be it a spawn or a pipeline whose results were dropped, is seen
/// as submitted a moment before it is seen as cancelled.
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
    /// Of the workers and of the threads outside that have spawned tasks.
    pub total: Counters,
    /// Of each worker.
    pub per_worker: Vec<Counters>,
}
