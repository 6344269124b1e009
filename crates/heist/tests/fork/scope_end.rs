//! A scope returns as soon as its closure and its parts have ended, whatever the threads that have run them do next. In each
//! test a thread that has run a part, or has spawned one, is blocked afterwards until the scope has returned.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::common::{Kind, for_every_strategy, held_task};

for_every_strategy! {
    a_task_follows,
    a_spawned_task_follows,
    a_part_of_another_scope_follows,
    the_thread_goes_on_after_a_wait,
    the_wait_is_over_at_once,
    the_thread_goes_on_after_a_sleep,
    the_core_is_given_back,
    the_core_is_gone,
    a_part_of_the_scope_around_follows,
    a_part_that_waits_follows,
    spawned_on_another_pool,
    spawned_on_threads_of_no_pool,
}

/// Something that happens once: the sender is dropped.
#[derive(Clone)]
struct Event {
    sender: Arc<Mutex<Option<Sender<()>>>>,
    receiver: Arc<Mutex<Receiver<()>>>,
}

impl Event {
    fn new() -> Self {
        let (sender, receiver) = mpsc::channel();
        let sender = Arc::new(Mutex::new(Some(sender)));
        Self { sender, receiver: Arc::new(Mutex::new(receiver)) }
    }

    fn happen(&self) {
        drop(self.sender.lock().expect("no panic").take());
    }

    fn wait(&self) {
        let _ = self.receiver.lock().expect("no panic").recv();
    }
}

fn events<const COUNT: usize>() -> [Event; COUNT] {
    [(); COUNT].map(|()| Event::new())
}

/// After a part, a worker runs a task from outside.
fn a_task_follows(kind: Kind) {
    let pool = kind.pool(2);
    let [over, part, queued] = &events();
    let is_over = over.clone();
    thread::scope(|threads| {
        threads.spawn(|| {
            part.wait();
            pool.spawn(move || is_over.wait());
            queued.happen();
        });
        pool.scope(|scope| {
            scope.spawn(|_| {
                part.happen();
                queued.wait();
            });
            // So the other worker runs the part, and then the task.
            part.wait();
        });
        over.happen();
    });
}

/// After a part, a worker runs a task that the part has spawned.
fn a_spawned_task_follows(kind: Kind) {
    let pool = kind.pool(2);
    let [over, part] = &events();
    pool.scope(|scope| {
        scope.spawn(|scope| {
            let is_over = over.clone();
            drop(heist::spawn(move || is_over.wait()));
            scope.spawn(|_| ());
            part.happen();
        });
        part.wait();
    });
    over.happen();
}

/// After a part, a worker runs a part of another scope, here of the one around it.
fn a_part_of_another_scope_follows(kind: Kind) {
    let pool = kind.pool(2);
    let [over, part] = &events();
    pool.scope(|outer| {
        // So the wait for the inner scope runs no part of the outer one.
        heist::isolate(|| {
            heist::scope(|inner| {
                inner.spawn(move |inner| {
                    inner.spawn(|_| ());
                    outer.spawn(|_| over.wait());
                    part.happen();
                });
                part.wait();
            });
        });
        over.happen();
    });
}

/// A thread that waits for one scope runs a part of another one on top of that, and then goes on. It waits at the two
/// places: before the part is spawned, and within the part.
fn goes_on_after_a_wait(kind: Kind, before: Duration, within: Duration) {
    let pool = kind.pool(3);
    let [over, one, another, part] = &events();
    pool.scope(|around| {
        // As a rule it runs here, after which this thread has no credit of a scope.
        heist::spawn(|| ()).join().expect("no panic");
        heist::scope(|awaited| {
            // A second worker is blocked until the part below runs,
            awaited.spawn(|_| {
                one.happen();
                part.wait();
            });
            one.wait();
            // and a third one as well. So this thread runs that part, while it waits for the second worker.
            around.spawn(move |_| {
                another.happen();
                thread::sleep(before);
                heist::scope(|scope| {
                    scope.spawn(move |_| {
                        part.happen();
                        thread::sleep(within);
                    });
                    part.wait();
                });
                over.happen();
            });
            another.wait();
        });
        over.wait();
    });
}

/// Time enough, as a rule, for another thread to fall asleep or to end what it does. The tests hold without it as well.
const MOMENT: Duration = Duration::from_millis(20);

fn the_thread_goes_on_after_a_wait(kind: Kind) {
    goes_on_after_a_wait(kind, Duration::ZERO, Duration::ZERO);
}

/// What the thread waits for has ended when the part ends.
fn the_wait_is_over_at_once(kind: Kind) {
    goes_on_after_a_wait(kind, Duration::ZERO, MOMENT);
}

/// The thread sleeps when the part is spawned.
fn the_thread_goes_on_after_a_sleep(kind: Kind) {
    goes_on_after_a_wait(kind, MOMENT, Duration::ZERO);
}

/// A worker that has run a part gives its core to the thread of the scope, which has waited meanwhile, and stands by.
fn the_core_is_given_back(kind: Kind) {
    let (pool, other) = (kind.pool(1), kind.pool(1));
    let [resumed] = &events();
    let (held, task) = held_task(&other);
    pool.scope(|scope| {
        scope.spawn(move |_| {
            drop(held);
            resumed.wait();
        });
        // The part runs on another thread meanwhile, with the only core.
        task.join().expect("no panic");
        resumed.happen();
    });
}

/// A worker waits within a part, loses its core, and ends the part without it.
fn the_core_is_gone(kind: Kind) {
    let (pool, other) = (kind.pool(2), kind.pool(1));
    let [over, part] = &events();
    let (held, task) = held_task(&other);
    let is_over = over.clone();
    thread::scope(|threads| {
        threads.spawn(|| {
            part.wait();
            // The thread that runs the part hands its core over for this.
            pool.spawn(move || {
                drop(held);
                is_over.wait();
            });
        });
        pool.scope(|scope| {
            scope.spawn(move |_| {
                part.happen();
                task.join().expect("no panic");
            });
            part.wait();
        });
        over.happen();
    });
}

/// A part opens a scope, a part of which ends on another worker. That worker goes on with a part of the scope around.
fn a_part_of_the_scope_around_follows(kind: Kind) {
    let pool = kind.pool(3);
    let [over, part, last] = &events();
    pool.scope(|outer| {
        outer.spawn(|outer| {
            // The thread has credit of the outer scope when it opens the inner one, and goes on with it afterwards.
            outer.spawn(|_| ());
            heist::isolate(|| {
                heist::scope(|inner| {
                    inner.spawn(move |inner| {
                        inner.spawn(|_| ());
                        outer.spawn(|_| over.wait());
                        part.happen();
                    });
                    part.wait();
                });
            });
            over.happen();
            (0..100).for_each(|_| outer.spawn(|_| ()));
            last.happen();
        });
        last.wait();
    });
}

/// After a part, a worker runs a part of the scope around, which waits for a task. That ends when the scope has returned.
fn a_part_that_waits_follows(kind: Kind) {
    let (pool, other) = (kind.pool(2), kind.pool(1));
    let [part] = &events();
    let (held, task) = held_task(&other);
    pool.scope(|outer| {
        heist::isolate(|| {
            heist::scope(|inner| {
                inner.spawn(move |inner| {
                    inner.spawn(|_| ());
                    outer.spawn(move |_| task.join().expect("no panic"));
                    part.happen();
                });
                part.wait();
            });
        });
        drop(held);
    });
}

/// A worker of another pool has spawned parts, and goes on with a task of its own pool.
fn spawned_on_another_pool(kind: Kind) {
    let (pool, other) = (kind.pool(2), kind.pool(1));
    let [over] = &events();
    pool.scope(|scope| {
        other.install(|| {
            (0..10).for_each(|_| scope.spawn(|_| ()));
            let is_over = over.clone();
            drop(heist::spawn(move || is_over.wait()));
        });
    });
    over.happen();
}

/// Threads of no pool have spawned parts, and end before the parts do.
fn spawned_on_threads_of_no_pool(kind: Kind) {
    let pool = kind.pool(2);
    let [ended] = &events();
    pool.scope(|scope| {
        thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    scope.spawn(|scope| {
                        ended.wait();
                        scope.spawn(|_| ());
                    })
                });
            }
        });
        ended.happen();
    });
}
