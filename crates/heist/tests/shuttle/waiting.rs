//! Waits inside tasks that hand off their cores, and what the tasks do afterwards. No wait may be for ever that
//! would end if each task had a thread of its own.

use std::sync::Arc;

use heist::{Pool, Strategy};
use shuttle::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use shuttle::sync::{Condvar, Mutex, mpsc};
use shuttle::thread;

use crate::scenarios::{exact, pool, scenarios};

scenarios! {
    scope_under_a_lock_that_all_want
    batch_under_a_lock_that_all_want
    join_under_a_lock_that_all_want
    scope_that_queued_tasks_wait_for
    batch_that_queued_tasks_wait_for
    second_half_for_a_worker_that_becomes_free
    outer_half_for_a_worker_that_becomes_free
    second_half_of_a_thread_without_a_core
    installs_on_a_busy_pool
    joins_without_a_core
    parts_left_behind_by_a_wait
    recursive_batches
    closures_of_a_batch_that_wait_for_each_other
    closures_of_a_batch_on_all_workers
    spawned_task_that_two_wait_for
    part_that_two_wait_for
    part_that_a_raided_part_waits_for
}

fn scope_of_two(_: &Pool) -> usize {
    let count = AtomicUsize::new(0);
    heist::scope(|scope| {
        (0..2).for_each(|_| scope.spawn(|_| _ = count.fetch_add(1, SeqCst)));
    });
    count.load(SeqCst)
}

fn batch_of_two(pool: &Pool) -> usize {
    pool.spawn_batch([|| 1, || 1]).join().unwrap().into_iter().sum()
}

fn join_of_two(_: &Pool) -> usize {
    let (one, another) = heist::join(|| 1, || 1);
    one + another
}

/// A task holds a lock, waits for a running task and then forks. Two other tasks want the lock, and the awaited
/// task ends only after one of them has started.
fn all_want_the_lock(strategy: Strategy, fork: fn(&Pool) -> usize) {
    let pool = pool(strategy, 2);
    let lock = Arc::new(Mutex::new(()));
    let (go, gone) = mpsc::channel();
    let slow = pool.spawn(move || gone.recv().unwrap());
    let (here, held) = (Arc::clone(&pool), Arc::clone(&lock));
    let holder = pool.spawn(move || {
        heist::isolate(|| {
            let _guard = held.lock().unwrap();
            slow.join().unwrap();
            fork(&here)
        })
    });
    let others = [(); 2].map(|()| {
        let (go, lock) = (go.clone(), Arc::clone(&lock));
        pool.spawn(move || {
            // Fails if the other task was first.
            let _ = go.send(());
            drop(lock.lock().unwrap());
        })
    });
    assert_eq!(holder.join().unwrap(), 2);
    others.into_iter().for_each(|other| other.join().unwrap());
    pool.stop();
    exact(&pool);
}

fn scope_under_a_lock_that_all_want(strategy: Strategy) {
    all_want_the_lock(strategy, scope_of_two);
}

fn batch_under_a_lock_that_all_want(strategy: Strategy) {
    all_want_the_lock(strategy, batch_of_two);
}

fn join_under_a_lock_that_all_want(strategy: Strategy) {
    all_want_the_lock(strategy, join_of_two);
}

/// Something that threads wait for, which happens once.
#[derive(Clone)]
struct Event(Arc<(Mutex<bool>, Condvar)>);

impl Event {
    fn new() -> Self {
        Self(Arc::new((Mutex::new(false), Condvar::new())))
    }

    fn happen(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    fn wait(&self) {
        let mut happened = self.0.0.lock().unwrap();
        while !*happened {
            happened = self.0.1.wait(happened).unwrap();
        }
    }
}

/// A task waits and then forks. Queued tasks that start meanwhile end only after the fork has. So the fork must
/// not need any of the workers.
fn queued_tasks_wait(strategy: Strategy, workers: usize, fork: fn(&Pool) -> usize) {
    let (here, there) = (pool(strategy, workers), pool(strategy, 1));
    let (started, ended) = (Event::new(), Event::new());
    let event = started.clone();
    let slow = there.spawn(move || event.wait());
    let (pool, event, running) = (Arc::clone(&here), ended.clone(), Event::new());
    let run = running.clone();
    let first = here.spawn(move || {
        run.happen();
        slow.join().unwrap();
        let count = fork(&pool);
        event.happen();
        count
    });
    running.wait();
    let queued: Vec<_> = (0..=workers)
        .map(|_| {
            let (started, ended) = (started.clone(), ended.clone());
            here.spawn(move || {
                started.happen();
                ended.wait();
            })
        })
        .collect();
    assert_eq!(first.join().unwrap(), 2);
    queued.into_iter().for_each(|task| task.join().unwrap());
    here.stop();
    there.stop();
    exact(&here);
}

fn scope_that_queued_tasks_wait_for(strategy: Strategy) {
    queued_tasks_wait(strategy, 1, scope_of_two);
}

fn batch_that_queued_tasks_wait_for(strategy: Strategy) {
    queued_tasks_wait(strategy, 1, batch_of_two);
}

/// Forks, and returns when another thread has taken the second half. It does not call into the pool meanwhile.
fn meet(forked: &mpsc::Sender<()>) {
    let met = Event::new();
    let wait = || {
        forked.send(()).unwrap();
        met.wait();
    };
    heist::join(wait, || met.happen());
}

/// Like `meet`, with a fork inside the first half.
fn meet_outer(forked: &mpsc::Sender<()>) {
    let met = Event::new();
    let wait = || {
        forked.send(()).unwrap();
        met.wait();
    };
    heist::join(|| heist::join(wait, || ()), || met.happen());
}

/// All workers are busy when one of them forks. The other becomes free later.
fn becomes_free(strategy: Strategy, fork: fn(&mpsc::Sender<()>)) {
    let pool = pool(strategy, 2);
    let (end, ended) = mpsc::channel();
    let other = pool.spawn(move || ended.recv().unwrap());
    let (forked, has_forked) = mpsc::channel();
    let first = pool.spawn(move || {
        // Earlier requests for a half are used up.
        (0..2).for_each(|_| _ = heist::join(|| (), || ()));
        fork(&forked);
    });
    has_forked.recv().unwrap();
    end.send(()).unwrap();
    first.join().unwrap();
    other.join().unwrap();
    pool.stop();
    exact(&pool);
}

fn second_half_for_a_worker_that_becomes_free(strategy: Strategy) {
    becomes_free(strategy, meet);
}

fn outer_half_for_a_worker_that_becomes_free(strategy: Strategy) {
    becomes_free(strategy, meet_outer);
}

/// The thread that forks has waited before.
fn second_half_of_a_thread_without_a_core(strategy: Strategy) {
    let (here, there) = (pool(strategy, 2), pool(strategy, 1));
    let started = Event::new();
    let event = started.clone();
    let slow = there.spawn(move || event.wait());
    let (forked, has_forked) = mpsc::channel();
    let running = Event::new();
    let run = running.clone();
    let first = here.spawn(move || {
        run.happen();
        slow.join().unwrap();
        (0..2).for_each(|_| _ = heist::join(|| (), || ()));
        meet(&forked);
    });
    running.wait();
    let busy = [(); 2].map(|()| {
        let (end, ended) = mpsc::channel();
        let started = started.clone();
        let task = here.spawn(move || {
            started.happen();
            ended.recv().unwrap();
        });
        (end, task)
    });
    has_forked.recv().unwrap();
    let others = busy.map(|(end, task)| (end.send(()).unwrap(), task).1);
    first.join().unwrap();
    others.into_iter().for_each(|other| other.join().unwrap());
    here.stop();
    there.stop();
    exact(&here);
}

/// Each task waits for the only worker of another pool.
fn installs_on_a_busy_pool(strategy: Strategy) {
    let (outer, inner) = (pool(strategy, 2), pool(strategy, 1));
    let tasks = [0, 1, 2, 3].map(|n| {
        let inner = Arc::clone(&inner);
        outer.spawn(move || inner.install(|| (thread::yield_now(), n).1))
    });
    for (n, task) in tasks.into_iter().enumerate() {
        assert_eq!(task.join().unwrap(), n);
    }
    outer.stop();
    inner.stop();
    exact(&outer);
    exact(&inner);
}

/// A task whose core another task uses spawns tasks and joins each.
fn joins_without_a_core(strategy: Strategy) {
    let (here, there) = (pool(strategy, 1), pool(strategy, 1));
    let started = Event::new();
    let event = started.clone();
    let slow = there.spawn(move || event.wait());
    let (end, ended) = mpsc::channel();
    let running = Event::new();
    let run = running.clone();
    let first = here.spawn(move || {
        run.happen();
        slow.join().unwrap();
        let sum = (0..3).map(|n| heist::spawn(move || n).join().unwrap()).sum::<usize>();
        end.send(()).unwrap();
        sum
    });
    running.wait();
    let busy = here.spawn(move || {
        started.happen();
        ended.recv().unwrap();
    });
    assert_eq!(first.join().unwrap(), 3);
    busy.join().unwrap();
    here.stop();
    there.stop();
    exact(&here);
}

/// A task waits inside a scope for something that ends only after the parts of that scope have started.
fn parts_left_behind_by_a_wait(strategy: Strategy) {
    let (here, there) = (pool(strategy, 1), pool(strategy, 1));
    let (start, started) = mpsc::channel();
    let slow = there.spawn(move || started.into_iter().count());
    let first = here.spawn(move || {
        heist::spawn(|| ());
        heist::scope(|scope| {
            for _ in 0..2 {
                let start = start.clone();
                scope.spawn(move |_| start.send(()).unwrap());
            }
            drop(start);
            slow.join().unwrap()
        })
    });
    assert_eq!(first.join().unwrap(), 2);
    here.stop();
    there.stop();
    exact(&here);
}

/// Each task waits for a batch.
fn recursive_batches(strategy: Strategy) {
    fn grow(pool: &Arc<Pool>, depth: u32) -> usize {
        if depth == 0 {
            return 1;
        }
        let halves = [(); 2].map(|()| {
            let pool = Arc::clone(pool);
            move || grow(&pool, depth - 1)
        });
        pool.spawn_batch(halves).join().unwrap().into_iter().sum()
    }
    let pool = pool(strategy, 2);
    let here = Arc::clone(&pool);
    assert_eq!(pool.spawn(move || grow(&here, 2)).join().unwrap(), 4);
    pool.stop();
    exact(&pool);
}

/// A thread yields to the pool in a loop until the second half of another thread's join has started, for which
/// the first half waits.
#[test]
fn yields_beside_a_join() {
    use heist::engine::{Engine, Latch};
    fn join(a: impl FnOnce() + Send, b: impl FnOnce() + Send) {
        heist::engine::join(|_| a(), |_| b(), || unreachable!("on a thread of an engine"));
    }
    heist_testkit::schedules::check(1_000, || {
        let (engine, workers) = Engine::new(2, false);
        let serve = |worker: heist::engine::Worker| thread::spawn(|| worker.run(|| (), || ()));
        let workers: Vec<_> = workers.into_iter().map(serve).collect();
        let (met, happened) = (Event::new(), AtomicBool::new(false));
        let yields = Event::new();
        let latch = Latch::new();
        {
            let (engine, latch, yields) = (&engine, &latch, &yields);
            let (met, happened) = (&met, &happened);
            let each = (0..2).map(|index| {
                latch.one_more();
                move || {
                    if index == 0 {
                        yields.wait();
                        // Earlier requests for a half are used up.
                        (0..2).for_each(|_| join(|| (), || ()));
                        join(|| met.wait(), || (happened.store(true, SeqCst), met.happen()).1);
                    } else {
                        yields.happen();
                        while !happened.load(SeqCst) {
                            engine.yield_now();
                            thread::yield_now();
                        }
                    }
                    // SAFETY: counted above.
                    unsafe { Latch::done(latch) };
                }
            });
            // SAFETY: waited for.
            unsafe { engine.broadcast(each) };
            latch.wait();
        }
        engine.close();
        workers.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// A task waits for a batch and runs the first closure, which is blocked until the last one runs on the other worker.
fn closures_of_a_batch_that_wait_for_each_other(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let (send, receive) = mpsc::channel();
    let receive = Mutex::new(receive);
    let inner = Arc::clone(&pool);
    let outer = pool.spawn(move || {
        let (send, receive) = (Arc::new(send), Arc::new(receive));
        let closures = (0..3).map(|n| {
            let (send, receive) = (Arc::clone(&send), Arc::clone(&receive));
            move || match n {
                0 => receive.lock().unwrap().recv().unwrap(),
                2 => send.send(()).unwrap(),
                _ => {}
            }
        });
        inner.spawn_batch(closures).join().unwrap().len()
    });
    assert_eq!(outer.join().unwrap(), 3);
    pool.stop();
    exact(&pool);
}

/// Each closure of a batch waits until all of them have started, so that every worker must take one.
fn closures_of_a_batch_on_all_workers(strategy: Strategy) {
    const WORKERS: usize = 3;
    let pool = pool(strategy, WORKERS);
    let inner = Arc::clone(&pool);
    let outer = pool.spawn(move || {
        let all = Arc::new((Mutex::new(0), Condvar::new()));
        let closures = (0..WORKERS).map(|_| {
            let all = Arc::clone(&all);
            move || {
                let (started, changed) = &*all;
                let mut started = started.lock().unwrap();
                *started += 1;
                changed.notify_all();
                while *started < WORKERS {
                    started = changed.wait(started).unwrap();
                }
            }
        });
        inner.spawn_batch(closures).join().unwrap().len()
    });
    assert_eq!(outer.join().unwrap(), WORKERS);
    pool.stop();
    exact(&pool);
}

/// A task spawns two others, and it and the first of them wait for the second one by means of their own. The third worker may
/// have slept before. Another round of that comes first, so that what the workers want has changed by then.
fn spawned_task_that_two_wait_for(strategy: Strategy) {
    let pool = pool(strategy, 3);
    let here = Arc::clone(&pool);
    let task = pool.spawn(move || {
        for _ in 0..2 {
            let done = Event::new();
            let (waits, happens) = (done.clone(), done.clone());
            here.spawn(move || waits.wait());
            here.spawn(move || happens.happen());
            done.wait();
        }
    });
    task.join().unwrap();
    pool.stop();
    exact(&pool);
}

/// The same with the parts of a scope.
fn part_that_two_wait_for(strategy: Strategy) {
    let pool = pool(strategy, 3);
    let task = pool.spawn(|| {
        for _ in 0..2 {
            let done = Event::new();
            heist::scope(|scope| {
                scope.spawn(|_| done.wait());
                scope.spawn(|_| done.happen());
                done.wait();
            });
        }
    });
    task.join().unwrap();
    pool.stop();
    exact(&pool);
}

/// One part of a scope waits for another one, by means of its own. A third task keeps the core of the thread that waits for
/// the scope until the scope has ended.
fn part_that_a_raided_part_waits_for(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let ended = Event::new();
    let end = ended.clone();
    let task = pool.spawn(move || {
        let second = Event::new();
        heist::scope(|scope| {
            scope.spawn(|_| second.wait());
            scope.spawn(|_| second.happen());
            scope.spawn(|_| ());
        });
        end.happen();
    });
    let keeper = pool.spawn(move || ended.wait());
    task.join().unwrap();
    keeper.join().unwrap();
    pool.stop();
    exact(&pool);
}
