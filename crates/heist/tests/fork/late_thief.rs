//! Forks while all workers are busy. A worker that becomes free later takes the second half, although the
//! thread that has forked does not call into the pool meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};

use heist::Pool;

use crate::common::{Kind, eventually, for_every_strategy, held_task};

for_every_strategy! {
    first_half_waits_for_the_second,
    inner_half_waits_for_the_outer_one,
    half_of_a_part_waits,
    without_a_core,
}

/// Forks until no worker that was idle earlier is owed a half. All other workers are busy.
fn settle() {
    (0..10_000).for_each(|_| _ = heist::join(|| (), || ()));
}

/// Forks. The first half ends only after the second one has started.
fn meet(forked: &Sender<()>) {
    let met = AtomicBool::new(false);
    let wait = || {
        forked.send(()).expect("a test that waits");
        eventually("the second half starts", || met.load(Ordering::SeqCst));
    };
    heist::join(wait, || met.store(true, Ordering::SeqCst));
}

/// Forks twice. The first half of the inner fork ends only after the second half of the outer one has started.
fn meet_outer(forked: &Sender<()>) {
    let met = AtomicBool::new(false);
    let wait = || {
        forked.send(()).expect("a test that waits");
        eventually("the outer half starts", || met.load(Ordering::SeqCst));
    };
    heist::join(|| heist::join(wait, || ()), || met.store(true, Ordering::SeqCst));
}

fn meet_in_part(forked: &Sender<()>) {
    heist::scope(|scope| scope.spawn(|_| meet(forked)));
}

/// Returns when that many tasks run, which end when the senders are dropped.
fn busy_tasks(pool: &Pool, count: usize) -> Vec<Sender<()>> {
    let waiting = Arc::new(());
    let busy = (0..count).map(|_| {
        let (end, ended) = mpsc::channel();
        let waiting = Arc::clone(&waiting);
        pool.spawn(move || {
            drop(waiting);
            _ = ended.recv();
        });
        end
    });
    let busy = busy.collect();
    eventually("the other tasks run", || Arc::strong_count(&waiting) == 1);
    busy
}

/// Runs the fork while the other workers are busy. They become free when it has forked.
fn others_become_free(kind: Kind, fork: fn(&Sender<()>)) {
    for workers in [2, 4] {
        for _ in 0..5 {
            let pool = kind.pool(workers);
            let busy = busy_tasks(&pool, workers - 1);
            let (forked, has_forked) = mpsc::channel();
            let first = pool.spawn(move || {
                settle();
                fork(&forked);
            });
            has_forked.recv().expect("a task that forks");
            drop(busy);
            first.join().expect("both halves");
        }
    }
}

fn first_half_waits_for_the_second(kind: Kind) {
    others_become_free(kind, meet);
}

fn inner_half_waits_for_the_outer_one(kind: Kind) {
    others_become_free(kind, meet_outer);
}

fn half_of_a_part_waits(kind: Kind) {
    others_become_free(kind, meet_in_part);
}

/// The thread that forks has handed off its core. When it forks, the cores are in use by other tasks.
fn without_a_core(kind: Kind) {
    for _ in 0..5 {
        let (here, there) = (kind.pool(2), kind.pool(1));
        let (open, slow) = held_task(&there);
        let (forked, has_forked) = mpsc::channel();
        let (wait, waits) = mpsc::channel();
        let first = here.spawn(move || {
            wait.send(()).expect("a test that waits");
            slow.join().expect("a result");
            settle();
            meet(&forked);
        });
        waits.recv().expect("a task that waits");
        let busy = busy_tasks(&here, 2);
        drop(open);
        has_forked.recv().expect("a task that forks");
        drop(busy);
        first.join().expect("both halves");
    }
}
