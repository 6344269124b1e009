//! The order in which queued tasks start: almost that in which they were queued from outside, and never
//! between a task and its own parts.

use std::hint;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use heist::Pool;
use heist_deque::BATCH_LIMIT;

use crate::common::{Gate, Kind, WORKERS, for_every_strategy, held_task};
use heist_testkit::watchdog::eventually;

for_every_strategy! {
    requests_without_parts,
    requests_with_a_scope,
    scope_before_queued_tasks,
    batch_before_queued_tasks,
    scope_with_a_core_before_queued_tasks,
}

/// One request in this many may be later than the bound. The system may stop a thread while it moves requests from
/// one queue to another, and for as long no other thread reaches them.
const STOPPED: usize = 10;

/// Keeps the processor busy.
fn work(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        hint::spin_loop();
    }
}

/// Queues requests while all workers are busy, and looks how much later each starts than its place in the queue
/// says. Almost all are late by no more than what the workers have moved from the queue to their deques, and
/// once more as much for what they have stolen from each other.
fn requests(kind: Kind, count: usize, request: fn()) {
    for workers in [1, 2, 4] {
        let pool = kind.pool(workers);
        let gate = Gate::close(&pool);
        let started = Arc::new(AtomicUsize::new(0));
        let handles: Vec<_> = (0..count)
            .map(|place| {
                let started = Arc::clone(&started);
                pool.spawn(move || {
                    let late = started.fetch_add(1, Ordering::SeqCst).saturating_sub(place);
                    request();
                    late
                })
            })
            .collect();
        gate.open();
        let mut late: Vec<_> =
            handles.into_iter().map(|handle| handle.join().expect("a result")).collect();
        late.sort_unstable();
        let bound = workers * 2 * BATCH_LIMIT;
        let most = late[count - 1 - count / STOPPED];
        assert!(most <= bound, "{most} places late, with {workers} workers; the bound is {bound}");
    }
}

fn requests_without_parts(kind: Kind) {
    requests(kind, 4000, || work(Duration::from_micros(20)));
}

fn requests_with_a_scope(kind: Kind) {
    requests(kind, 4000, || {
        heist::scope(|scope| {
            (0..2).for_each(|_| scope.spawn(|_| work(Duration::from_micros(300))));
        });
    });
}

const BEFORE: usize = 0;
const OPEN: usize = 1;
const ENDED: usize = 2;

/// Runs `parts` in a task while many tasks are queued, and checks that few of them start meanwhile: as many as
/// there are threads to run them. Each holds its thread until the parts have ended, or for long enough. With
/// `waits`, the task has waited before, and its core was handed off to the first of the queued tasks.
fn few_start_meanwhile(kind: Kind, waits: bool, parts: fn(&Pool)) {
    const QUEUED: usize = 2000;
    /// More than the workers and threads beyond them; far fewer than are queued.
    const MOST: usize = 32;
    for workers in WORKERS {
        let (here, there) = (Arc::new(kind.pool(workers)), kind.pool(1));
        let others: Vec<_> = (1..workers).map(|_| held_task(&here)).collect();
        let (phase, early, late) =
            (Arc::new(AtomicUsize::new(BEFORE)), Arc::default(), Arc::default());
        let (open, slow) = held_task(&there);
        let (ready, is_ready) = mpsc::channel();
        let (pool, now) = (Arc::clone(&here), Arc::clone(&phase));
        let first = here.spawn(move || {
            ready.send(()).expect("a test that waits");
            if waits {
                slow.join().expect("a result");
            } else {
                while !slow.is_finished() {
                    thread::yield_now();
                }
            }
            now.store(OPEN, Ordering::SeqCst);
            parts(&pool);
            now.store(ENDED, Ordering::SeqCst);
        });
        is_ready.recv().expect("a task that has started");
        let queued: Vec<_> = (0..QUEUED)
            .map(|_| {
                let phase = Arc::clone(&phase);
                let (early, late): (Arc<AtomicUsize>, Arc<AtomicUsize>) =
                    (Arc::clone(&early), Arc::clone(&late));
                here.spawn(move || {
                    let is_late = phase.load(Ordering::SeqCst) == OPEN;
                    let counter = if is_late { &late } else { &early };
                    if counter.fetch_add(1, Ordering::SeqCst) < MOST {
                        let patience = Instant::now() + Duration::from_millis(50);
                        let ended = || phase.load(Ordering::SeqCst) == ENDED;
                        while !ended() && Instant::now() < patience {
                            thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        if waits {
            eventually("a queued task runs on the core", || early.load(Ordering::SeqCst) > 0);
        }
        drop(open);
        first.join().expect("a result");
        let meanwhile = late.load(Ordering::SeqCst);
        drop(others);
        queued.into_iter().for_each(|task| task.join().expect("a result"));
        assert!(meanwhile < MOST, "{meanwhile} started, with {workers} workers");
    }
}

fn scope(_: &Pool) {
    heist::scope(|scope| (0..4).for_each(|_| scope.spawn(|_| ())));
}

fn batch(pool: &Pool) {
    pool.spawn_batch([|| (); 4]).join().expect("results");
}

fn scope_before_queued_tasks(kind: Kind) {
    few_start_meanwhile(kind, true, scope);
}

fn batch_before_queued_tasks(kind: Kind) {
    few_start_meanwhile(kind, true, batch);
}

fn scope_with_a_core_before_queued_tasks(kind: Kind) {
    few_start_meanwhile(kind, false, scope);
}
