//! The contract of senders on the pool of their pipeline: while the feed is full, they work for the pipeline.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};

use heist::pipeline::Pipeline;
use heist_testkit::threads::ThreadGroup;

use crate::common::pipeline::ways;
use crate::common::{Kind, WORKERS, for_every_strategy};

for_every_strategy! {
    many_tasks_that_send_need_few_threads,
    stages_that_send,
    a_sender_that_has_worked_for_a_scope_does_not_delay_it,
}

/// A task that finds the feed full works for the pipeline. It does not wait on a thread of its own.
fn many_tasks_that_send_need_few_threads(kind: Kind) {
    const TASKS: usize = 2000;
    let group = ThreadGroup::new();
    let pool = kind.builder_in(&group, 2).build().expect("a pool");
    let (sender, pipeline) = Pipeline::fed(NonZero::new(8).expect("some room"));
    // There is room for all results, so that no task has to wait for the consumer.
    let pipeline = pipeline.in_flight(TASKS).map(|n: usize| n);
    let results = pipeline.results(&pool).expect("a start");
    let mut most = 0;
    for n in 0..TASKS {
        let sender = sender.clone();
        drop(pool.spawn(move || sender.send(n).expect("a run")));
        if n % 20 == 0 {
            most = most.max(group.count());
        }
    }
    drop(sender);
    let mut came = Vec::new();
    for result in results {
        came.push(result.expect("no error"));
        if came.len() % 20 == 0 {
            most = most.max(group.count());
        }
    }
    came.sort_unstable();
    assert!(came.into_iter().eq(0..TASKS));
    assert!(most < 128, "{most} threads for two workers");
    pool.stop();
    group.assert_gone();
}

/// Stages send to their own pipeline, whose feed is full more often than not.
fn stages_that_send(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for (way, capacity) in ways().flat_map(|way| [40, 60].map(|room| (way, room))) {
            let (sender, pipeline) = Pipeline::fed(NonZero::new(capacity).expect("some room"));
            (0..20_usize).for_each(|n| sender.send(n).expect("room"));
            let sender = Mutex::new(Some(sender));
            let left = AtomicUsize::new(40);
            let pipeline = pipeline.batch(2).map(|n| {
                let own = sender.lock().expect("no panic").clone();
                if let (0..20, Some(own)) = (n, own) {
                    own.send(20 + n).expect("a run");
                }
                if left.fetch_sub(1, Ordering::AcqRel) == 1 {
                    drop(sender.lock().expect("no panic").take());
                }
                n
            });
            let mut results = Vec::new();
            way.of(pipeline).run(&pool, |n| results.push(n)).expect("an end");
            results.sort_unstable();
            assert!(results.into_iter().eq(0..40), "{way:?}");
        }
    }
}

/// A task that sends works for a pipeline whose stages spawn parts of a scope. The scope does not wait for that task, which
/// goes on until the scope has returned.
fn a_sender_that_has_worked_for_a_scope_does_not_delay_it(kind: Kind) {
    const ITEMS: usize = 50;
    let pool = kind.pool(2);
    for _ in 0..20 {
        let (returned, has_returned) = mpsc::channel();
        let parts = AtomicUsize::new(0);
        let sends = pool.scope(|scope| {
            let (sender, pipeline) = Pipeline::fed(NonZero::new(1).expect("some room"));
            let sends = pool.spawn(move || {
                (0..ITEMS).for_each(|n| sender.send(n).expect("a run"));
                drop(sender);
                has_returned.recv().expect("the scope returns")
            });
            let spawn = |_: usize| {
                scope.spawn(|_| {
                    parts.fetch_add(1, Ordering::Relaxed);
                });
            };
            pipeline.batch(1).map(spawn).run(&pool, |()| ()).expect("a run");
            sends
        });
        assert_eq!(parts.into_inner(), ITEMS);
        returned.send(()).expect("the task waits");
        sends.join().expect("the task ends");
    }
    pool.stop();
}
