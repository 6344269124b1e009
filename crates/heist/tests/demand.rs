//! The contract of demand: while a worker is idle, the next fork is published and can be stolen.
//!
//! These tests have a binary of their own, because they need both processors.

#![cfg(not(any(loom, shuttle)))]

mod common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use heist::Pool;

use common::{Kind, eventually, for_every_strategy};

for_every_strategy! {
    demand_stays_raised_after_a_chain,
    a_long_fork_after_short_ones,
}

/// Returns only if two threads run the halves at the same time.
fn meet() {
    let (send, receive) = mpsc::channel();
    heist::join(move || receive.recv().expect("the other half"), move || send.send(()).is_ok());
}

/// What the leaves of a chain of forks share.
struct Chain<'p> {
    pool: &'p Pool,
    /// The number of published jobs before the first leaf.
    before: AtomicU64,
    /// The number of leaves that the other worker has run.
    theirs: AtomicU64,
    /// The number of parks when the other worker was last seen awake.
    parks: AtomicU64,
}

impl Chain<'_> {
    /// Forks `depth` leaves, each of which waits in the join beneath the next.
    fn descend(&self, depth: usize, bottom: &mut (dyn FnMut() + Send)) {
        let here = thread::current().id();
        let down = || if depth > 1 { self.descend(depth - 1, bottom) } else { bottom() };
        heist::join(down, || self.leaf(thread::current().id() == here));
    }

    /// A leaf on our own thread does not return before the other worker has run the published jobs and
    /// sleeps.
    fn leaf(&self, ours: bool) {
        if ours {
            self.until_asleep();
        } else {
            self.parks.store(self.pool.stats().total.parks, Ordering::Relaxed);
            self.theirs.fetch_add(1, Ordering::Release);
        }
    }

    fn until_asleep(&self) {
        eventually("the other worker has nothing to do", || {
            let theirs = self.before.load(Ordering::Relaxed) + self.theirs.load(Ordering::Acquire);
            let stats = self.pool.stats();
            stats.total.publications == theirs
                && stats.total.parks > self.parks.load(Ordering::Relaxed)
        });
    }
}

/// However many jobs were requested and published, a worker that falls asleep afterwards still has its
/// demand raised.
fn demand_stays_raised_after_a_chain(kind: Kind) {
    for depth in 1..=48 {
        let pool = kind.pool(2);
        pool.install(|| {
            let (enter, entered) = mpsc::channel();
            let (leave, left) = mpsc::channel::<()>();
            let zero = || AtomicU64::new(0);
            let chain = Chain { pool: &pool, before: zero(), theirs: zero(), parks: zero() };
            // The other worker is busy until the bottom is reached and every demand is answered.
            heist::spawn(move || {
                enter.send(()).expect("a test that waits");
                let _ = left.recv();
            });
            entered.recv().expect("a busy worker");
            (0..1000).for_each(|_| _ = heist::join(|| (), || ()));
            let mut leave = Some(leave);
            chain.descend(depth, &mut || {
                let stats = pool.stats();
                chain.before.store(stats.total.publications, Ordering::Relaxed);
                chain.parks.store(stats.total.parks, Ordering::Relaxed);
                drop(leave.take());
                chain.until_asleep();
            });
            meet();
        });
    }
}

/// A job that was published for a sleeping worker and taken back before the worker was awake does not
/// count: the fork that exists when the worker looks is published for it. This holds as a rule only.
/// There is a moment between the last look of a worker and its demand, which is long if the system takes
/// the processor away just then; and with the global queue, a worker that searches is not counted as
/// idle.
fn a_long_fork_after_short_ones(kind: Kind) {
    const ROUNDS: usize = 100;
    if !kind.steals {
        return;
    }
    for short in [1, 10, 20, 100] {
        let pool = kind.pool(2);
        let taken = (0..ROUNDS).filter(|_| pool.install(|| is_taken_after(short))).count();
        assert!(taken > ROUNDS / 10, "{taken} of {ROUNDS}, after {short} short ones each");
    }
}

/// Returns whether another thread takes the second half of a long fork after `short` short ones.
fn is_taken_after(short: usize) -> bool {
    let here = thread::current().id();
    let done = AtomicBool::new(false);
    (0..short).for_each(|_| _ = heist::join(|| (), || ()));
    let first = || {
        // By now it was published, or it never will be. The rest of the time is for a thief that waits
        // for a processor.
        let end = Instant::now() + Duration::from_millis(30);
        while !done.load(Ordering::Relaxed) && Instant::now() < end {
            thread::yield_now();
        }
    };
    let second = || {
        done.store(true, Ordering::Relaxed);
        thread::current().id() != here
    };
    heist::join(first, second).1
}
