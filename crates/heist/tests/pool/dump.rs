//! The contract of `Pool::dump`: it says what the pool does, at any time and on any thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use heist::Pool;

use crate::common::{Gate, Kind, WORKERS, eventually, for_every_strategy, held_task};

for_every_strategy! {
    of_a_busy_pool,
    of_a_stopped_pool,
    of_a_thread_without_a_core,
    with_events,
    without_events,
    meanwhile,
}

/// Returns a text in which no lock was in the way.
fn dump(pool: &Pool) -> String {
    let mut text = String::new();
    eventually("no thread is in the way", || {
        text = pool.dump().to_string();
        !text.contains("locked")
    });
    text
}

fn of_a_busy_pool(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let gate = Gate::close(&pool);
        for _ in 0..10 {
            pool.spawn(|| ());
        }
        let text = dump(&pool);
        assert!(text.starts_with(&format!("pool of {workers} workers, running")), "{text}");
        let submitted = gate.tasks() + 10;
        let tasks = format!("tasks: {submitted} submitted, {submitted} of them not ended\n");
        assert!(text.contains(&tasks), "{text}");
        assert!(text.contains("cluster 0: 0 workers asleep (list: 0), 0 searching"), "{text}");
        assert!(text.contains("injector 0: 10 tasks\n"), "{text}");
        for worker in 0..workers {
            assert!(text.contains(&format!(": worker {worker};")), "{text}");
        }
        assert_eq!(format!("{:?}", pool.dump()).lines().count(), text.lines().count());
    }
}

fn of_a_stopped_pool(kind: Kind) {
    let pool = kind.pool(2);
    pool.spawn(|| ()).join().expect("a result");
    pool.stop();
    let text = dump(&pool);
    assert!(text.starts_with("pool of 2 workers, ended: 0 threads"), "{text}");
    assert!(text.contains("tasks: 1 submitted, 0 of them not ended\n"), "{text}");
    assert_eq!(text.matches(": has ended;").count(), 2, "{text}");
}

/// A task goes on after a wait, and another one has the only core.
fn of_a_thread_without_a_core(kind: Kind) {
    let (pool, other) = (Arc::new(kind.pool(1)), kind.pool(1));
    let (held, awaited) = held_task(&other);
    let (let_go, held_up) = mpsc::channel::<()>();
    let here = Arc::clone(&pool);
    let task = pool.spawn(move || {
        heist::spawn(move || {
            drop(held);
            // It has the core until the other task has looked.
            let _ = held_up.recv();
        });
        awaited.join().expect("a result");
        let text = dump(&here);
        drop(let_go);
        text
    });
    let text = task.join().expect("a result");
    assert!(text.contains(": goes on without a core;"), "{text}");
    assert!(text.contains(": worker 0;"), "{text}");
    assert!(text.contains("1 threads beyond the workers, 0 stand by, 1 want a core"), "{text}");
}

fn planned_task() {}

/// Returns the lines about the events of each thread, in the order of their places.
fn event_lines(text: &str) -> Vec<Vec<&str>> {
    let mut threads: Vec<Vec<&str>> = Vec::new();
    for line in text.lines() {
        if line.starts_with("thread ") {
            threads.push(Vec::new());
        } else if let Some(event) = line.strip_prefix("    ") {
            threads.last_mut().expect("events follow their thread").push(event);
        }
    }
    threads
}

/// A pool that keeps a trace shows the last events of each thread, the oldest first.
fn with_events(kind: Kind) {
    let pool = kind.builder(1).trace(1_000).build().expect("a pool");
    (0..10).for_each(|_| pool.spawn(planned_task).join().expect("a result"));
    let (held, task) = held_task(&pool);
    // The last event of a busy worker is the beginning of its task.
    let mut text = String::new();
    eventually("the task is shown", || {
        text = dump(&pool);
        let threads = event_lines(&text);
        threads[0]
            .last()
            .is_some_and(|last| last.contains("ago: began the task ") && last.contains("held_task"))
    });
    assert!(!text.contains("HEIST_TRACE"), "{text}");
    let threads = event_lines(&text);
    assert_eq!((threads.len(), threads[0].len()), (1, 5), "{text}");
    drop(held);
    task.join().expect("a result");
    pool.stop();
    // A thread that has ended is shown as well.
    let text = dump(&pool);
    let threads = event_lines(&text);
    let is_end = |line: &str| line.ends_with(" ago: ceased to be a worker");
    assert!(threads[0].iter().any(|line| is_end(line)), "{text}");
}

/// A pool without a trace says how to get events.
fn without_events(kind: Kind) {
    let pool = kind.builder(2).trace(0).build().expect("a pool");
    let text = dump(&pool);
    assert_eq!(
        text.lines().filter(|line| line.starts_with("events: not kept; `Builder::trace`")).count(),
        1,
        "{text}"
    );
    assert!(event_lines(&text).iter().all(Vec::is_empty), "{text}");
}

/// Threads of the pool and others look while tasks run and wait.
fn meanwhile(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let over = AtomicBool::new(false);
        thread::scope(|threads| {
            threads.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    assert!(pool.dump().to_string().starts_with("pool of "));
                }
            });
            pool.scope(|scope| {
                for n in 0..500 {
                    let pool = &pool;
                    scope.spawn(move |_| {
                        assert_eq!(heist::spawn(move || n).join().expect("a result"), n);
                        if n % 50 == 0 {
                            assert!(pool.dump().to_string().contains("running"));
                        }
                    });
                }
            });
            over.store(true, Ordering::Relaxed);
        });
    }
}
