//! Forks and handles together: waiting adds no deadlock beyond those of one thread per task.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use crate::common::{Kind, for_every_strategy};

for_every_strategy! {
    handle_beneath_a_join,
    handle_beneath_a_scope,
    handle_beneath_an_isolated_join,
    scope_around_a_wait,
}

/// A task waits inside a scope for another task, which its thread runs on the spot. Afterwards it
/// continues as the same task: the parts of its scope are its own and need no other thread.
fn scope_around_a_wait(kind: Kind) {
    let pool = kind.pool(1);
    let here = pool.install(|| {
        let me = thread::current().id();
        let all_here = AtomicBool::new(true);
        for _ in 0..100 {
            heist::scope(|scope| {
                scope.spawn(|_| {
                    all_here.fetch_and(thread::current().id() == me, Ordering::Relaxed);
                });
                heist::spawn(|| ()).join().expect("a result");
            });
        }
        all_here.into_inner()
    });
    assert!(here, "another thread had to be started");
}

/// A task waits for a part of its fork, which runs on another thread. The only job that is left waits
/// for that very task. Any thread but that of the task may run the job.
fn beneath(kind: Kind, fork: fn(mpsc::Receiver<()>, mpsc::Sender<()>, mpsc::Receiver<()>)) {
    let pool = kind.pool(3);
    let (start, started) = mpsc::channel();
    let (let_go, held) = mpsc::channel();
    let (arrive, arrived) = mpsc::channel();
    let (run, runs) = mpsc::channel();
    let task = pool.spawn(move || {
        // The part is running on another thread, and this thread is about to wait.
        fork(started, start, held);
        7
    });
    let waiter = pool.spawn(move || {
        let wait = move || {
            run.send(()).expect("a fork that listens");
            arrive.send(()).expect("a test that listens");
            task.join().expect("a result")
        };
        // This returns when the other half runs on another thread: on that of the task, if it is allowed
        // to.
        heist::join(move || runs.recv().expect("a start"), wait).1
    });
    arrived.recv().expect("a job that is run");
    let_go.send(()).expect("a part that waits");
    assert_eq!(waiter.join().expect("a result"), 7);
}

fn handle_beneath_a_join(kind: Kind) {
    beneath(kind, |started, start, held| {
        heist::join(
            move || started.recv().expect("a start"),
            move || {
                start.send(()).expect("a fork that listens");
                held.recv().expect("an end");
            },
        );
    });
}

fn handle_beneath_a_scope(kind: Kind) {
    beneath(kind, |started, start, held| {
        heist::scope(move |scope| {
            scope.spawn(move |_| {
                start.send(()).expect("a fork that listens");
                held.recv().expect("an end");
            });
            started.recv().expect("a start");
        });
    });
}

/// With `isolate`, the wait of the task runs nothing else.
fn handle_beneath_an_isolated_join(kind: Kind) {
    beneath(kind, |started, start, held| {
        let second = move || {
            start.send(()).expect("a fork that listens");
            held.recv().expect("an end");
        };
        heist::isolate(|| heist::join(move || started.recv().expect("a start"), second));
    });
}
