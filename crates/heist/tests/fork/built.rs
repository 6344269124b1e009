//! Parts of scopes that a builder spawns: tokens, priorities and names.

use std::sync::atomic::{AtomicUsize, Ordering};

use heist::{CancelToken, JoinError, Priority, current_priority, is_cancelled};

use crate::common::{Kind, assert_balanced, for_every_strategy};

for_every_strategy! {
    results,
    cancelled_before_the_start,
    cancelled_while_it_runs,
    cancelled_around_the_scope,
    within_a_run_that_ends_early,
    the_priority_is_inherited,
    panics,
    parts_within_parts,
    names,
}

fn results(kind: Kind) {
    let pool = kind.pool(2);
    let token = CancelToken::new();
    let text = &String::from("borrowed");
    for _ in 0..50 {
        let sum: usize = pool.scope(|scope| {
            let parts: Vec<_> = (0..10)
                .map(|n| scope.task().cancel_on(&token).spawn_in(scope, move |_| n + text.len()))
                .collect();
            parts.into_iter().map(|part| part.join().unwrap()).sum()
        });
        assert_eq!(sum, 45 + 80);
    }
    pool.stop();
    assert_balanced(&pool.stats());
}

fn cancelled_before_the_start(kind: Kind) {
    let pool = kind.pool(2);
    let token = CancelToken::new();
    let other = AtomicUsize::new(0);
    token.cancel();
    pool.scope(|scope| {
        let part = scope.task().cancel_on(&token.child()).spawn_in(scope, |_| unreachable!());
        // Nobody joins this one.
        let _ = scope.task().cancel_on(&token).spawn_in(scope, |_| unreachable!());
        scope.spawn(|_| _ = other.fetch_add(1, Ordering::Relaxed));
        let joined: Result<(), _> = part.join();
        assert!(matches!(joined, Err(JoinError::Cancelled)));
    });
    assert_eq!(other.into_inner(), 1);
    pool.stop();
    assert_balanced(&pool.stats());
    assert_eq!(pool.stats().total.cancellations, 2);
}

fn cancelled_while_it_runs(kind: Kind) {
    let pool = kind.pool(2);
    let token = CancelToken::new();
    let seen = pool.scope(|scope| {
        let part = scope.task().cancel_on(&token).spawn_in(scope, |_| {
            assert!(!is_cancelled());
            token.cancel();
            heist::join(is_cancelled, || heist::isolate(is_cancelled))
        });
        (part.join().unwrap(), is_cancelled())
    });
    assert_eq!(seen, ((true, true), false), "the code around it is not cancelled");
}

fn cancelled_around_the_scope(kind: Kind) {
    let pool = kind.pool(2);
    let (outer, inner) = (CancelToken::new(), CancelToken::new());
    let canceller = outer.clone();
    let here = pool.handle();
    let task = pool.task().cancel_on(&outer).spawn(move || {
        let pool = here;
        pool.install(|| {
            heist::scope(|scope| {
                let part = scope.task().cancel_on(&inner).spawn_in(scope, |_| {
                    canceller.cancel();
                    is_cancelled()
                });
                part.join().unwrap()
            })
        })
    });
    assert!(task.join().unwrap());
}

fn within_a_run_that_ends_early(kind: Kind) {
    let pool = kind.pool(2);
    let (outer, inner) = (CancelToken::new(), CancelToken::new());
    let ended = pool.install(|| {
        outer.run(|| {
            heist::scope(|scope| {
                let part = scope.task().cancel_on(&inner).spawn_in(scope, |_| {
                    outer.cancel();
                    heist::stop_point();
                    unreachable!("the run around it ends early");
                });
                let _: Result<(), _> = part.join();
            });
        })
    });
    assert!(ended.is_err());
    pool.stop();
    assert_balanced(&pool.stats());
}

fn the_priority_is_inherited(kind: Kind) {
    let pool = kind.pool(2);
    let seen = pool.scope(|scope| {
        let low = scope.task().priority(Priority::Low).spawn_in(scope, |scope| {
            let task = heist::spawn(current_priority).join().unwrap();
            let nested = scope.task().spawn_in(scope, |_| current_priority()).join().unwrap();
            [task, nested, current_priority()]
        });
        (low.join().unwrap(), current_priority())
    });
    assert_eq!(seen, ([Priority::Low; 3], Priority::Normal));
}

fn panics(kind: Kind) {
    let pool = kind.pool(2);
    let token = CancelToken::new();
    let message = pool.scope(|scope| {
        let part = scope.task().cancel_on(&token).spawn_in(scope, |_| panic!("handled"));
        let joined: Result<(), _> = part.join();
        let Err(JoinError::Panicked(panic)) = joined else { unreachable!() };
        panic.message().to_owned()
    });
    assert_eq!(message, "handled");
}

/// Parts spawn parts, with and without handles, from whatever thread they run on.
fn parts_within_parts(kind: Kind) {
    let pool = kind.pool(3);
    let token = CancelToken::new();
    let count = AtomicUsize::new(0);
    for _ in 0..20 {
        pool.scope(|scope| {
            for _ in 0..8 {
                let _ = scope.task().cancel_on(&token).spawn_in(scope, |scope| {
                    for _ in 0..4 {
                        scope.spawn(|_| _ = count.fetch_add(1, Ordering::Relaxed));
                    }
                    let inner =
                        scope.task().spawn_in(scope, |_| count.fetch_add(1, Ordering::Relaxed));
                    heist::join(|| inner.join().unwrap(), || count.fetch_add(1, Ordering::Relaxed))
                });
            }
        });
    }
    assert_eq!(count.into_inner(), 20 * 8 * 6);
    pool.stop();
    assert_balanced(&pool.stats());
}

fn names(kind: Kind) {
    let pool = kind.builder(1).trace(1_000).build().unwrap();
    pool.scope(|scope| scope.task().name("part").spawn_in(scope, |_| ()).join().unwrap());
    pool.stop();
    let trace = pool.trace_snapshot().unwrap();
    let mut names = trace.threads[0].events.iter().filter_map(|event| event.name);
    assert!(names.any(|name| name == "part"));
}
