//! The contract of demand: while a worker is idle, the next fork is published and can be stolen.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use heist::Pool;

use crate::common::{Kind, eventually, for_every_strategy};

for_every_strategy! {
    a_demand_outlives_every_chain,
    a_long_fork_after_short_ones,
}

/// Two halves at once, or never.
fn meet() {
    let (send, receive) = mpsc::channel();
    heist::join(move || receive.recv().expect("the other half"), move || send.send(()).is_ok());
}

/// What the leaves of a chain know.
struct Chain<'p> {
    pool: &'p Pool,
    /// Publications before the first leaf.
    before: AtomicU64,
    /// Leaves that the other worker has run.
    theirs: AtomicU64,
    /// How often workers had slept when the other worker was last seen awake.
    parks: AtomicU64,
}

impl Chain<'_> {
    /// So many leaves, each waiting in the join beneath the next.
    fn descend(&self, depth: usize, bottom: &mut (dyn FnMut() + Send)) {
        let here = thread::current().id();
        let down = || if depth > 1 { self.descend(depth - 1, bottom) } else { bottom() };
        heist::join(down, || self.leaf(thread::current().id() == here));
    }

    /// Ours does not return before the other worker has run what was published, and sleeps.
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

/// However many jobs a demand was for, and however many there were: whoever sleeps afterwards has
/// its demand still standing.
fn a_demand_outlives_every_chain<S: Kind>() {
    for depth in 1..=48 {
        let pool = S::pool(2);
        pool.install(|| {
            let (enter, entered) = mpsc::channel();
            let (leave, left) = mpsc::channel::<()>();
            let zero = || AtomicU64::new(0);
            let chain = Chain { pool: &pool, before: zero(), theirs: zero(), parks: zero() };
            // The other worker is busy until the bottom is reached, and every demand is answered.
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

/// What was offered to a sleeper and taken back before it was up does not count: the fork that is there
/// when it comes is there for it. As a rule, that is: there is a moment between its last look and its
/// demand, which is long if the system takes its core away just then; and with the global queue, whoever
/// looks is not counted as idle.
fn a_long_fork_after_short_ones<S: Kind>() {
    const ROUNDS: usize = 100;
    if !S::STEALS {
        return;
    }
    for short in [1, 10, 20, 100] {
        let pool = S::pool(2);
        let taken = (0..ROUNDS).filter(|_| pool.install(|| is_taken_after(short))).count();
        assert!(taken > ROUNDS / 10, "{taken} of {ROUNDS}, after {short} short ones each");
    }
}

/// Is the second half of a long fork taken by another thread, after so many short ones?
fn is_taken_after(short: usize) -> bool {
    let here = thread::current().id();
    let done = AtomicBool::new(false);
    (0..short).for_each(|_| _ = heist::join(|| (), || ()));
    let first = || {
        // It was published long ago, or it never will be; a thief without a core needs time.
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
