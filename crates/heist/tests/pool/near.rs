//! The contract of `near` and `near_key`: a task runs on its worker if that gets to it soon, and elsewhere otherwise; and nothing
//! is lost.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use heist::{CancelToken, JoinError, Pool, Priority, worker_index};

use crate::common::{Gate, Kind, assert_balanced, assert_counts, for_every_strategy};

for_every_strategy! {
    every_round_is_on_the_same_workers,
    keys_are_on_the_same_workers_in_every_round,
    others_take_what_a_long_task_keeps_waiting,
    busy_workers_take_what_a_long_task_keeps_waiting,
    a_flood_from_outside_keeps_nothing_waiting,
    a_worker_of_one_takes_turns,
    a_scope_ends_beside_a_long_task,
    parts_of_every_round_are_counted,
    idle_workers_are_woken,
    any_number_is_a_worker,
    a_task_that_waits_runs_it,
    with_a_priority,
    cancelled_before_it_starts,
    within_a_bound,
    stop_runs_all,
    stop_now_cancels_all,
    refused_after_a_stop,
    a_retired_worker_keeps_nothing,
    resized_all_the_time,
    shown_in_a_dump,
}

const WORKERS: usize = 4;

/// Returns the lengths of the inboxes.
fn inboxes(pool: &Pool) -> Vec<usize> {
    let text = pool.dump().to_string();
    let list = text.split("near the workers: [").nth(1).and_then(|rest| rest.split(']').next());
    list.expect("a list").split(", ").map(|length| length.parse().unwrap()).collect()
}

/// Runs rounds of one task for each worker. The tasks of a round are queued while all workers run those of the round before, and
/// they end together. So each worker comes to its inbox when its own task is there, and waits in that until all others have come
/// to theirs. Returns on which worker each task ran, round by round.
fn rounds(pool: &Pool, spawn: impl Fn(usize, Box<dyn FnOnce() + Send>)) -> Vec<Vec<usize>> {
    let together = Arc::new(Barrier::new(WORKERS + 1));
    let mut gate = Some(Gate::close(pool));
    let ran: Vec<_> = (0..20).map(|_| Arc::new(Mutex::new(vec![usize::MAX; WORKERS]))).collect();
    for round in &ran {
        for n in 0..WORKERS {
            let (round, together) = (Arc::clone(round), Arc::clone(&together));
            let run = move || {
                round.lock().unwrap()[n] = worker_index().expect("a worker");
                // All have come, and then the next round is there.
                together.wait();
                together.wait();
            };
            spawn(n, Box::new(run));
        }
        match gate.take() {
            Some(gate) => gate.open(),
            None => _ = together.wait(),
        }
        together.wait();
    }
    together.wait();
    ran.iter().map(|round| round.lock().unwrap().clone()).collect()
}

fn every_round_is_on_the_same_workers(kind: Kind) {
    let pool = kind.pool(WORKERS);
    let ran = rounds(&pool, |n, run| drop(pool.task().near(n).spawn(run)));
    assert!(ran.iter().all(|round| *round == [0, 1, 2, 3]), "{ran:?}");
    pool.stop();
    let total = pool.stats().total;
    assert_eq!((total.near_tasks_kept, total.near_tasks_taken), (80, 0));
    for worker in pool.stats().per_worker {
        assert_eq!(worker.near_tasks_kept, 20);
    }
}

/// Returns a key of each worker, in the order of their numbers.
fn keys(pool: &Pool) -> Vec<u64> {
    let mut keys = [None; WORKERS];
    let gate = Gate::close(pool);
    let mut before = inboxes(pool);
    for key in 0.. {
        pool.task().near_key(key).spawn(|| ());
        let now = inboxes(pool);
        let worker = (0..WORKERS).find(|&n| now[n] > before[n]).expect("in an inbox");
        keys[worker].get_or_insert(key);
        before = now;
        if let [Some(_), Some(_), Some(_), Some(_)] = keys {
            break;
        }
    }
    gate.open();
    keys.into_iter().flatten().collect()
}

fn keys_are_on_the_same_workers_in_every_round(kind: Kind) {
    let keys = keys(&kind.pool(WORKERS));
    let pool = kind.pool(WORKERS);
    let ran = rounds(&pool, |n, run| drop(pool.task().near_key(keys[n]).spawn(run)));
    assert!(ran.iter().all(|round| *round == [0, 1, 2, 3]), "{ran:?}");
}

/// Has a worker run a task until the sender is dropped. Returns its number.
fn hold(pool: &Pool) -> (usize, mpsc::Sender<()>) {
    let (open, opened) = mpsc::channel::<()>();
    let (tell, told) = mpsc::channel();
    pool.spawn(move || {
        tell.send(worker_index().expect("a worker")).unwrap();
        let _ = opened.recv();
    });
    (told.recv().unwrap(), open)
}

fn others_take_what_a_long_task_keeps_waiting(kind: Kind) {
    let pool = kind.pool(2);
    let (held, open) = hold(&pool);
    let tasks: Vec<_> = (0..100).map(|_| pool.task().near(held).spawn(worker_index)).collect();
    let other = Some(1 - held);
    assert!(tasks.into_iter().all(|task| task.join().unwrap() == other));
    let total = pool.stats().total;
    assert_eq!((total.near_tasks_kept, total.near_tasks_taken), (0, 100));
    drop(open);
    pool.stop();
}

/// Spawns tasks one after the other, each by the one before, until that is set.
fn go_on(pool: &Arc<Pool>, until: &Arc<AtomicBool>) {
    if !until.load(Ordering::Relaxed) {
        let (here, until) = (Arc::clone(pool), Arc::clone(until));
        pool.spawn(move || go_on(&here, &until));
    }
}

fn busy_workers_take_what_a_long_task_keeps_waiting(kind: Kind) {
    let pool = Arc::new(kind.pool(2));
    let (held, open) = hold(&pool);
    let done = Arc::new(AtomicBool::new(false));
    (0..3).for_each(|_| go_on(&pool, &done));
    let tasks = [(); 5].map(|()| pool.task().near(held).spawn(|| ()));
    tasks.into_iter().for_each(|task| task.join().unwrap());
    done.store(true, Ordering::Relaxed);
    drop(open);
    pool.stop();
}

/// Workers that live on what comes from outside look into the inboxes of others as well.
fn a_flood_from_outside_keeps_nothing_waiting(kind: Kind) {
    let pool = Arc::new(kind.builder(2).max_queued(100).build().unwrap());
    let (held, open) = hold(&pool);
    let done = Arc::new(AtomicBool::new(false));
    let flood = thread::spawn({
        let (pool, done) = (Arc::clone(&pool), Arc::clone(&done));
        move || {
            while !done.load(Ordering::Relaxed) {
                pool.spawn(|| ());
            }
        }
    });
    let tasks = [(); 3].map(|()| pool.task().near(held).spawn(|| ()));
    tasks.into_iter().for_each(|task| task.join().unwrap());
    done.store(true, Ordering::Relaxed);
    flood.join().unwrap();
    drop(open);
    pool.stop();
    assert_balanced(&pool.stats());
}

fn a_worker_of_one_takes_turns(kind: Kind) {
    let pool = Arc::new(kind.pool(1));
    let done = Arc::new(AtomicBool::new(false));
    go_on(&pool, &done);
    pool.task().near(0).spawn(|| ()).join().unwrap();
    done.store(true, Ordering::Relaxed);
    // And near tasks without an end keep nothing else from starting.
    let done = Arc::new(AtomicBool::new(false));
    fn go_on_near(pool: &Arc<Pool>, until: &Arc<AtomicBool>) {
        if !until.load(Ordering::Relaxed) {
            let (here, until) = (Arc::clone(pool), Arc::clone(until));
            pool.task().near(0).spawn(move || go_on_near(&here, &until));
        }
    }
    go_on_near(&pool, &done);
    pool.spawn(|| ()).join().unwrap();
    pool.task().priority(Priority::Low).spawn(|| ()).join().unwrap();
    done.store(true, Ordering::Relaxed);
    pool.stop();
    assert_balanced(&pool.stats());
}

fn a_scope_ends_beside_a_long_task(kind: Kind) {
    let pool = kind.pool(2);
    let (held, open) = hold(&pool);
    let mut sums = [0; 20];
    pool.install(|| {
        heist::scope(|scope| {
            for (n, sum) in sums.iter_mut().enumerate() {
                scope.task().near(held).spawn_in(scope, move |_| *sum = n);
            }
        });
    });
    assert_eq!(sums.iter().sum::<usize>(), 190);
    let total = pool.stats().total;
    assert_eq!((total.near_tasks_kept, total.near_tasks_taken), (0, 20));
    drop(open);
    pool.stop();
    assert_balanced(&pool.stats());
}

fn parts_of_every_round_are_counted(kind: Kind) {
    let pool = kind.pool(WORKERS);
    let data: Vec<usize> = (0..64).collect();
    for round in 0..20 {
        let sum = AtomicUsize::new(0);
        pool.install(|| {
            heist::scope(|scope| {
                for (key, chunk) in data.chunks(4).enumerate() {
                    let sum = &sum;
                    let add = move |_: &heist::Scope<'_>| {
                        sum.fetch_add(chunk.iter().sum(), Ordering::Relaxed);
                        // A part forks, and spawns others near other workers.
                        heist::join(|| (), || ());
                    };
                    scope.task().near_key(key as u64).spawn_in(scope, add);
                }
            });
        });
        assert_eq!(sum.into_inner(), 2_016, "round {round}");
    }
    pool.stop();
    let total = pool.stats().total;
    assert_eq!(total.near_tasks_kept + total.near_tasks_taken, 20 * 16);
    assert_balanced(&pool.stats());
}

fn idle_workers_are_woken(kind: Kind) {
    let pool = kind.pool(WORKERS);
    for n in 0..200 {
        assert_eq!(pool.task().near(n).spawn(move || n).join().unwrap(), n);
    }
    // All at the same time, which takes all workers.
    let all = Arc::new(Barrier::new(WORKERS));
    let tasks = [0; WORKERS].map(|near| {
        let all = Arc::clone(&all);
        pool.task().near(near).spawn(move || _ = all.wait())
    });
    tasks.into_iter().for_each(|task| task.join().unwrap());
    assert_counts(&pool, 200 + WORKERS as u64, 0, 0);
}

fn any_number_is_a_worker(kind: Kind) {
    let pool = kind.pool(3);
    let gate = Gate::close(&pool);
    for near in [0, 3, 5, 3_001] {
        pool.task().near(near).spawn(|| ());
    }
    assert_eq!(inboxes(&pool), [2, 1, 1]);
    gate.open();
    pool.task().near(usize::MAX).spawn(|| ()).join().unwrap();
    pool.task().near_key(u64::MAX).spawn(|| ()).join().unwrap();
}

fn a_task_that_waits_runs_it(kind: Kind) {
    let pool = Arc::new(kind.builder(2).max_threads(2).build().unwrap());
    let (held, open) = hold(&pool);
    let here = Arc::clone(&pool);
    let ran = pool.install(move || {
        let tasks: Vec<_> = (0..50).map(|_| here.task().near(held).spawn(worker_index)).collect();
        tasks.into_iter().map(|task| task.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(ran.iter().all(|&worker| worker == Some(1 - held)));
    drop(open);
    pool.stop();
    assert_balanced(&pool.stats());
}

fn with_a_priority(kind: Kind) {
    let pool = kind.pool(2);
    let gate = Gate::close(&pool);
    let task = |priority| pool.task().near(1).priority(priority).name("near").spawn(|| ());
    let tasks = Priority::ALL.map(task);
    assert_eq!(inboxes(&pool), [0, 1], "that of normal priority");
    gate.open();
    tasks.into_iter().for_each(|task| task.join().unwrap());
    pool.stop();
    let total = pool.stats().total;
    assert_eq!(total.near_tasks_kept + total.near_tasks_taken, 1);
}

fn cancelled_before_it_starts(kind: Kind) {
    let pool = kind.pool(2);
    let gate = Gate::close(&pool);
    let (token, dropped) = (CancelToken::new(), Arc::new(()));
    let spawn = || {
        let kept = Arc::clone(&dropped);
        pool.task().near(0).cancel_on(&token).spawn(move || drop(kept))
    };
    let (by_token, by_handle) = (spawn(), spawn());
    assert!(by_handle.cancel());
    token.cancel();
    gate.open();
    for task in [by_token, by_handle] {
        assert!(matches!(task.join(), Err(JoinError::Cancelled)));
    }
    assert_counts(&pool, 2, 0, 2);
    assert_eq!(Arc::strong_count(&dropped), 1);
    let total = pool.stats().total;
    assert_eq!(total.near_tasks_kept + total.near_tasks_taken, 0, "they did not run");
}

fn within_a_bound(kind: Kind) {
    let pool = kind.builder(1).max_queued(3).build().unwrap();
    // The task of the gate has started, so it is not queued.
    let gate = Gate::close(&pool);
    let tasks = [(); 3].map(|()| pool.task().near(0).try_spawn(|| 1).unwrap());
    let full = pool.task().near(0).try_spawn(|| 2).unwrap_err();
    gate.open();
    assert_eq!(tasks.map(|task| task.join().unwrap()), [1; 3]);
    assert_eq!(full.0(), 2);
    assert_eq!(pool.task().near(0).spawn(|| 3).join().unwrap(), 3);
}

fn stop_runs_all(kind: Kind) {
    let pool = kind.pool(2);
    let ran = Arc::new(AtomicUsize::new(0));
    let gate = Gate::close(&pool);
    for n in 0..100 {
        let ran = Arc::clone(&ran);
        pool.task().near(n).spawn(move || ran.fetch_add(1, Ordering::Relaxed));
    }
    gate.open();
    assert_counts(&pool, 102, 0, 0);
    assert_eq!(ran.load(Ordering::Relaxed), 100);
}

fn stop_now_cancels_all(kind: Kind) {
    let pool = kind.pool(2);
    let gate = Gate::close(&pool);
    let tasks: Vec<_> = (0..10).map(|n| pool.task().near(n).spawn(|| ())).collect();
    let probes = gate.stop_now(&pool);
    for task in tasks {
        assert!(matches!(task.join(), Err(JoinError::Cancelled)));
    }
    assert_counts(&pool, 2, 0, 10 + probes);
}

fn refused_after_a_stop(kind: Kind) {
    let pool = kind.pool(2);
    pool.stop();
    let dropped = Arc::new(());
    let kept = Arc::clone(&dropped);
    let task = pool.task().near(1).spawn(move || drop(kept));
    assert!(matches!(task.join(), Err(JoinError::Stopped)));
    assert_eq!(Arc::strong_count(&dropped), 1);
    assert_counts(&pool, 0, 0, 0);
}

fn a_retired_worker_keeps_nothing(kind: Kind) {
    let pool = kind.pool(WORKERS);
    let gate = Gate::close(&pool);
    let tasks: Vec<_> = (0..40).map(|n| pool.task().near(n).spawn(|| ())).collect();
    pool.resize(1).unwrap();
    gate.open();
    tasks.into_iter().for_each(|task| task.join().unwrap());
    // The others are not in use, so nothing is near them.
    let gate = Gate::close(&pool);
    (0..9).for_each(|n| drop(pool.task().near(n).spawn(|| ())));
    (0..9).for_each(|key| drop(pool.task().near_key(key).spawn(|| ())));
    assert_eq!(inboxes(&pool)[1..], [0; WORKERS - 1]);
    gate.open();
    assert_counts(&pool, 4 + 40 + 1 + 18, 0, 0);
}

fn resized_all_the_time(kind: Kind) {
    let pool = Arc::new(kind.pool(WORKERS));
    let here = Arc::clone(&pool);
    let outer = pool.spawn(move || {
        for round in 0..100 {
            here.resize(1 + round % WORKERS).unwrap();
            let tasks = [1, 2, 3].map(|key| here.task().near_key(key).spawn(move || key));
            assert_eq!(tasks.map(|task| task.join().unwrap()), [1, 2, 3]);
        }
    });
    for key in 0..300 {
        assert_eq!(pool.task().near_key(key).spawn(move || key).join().unwrap(), key);
    }
    outer.join().unwrap();
    assert_counts(&pool, 601, 0, 0);
}

fn shown_in_a_dump(kind: Kind) {
    let pool = kind.pool(2);
    let gate = Gate::close(&pool);
    (0..3).for_each(|_| drop(pool.task().near(1).spawn(|| ())));
    assert_eq!(inboxes(&pool), [0, 3]);
    gate.open();
    pool.stop();
    assert_eq!(inboxes(&pool), [0, 0]);
}
