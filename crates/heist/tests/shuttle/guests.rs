//! Threads of no pool that take part in one: their joins and scopes, while workers fall asleep, are not woken because of them,
//! and must be in the end.

use std::sync::Arc;

use heist::{Pool, Strategy};
use shuttle::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use shuttle::sync::mpsc;
use shuttle::thread;

use crate::scenarios::{exact, pool, scenarios};

scenarios! {
    both_halves_at_once
    both_halves_of_a_nested_join_at_once
    part_that_the_scope_waits_for
    task_that_comes_during_a_visit
    task_that_a_visit_waits_for
    second_half_of_a_worker_during_a_visit
    visits_of_two_threads
    visits_and_a_stop
    more_guests_than_places
    visit_after_a_panic
}

/// A join whose halves wait for each other.
fn meet() {
    let ((to_b, from_a), (to_a, from_b)) = (mpsc::channel(), mpsc::channel());
    heist::join(
        move || {
            to_b.send(()).unwrap();
            from_b.recv().unwrap();
        },
        move || {
            to_a.send(()).unwrap();
            from_a.recv().unwrap();
        },
    );
}

fn end(pool: &Pool) {
    pool.stop();
    exact(pool);
}

fn both_halves_at_once(strategy: Strategy) {
    let pool = pool(strategy, 2);
    (0..2).for_each(|_| pool.visit(meet));
    end(&pool);
}

fn both_halves_of_a_nested_join_at_once(strategy: Strategy) {
    let pool = pool(strategy, 2);
    pool.visit(|| heist::join(meet, || ()));
    pool.visit(|| heist::join(|| (), meet));
    end(&pool);
}

fn part_that_the_scope_waits_for(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let (tell, told) = mpsc::channel();
    pool.visit(|| {
        heist::scope(|scope| {
            scope.spawn(move |_| tell.send(()).unwrap());
            scope.spawn(|_| ());
            told.recv().unwrap();
        });
    });
    end(&pool);
}

/// The visit ends only after the task, which another thread spawns meanwhile.
fn task_that_comes_during_a_visit(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let (tell, told) = mpsc::channel();
    let spawner = Arc::clone(&pool);
    let spawner = thread::spawn(move || spawner.spawn(move || tell.send(()).unwrap()));
    pool.visit(|| heist::join(|| told.recv().unwrap(), || ()));
    spawner.join().unwrap().join().unwrap();
    end(&pool);
}

fn task_that_a_visit_waits_for(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let tasks = Arc::clone(&pool);
    let sum = pool.visit(|| {
        let handles = [1, 2].map(|n| tasks.spawn(move || n));
        let (left, right) = heist::join(|| 3, || 4);
        left + right + handles.map(|handle| handle.join().unwrap()).iter().sum::<i32>()
    });
    assert_eq!(sum, 10);
    end(&pool);
}

/// A worker forks while a guest is at work, so that the other worker may not be woken, and needs that worker.
fn second_half_of_a_worker_during_a_visit(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let meeting = pool.spawn(|| {
        heist::join(|| (), || ());
        meet();
    });
    (0..2).for_each(|_| _ = pool.visit(|| heist::join(|| (), || ())));
    meeting.join().unwrap();
    end(&pool);
}

fn visits_of_two_threads(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let other = Arc::clone(&pool);
    let other = thread::spawn(move || other.visit(|| heist::join(|| 1, || 2)));
    assert_eq!(pool.visit(|| heist::join(|| 3, || heist::join(|| 4, || 5))), (3, (4, 5)));
    assert_eq!(other.join().unwrap(), (1, 2));
    end(&pool);
}

/// Visits that begin before the stop end as always, and those that come later are refused.
fn visits_and_a_stop(strategy: Strategy) {
    let pool = pool(strategy, 1);
    let ran = Arc::new(AtomicUsize::new(0));
    let (visitor, count) = (Arc::clone(&pool), Arc::clone(&ran));
    let visitor = thread::spawn(move || {
        let add = || _ = count.fetch_add(1, SeqCst);
        let visit = || visitor.visit(|| heist::join(add, add));
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(visit)).is_ok()
    });
    pool.stop();
    let has_run = visitor.join().unwrap();
    assert_eq!(ran.load(SeqCst), if has_run { 2 } else { 0 });
    exact(&pool);
}

fn more_guests_than_places(strategy: Strategy) {
    let pool = pool(strategy, 1);
    let visitors = [0, 1, 2].map(|n| {
        let pool = Arc::clone(&pool);
        thread::spawn(move || pool.visit(|| heist::join(|| n, || n + 1)))
    });
    for (n, visitor) in visitors.into_iter().enumerate() {
        assert_eq!(visitor.join().unwrap(), (n, n + 1));
    }
    end(&pool);
}

fn visit_after_a_panic(strategy: Strategy) {
    let pool = pool(strategy, 1);
    for _ in 0..2 {
        let visit = || pool.visit(|| heist::join(|| panic!("first"), || ()));
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(visit)).unwrap_err();
        assert_eq!(*panic.downcast::<&str>().unwrap(), "first");
    }
    assert_eq!(pool.visit(|| heist::join(|| 1, || 2)), (1, 2));
    end(&pool);
}
