//! The contract of priorities: which queued task starts next, that every priority makes progress, and what inherits a
//! priority.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use heist::{Pool, Priority, current_priority};

use crate::common::{Gate, Kind, assert_balanced, eventually, for_every_strategy};

for_every_strategy! {
    high_first_low_last,
    spawned_inside_in_any_order,
    a_single_high_task_passes_any_backlog,
    the_next_free_worker_starts_the_high_task,
    low_has_its_share_of_a_backlog,
    a_flood_of_high_tasks_keeps_nothing_from_starting,
    a_flood_of_normal_tasks_keeps_no_low_task_from_starting,
    inherited_by_all_parts_and_spawns,
    set_overrides_inherited,
    forgotten_after_the_task,
    a_task_that_waits_raises_the_awaited_one,
    an_awaited_task_has_its_share,
    parts_of_low_work_do_not_keep_high_tasks_waiting,
    stop_runs_all,
    stop_now_cancels_all,
    refused_after_a_stop,
    an_idle_pool_is_woken,
    high_first_when_a_waiting_task_hands_its_core_on,
    a_row_of_high_tasks_is_forgotten_when_it_has_ended,
    cancelled_tasks_do_not_count,
}

const LOW_SHARE: usize = Priority::LOW_SHARE as usize;
const MOST_HIGH: usize = Priority::MOST_HIGH as usize;

/// What has started, in that order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<(Priority, usize)>>>);

impl Log {
    fn spawn(&self, pool: &Pool, priority: Priority, number: usize) {
        let log = self.clone();
        pool.task().priority(priority).spawn(move || log.push(priority, number));
    }

    fn push(&self, priority: Priority, number: usize) {
        self.0.lock().unwrap().push((priority, number));
    }

    fn read(&self) -> Vec<(Priority, usize)> {
        self.0.lock().unwrap().clone()
    }

    /// Returns the places of the tasks of that priority.
    fn places(&self, priority: Priority) -> Vec<usize> {
        let log = self.read();
        let of = |&place: &usize| log[place].0 == priority;
        (0..log.len()).filter(of).collect()
    }

    /// Checks that the tasks of each priority have started in the order of their numbers.
    fn assert_in_order(&self) {
        for priority in Priority::ALL {
            let of = self.read().into_iter().filter(|&(of, _)| of == priority);
            let numbers: Vec<_> = of.map(|(_, number)| number).collect();
            assert!(numbers.is_sorted(), "{priority:?}: {numbers:?}");
        }
    }
}

/// The only worker is busy while tasks of all priorities come from outside.
fn high_first_low_last(kind: Kind) {
    let pool = kind.pool(1);
    let (log, gate) = (Log::default(), Gate::close(&pool));
    for number in 0..10 {
        for priority in [Priority::Low, Priority::Normal, Priority::High] {
            log.spawn(&pool, priority, number);
        }
    }
    gate.open();
    pool.stop();
    log.assert_in_order();
    assert_eq!(log.places(Priority::High), (0..10).collect::<Vec<_>>());
    assert_eq!(log.places(Priority::Normal), (10..20).collect::<Vec<_>>());
    assert_balanced(&pool.stats());
}

/// A task of the only worker spawns tasks of all priorities, and then ends.
fn spawned_inside_in_any_order(kind: Kind) {
    let pool = Arc::new(kind.pool(1));
    let (log, inside) = (Log::default(), Arc::clone(&pool));
    let spawn_all = {
        let log = log.clone();
        move || {
            for number in 0..5 {
                for priority in Priority::ALL {
                    log.spawn(&inside, priority, number);
                }
            }
        }
    };
    pool.spawn(spawn_all).join().unwrap();
    pool.stop();
    let order: Vec<_> = log.read().into_iter().map(|(priority, _)| priority).collect();
    let of_each = Priority::ALL.map(|priority| [priority; 5]);
    assert_eq!(order, of_each.concat());
}

/// However much is queued, the next worker that becomes free starts the task of high priority.
fn a_single_high_task_passes_any_backlog(kind: Kind) {
    let pool = kind.pool(1);
    for backlog in [Priority::Normal, Priority::Low] {
        let (log, gate) = (Log::default(), Gate::close(&pool));
        (0..1_000).for_each(|number| log.spawn(&pool, backlog, number));
        log.spawn(&pool, Priority::High, 0);
        gate.open();
        pool.task().priority(Priority::Low).spawn(|| ()).join().unwrap();
        assert_eq!(log.places(Priority::High), [0]);
    }
}

/// All workers are busy with tasks of low priority, and one of them becomes free.
fn the_next_free_worker_starts_the_high_task(kind: Kind) {
    let pool = kind.pool(3);
    let (tell, told) = mpsc::channel();
    let hold = || {
        let (tell, (open, opened)) = (tell.clone(), mpsc::channel::<()>());
        pool.task()
            .priority(Priority::Low)
            .spawn(move || tell.send(()).is_ok() && opened.recv().is_err());
        told.recv().unwrap();
        open
    };
    let mut held: Vec<_> = (0..3).map(|_| hold()).collect();
    for free in 0..3 {
        let log = Log::default();
        for number in 0..50 {
            log.spawn(&pool, Priority::Low, number);
            log.spawn(&pool, Priority::Normal, number);
        }
        log.spawn(&pool, Priority::High, 0);
        drop(held.remove(free % held.len()));
        eventually("the free worker has run all", || log.read().len() == 101);
        assert_eq!(log.read()[0], (Priority::High, 0));
        assert_eq!(log.read()[1].0, Priority::Normal);
        held.push(hold());
    }
}

/// While tasks of normal priority are queued, one of low priority starts once in `LOW_SHARE`, and not more often.
fn low_has_its_share_of_a_backlog(kind: Kind) {
    let pool = kind.pool(1);
    let (log, gate) = (Log::default(), Gate::close(&pool));
    let normal = 10 * (LOW_SHARE - 1);
    (0..20).for_each(|number| log.spawn(&pool, Priority::Low, number));
    (0..normal).for_each(|number| log.spawn(&pool, Priority::Normal, number));
    gate.open();
    pool.stop();
    log.assert_in_order();
    let low = log.places(Priority::Low);
    for (count, place) in low[..10].iter().enumerate() {
        let latest = LOW_SHARE * (count + 1);
        assert!(*place < latest && *place + 2 * LOW_SHARE >= latest, "{count} at {place}");
    }
}

/// A task that spawns itself again until `end` tasks have started, and counts.
fn treadmill(pool: &Arc<Pool>, starts: &Arc<AtomicUsize>, end: usize) {
    if starts.fetch_add(1, Ordering::SeqCst) < end {
        let (again, counted) = (Arc::clone(pool), Arc::clone(starts));
        pool.spawn(move || treadmill(&again, &counted, end));
    }
}

/// Starts a treadmill of that priority on the only worker, and returns how many of its starts the other tasks have seen.
fn seen_beside_treadmill(kind: Kind, of: Priority, others: &[Priority]) -> Vec<usize> {
    let pool = Arc::new(kind.pool(1));
    let starts = Arc::new(AtomicUsize::new(0));
    let gate = Gate::close(&pool);
    let (mill, counted) = (Arc::clone(&pool), Arc::clone(&starts));
    pool.task().priority(of).spawn(move || treadmill(&mill, &counted, 100 * LOW_SHARE));
    let seen = |&priority: &Priority| {
        let starts = Arc::clone(&starts);
        pool.task().priority(priority).spawn(move || starts.load(Ordering::SeqCst))
    };
    let handles: Vec<_> = others.iter().map(seen).collect();
    gate.open();
    handles.into_iter().map(|handle| handle.join().unwrap()).collect()
}

fn a_flood_of_high_tasks_keeps_nothing_from_starting(kind: Kind) {
    let seen = seen_beside_treadmill(kind, Priority::High, &[Priority::Low, Priority::Normal]);
    assert!(seen.iter().all(|&seen| seen <= 2 * LOW_SHARE), "{seen:?}");
    let seen = seen_beside_treadmill(kind, Priority::High, &[Priority::Low; 8]);
    for (count, seen) in seen.into_iter().enumerate() {
        assert!(seen <= (count + 1) * (MOST_HIGH + 1), "{count} after {seen}");
    }
}

fn a_flood_of_normal_tasks_keeps_no_low_task_from_starting(kind: Kind) {
    let seen = seen_beside_treadmill(kind, Priority::Normal, &[Priority::Low; 8]);
    for (count, seen) in seen.into_iter().enumerate() {
        assert!(seen <= (count + 1) * LOW_SHARE, "{count} after {seen}");
    }
}

/// Everything that is a part of a task, or spawned by it, has its priority, on whatever thread.
fn inherited_by_all_parts_and_spawns(kind: Kind) {
    let pool = Arc::new(kind.pool(3));
    for priority in Priority::ALL {
        let inside = Arc::clone(&pool);
        let all = pool.task().priority(priority).spawn(move || {
            let mut found = vec![current_priority()];
            found.push(inside.spawn(current_priority).join().unwrap());
            found.push(inside.handle().spawn(current_priority).join().unwrap());
            found.push(
                heist::spawn(|| heist::spawn(current_priority)).join().unwrap().join().unwrap(),
            );
            found.extend(inside.spawn_batch([current_priority; 20]).join().unwrap());
            let nested = || heist::spawn(current_priority).join().unwrap();
            found.extend(inside.spawn_batch([nested; 20]).join().unwrap());
            let both = heist::join(current_priority, || heist::isolate(current_priority));
            found.extend([both.0, both.1]);
            found.extend(heist::parallel::map(0..5_000, |_| current_priority()));
            let parts = Mutex::new(Vec::new());
            heist::scope(|scope| {
                for _ in 0..50 {
                    scope.spawn(|scope| {
                        parts.lock().unwrap().push(current_priority());
                        scope.spawn(|_| parts.lock().unwrap().push(nested()));
                    });
                }
                let handles = [(); 20].map(|()| {
                    scope.spawn_handle(move |_| heist::join(nested, || heist::isolate(nested)))
                });
                let both = handles.map(|handle| handle.join().unwrap());
                parts.lock().unwrap().extend(both.into_iter().flat_map(|both| [both.0, both.1]));
            });
            found.extend(parts.into_inner().unwrap());
            found
        });
        let found = all.join().unwrap();
        let other = found.iter().position(|&found| found != priority);
        assert_eq!(other, None, "{priority:?}");
    }
    pool.stop();
    assert_balanced(&pool.stats());
}

fn set_overrides_inherited(kind: Kind) {
    let pool = Arc::new(kind.pool(2));
    for (outer, inner) in [(Priority::High, Priority::Low), (Priority::Low, Priority::Normal)] {
        let inside = Arc::clone(&pool);
        let task = pool
            .task()
            .priority(outer)
            .spawn(move || inside.task().priority(inner).spawn(current_priority).join().unwrap());
        assert_eq!(task.join().unwrap(), inner);
    }
}

/// A worker that has run a task of some priority, or a part of one, has none itself.
fn forgotten_after_the_task(kind: Kind) {
    let pool = kind.pool(2);
    for _ in 0..100 {
        let high = pool.task().priority(Priority::High).spawn(|| {
            heist::scope(|scope| (0..8).for_each(|_| scope.spawn(|_| ())));
        });
        high.join().unwrap();
        assert_eq!(pool.install(current_priority), Priority::Normal);
        assert_eq!(pool.spawn(current_priority).join().unwrap(), Priority::Normal);
        assert_eq!(current_priority(), Priority::Normal);
    }
}

/// With one worker: a task waits for one of low priority while tasks of normal and of high priority are queued.
fn a_task_that_waits_raises_the_awaited_one(kind: Kind) {
    let pool = Arc::new(kind.pool(1));
    for waiting in Priority::ALL {
        let (log, inside) = (Log::default(), Arc::clone(&pool));
        let logged = log.clone();
        let waiter = pool.task().priority(waiting).spawn(move || {
            let awaited = inside.task().priority(Priority::Low).spawn(|| ());
            (0..100).for_each(|number| logged.spawn(&inside, Priority::Normal, number));
            (0..100).for_each(|number| logged.spawn(&inside, Priority::High, number));
            awaited.join().unwrap();
            logged.read().len()
        });
        assert_eq!(waiter.join().unwrap(), 0, "{waiting:?}");
    }
}

/// With one worker: a task of high priority awaits one of low priority, while others of normal priority are queued.
fn an_awaited_task_has_its_share(kind: Kind) {
    let pool = Arc::new(kind.pool(1));
    let (started, inside) = (Arc::new(AtomicUsize::new(0)), Arc::clone(&pool));
    let waiter = pool.task().priority(Priority::High).spawn(move || {
        let counted = Arc::clone(&started);
        let read = move || counted.load(Ordering::SeqCst);
        let awaited = inside.task().priority(Priority::Low).spawn(read);
        for _ in 0..10 * LOW_SHARE {
            let started = Arc::clone(&started);
            inside
                .task()
                .priority(Priority::Normal)
                .spawn(move || started.fetch_add(1, Ordering::SeqCst));
        }
        heist::block_on(awaited).unwrap()
    });
    let seen = waiter.join().unwrap();
    assert!(seen <= LOW_SHARE, "after {seen} of normal priority");
}

/// The only worker runs the parts of a large scope of low priority, which does not wait for them yet.
fn parts_of_low_work_do_not_keep_high_tasks_waiting(kind: Kind) {
    let pool = Arc::new(kind.pool(1));
    let inside = Arc::clone(&pool);
    let seen = pool.task().priority(Priority::Low).spawn(move || {
        let started = Arc::new(AtomicUsize::new(0));
        (0..100).for_each(|_| {
            let started = Arc::clone(&started);
            inside.spawn(move || started.fetch_add(1, Ordering::SeqCst));
        });
        inside.task().priority(Priority::High).spawn(move || started.load(Ordering::SeqCst))
    });
    assert_eq!(seen.join().unwrap().join().unwrap(), 0);
}

/// Returns a pool whose workers are busy, with 30 tasks of each priority in its queues, and what they count.
fn full(kind: Kind) -> (Pool, Gate, Arc<AtomicUsize>) {
    let pool = kind.pool(2);
    let gate = Gate::close(&pool);
    let ran = Arc::new(AtomicUsize::new(0));
    for priority in Priority::ALL.repeat(30) {
        let ran = Arc::clone(&ran);
        pool.task().priority(priority).spawn(move || ran.fetch_add(1, Ordering::SeqCst));
    }
    (pool, gate, ran)
}

fn stop_runs_all(kind: Kind) {
    let (pool, gate, ran) = full(kind);
    gate.open();
    pool.stop();
    assert_eq!(ran.load(Ordering::SeqCst), 90);
    assert_balanced(&pool.stats());
}

fn stop_now_cancels_all(kind: Kind) {
    let (pool, gate, ran) = full(kind);
    let probes = gate.stop_now(&pool);
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    assert_eq!(pool.stats().total.cancellations, 90 + probes);
    assert_balanced(&pool.stats());
}

fn refused_after_a_stop(kind: Kind) {
    let pool = kind.pool(2);
    pool.stop();
    for priority in Priority::ALL {
        let refused = pool.task().priority(priority).spawn(|| ()).join();
        assert!(matches!(refused, Err(heist::JoinError::Stopped)), "{priority:?}: {refused:?}");
    }
}

/// The workers sleep, or are about to, whenever a task comes.
fn an_idle_pool_is_woken(kind: Kind) {
    let pool = kind.pool(2);
    for round in 0..300 {
        let priority = Priority::ALL[round % 3];
        let echo = pool.task().priority(priority).spawn(move || round);
        assert_eq!(echo.join().unwrap(), round);
    }
}

/// A task spawns tasks and then waits for another pool: the thread that takes over its core begins with the task of high
/// priority.
fn high_first_when_a_waiting_task_hands_its_core_on(kind: Kind) {
    let (pool, other) = (Arc::new(kind.pool(1)), kind.pool(1));
    for _ in 0..20 {
        let (open, opened) = mpsc::channel::<()>();
        let held = other.spawn(move || opened.recv().is_err());
        let (log, inside) = (Log::default(), Arc::clone(&pool));
        let logged = log.clone();
        let waiter = pool.spawn(move || {
            (0..5).for_each(|number| logged.spawn(&inside, Priority::Normal, number));
            logged.spawn(&inside, Priority::Low, 0);
            logged.spawn(&inside, Priority::High, 0);
            held.join().unwrap()
        });
        eventually("all have run", || log.read().len() == 7);
        drop(open);
        assert!(waiter.join().unwrap());
        assert_eq!(log.read()[0].0, Priority::High);
        assert_eq!(log.read()[6].0, Priority::Low);
    }
}

fn a_row_of_high_tasks_is_forgotten_when_it_has_ended(kind: Kind) {
    let pool = kind.pool(1);
    let gate = Gate::close(&pool);
    (0..MOST_HIGH).for_each(|_| drop(pool.task().priority(Priority::High).spawn(|| ())));
    gate.open();
    let (log, gate) = (Log::default(), Gate::close(&pool));
    log.spawn(&pool, Priority::Normal, 0);
    log.spawn(&pool, Priority::High, 0);
    gate.open();
    pool.stop();
    assert_eq!(log.places(Priority::High), [0]);
}

/// Tasks that do not run use up nothing of what their priority has.
fn cancelled_tasks_do_not_count(kind: Kind) {
    let pool = kind.pool(1);
    let (log, gate) = (Log::default(), Gate::close(&pool));
    for _ in 0..10 * MOST_HIGH {
        assert!(pool.task().priority(Priority::High).spawn(|| ()).cancel());
    }
    log.spawn(&pool, Priority::Normal, 0);
    log.spawn(&pool, Priority::High, 0);
    gate.open();
    pool.stop();
    assert_eq!(log.places(Priority::High), [0]);
    assert_balanced(&pool.stats());
}
