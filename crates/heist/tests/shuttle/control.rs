//! Priorities and cancellation of tasks, in whole pools.

use std::sync::Arc;

use heist::{CancelToken, JoinError, Priority, Strategy};
use shuttle::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use shuttle::thread;

use crate::scenarios::{exact, pool, scenarios};

scenarios! {
    priorities_from_outside
    priorities_from_inside
    priorities_against_stop
    waits_across_priorities
    cancel_against_start
    token_against_start
    cancel_against_stop
    parts_of_a_cancelled_task
}

/// Threads outside spawn tasks of all priorities while the workers fall asleep.
fn priorities_from_outside(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let other = Arc::clone(&pool);
    let echo = |pool: &heist::Pool, priority: Priority| {
        let task = pool.task().priority(priority).spawn(heist::current_priority);
        assert_eq!(task.join().unwrap(), priority);
    };
    let asker = thread::spawn(move || echo(&other, Priority::Low));
    echo(&pool, Priority::High);
    echo(&pool, Priority::Normal);
    asker.join().unwrap();
    pool.stop();
    exact(&pool);
}

/// Tasks spawn tasks that inherit their priority, and the stop waits for all of them.
fn priorities_from_inside(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let ran = Arc::new(AtomicUsize::new(0));
    for priority in Priority::ALL {
        let (ran, inside) = (Arc::clone(&ran), Arc::clone(&pool));
        pool.task().priority(priority).spawn(move || {
            for _ in 0..2 {
                let ran = Arc::clone(&ran);
                inside.spawn(move || {
                    assert_eq!(heist::current_priority(), priority);
                    ran.fetch_add(1, SeqCst);
                });
            }
        });
    }
    pool.stop();
    assert_eq!(ran.load(SeqCst), 6);
    exact(&pool);
}

/// A task that comes when the pool ends is run or refused.
fn priorities_against_stop(strategy: Strategy) {
    let pool = pool(strategy, 1);
    let other = Arc::clone(&pool);
    let spawner = thread::spawn(move || {
        for priority in [Priority::High, Priority::Low] {
            let ended = other.task().priority(priority).spawn(|| 7).join();
            assert!(matches!(ended, Ok(7) | Err(JoinError::Stopped)), "{ended:?}");
        }
    });
    pool.stop();
    spawner.join().unwrap();
    exact(&pool);
}

/// A task of high priority waits for one of low priority, which waits for one of normal priority.
fn waits_across_priorities(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let (inside, innermost) = (Arc::clone(&pool), Arc::clone(&pool));
    let high = pool.task().priority(Priority::High).spawn(move || {
        let low = inside
            .task()
            .priority(Priority::Low)
            .spawn(move || innermost.task().priority(Priority::Normal).spawn(|| 7).join().unwrap());
        low.join().unwrap()
    });
    pool.task().priority(Priority::Low).spawn(|| ());
    assert_eq!(high.join().unwrap(), 7);
    pool.stop();
    exact(&pool);
}

/// A handle cancels its task while a worker comes to it.
fn cancel_against_start(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let ran = Arc::new(AtomicUsize::new(0));
    let mut cancelled = 0;
    for priority in Priority::ALL {
        let ran = Arc::clone(&ran);
        let task = pool.task().priority(priority).spawn(move || ran.fetch_add(1, SeqCst));
        let said = task.cancel();
        cancelled += usize::from(said);
        // A task that has just started may also find that it was cancelled.
        assert!(!said || matches!(task.join(), Err(JoinError::Cancelled)));
    }
    let counted = Arc::clone(&ran);
    cancelled += usize::from(pool.spawn(move || counted.fetch_add(1, SeqCst)).cancel());
    pool.stop();
    let cancellations = usize::try_from(pool.stats().total.cancellations).unwrap();
    assert_eq!(ran.load(SeqCst) + cancellations, 4);
    assert!(cancellations >= cancelled);
    exact(&pool);
}

/// A token is cancelled while workers start tasks, one of which is joined by another task.
fn token_against_start(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let token = CancelToken::new();
    let (inside, inner) = (Arc::clone(&pool), token.child());
    let outer = pool.spawn(move || inside.task().cancel_on(&inner).spawn(|| 7).join());
    let other = pool.task().cancel_on(&token).spawn(|| 8);
    token.cancel();
    assert!(matches!(outer.join().unwrap(), Ok(7) | Err(JoinError::Cancelled)));
    assert!(matches!(other.join(), Ok(8) | Err(JoinError::Cancelled)));
    pool.stop();
    exact(&pool);
}

/// A task is cancelled, and its handle dropped, while the pool stops.
fn cancel_against_stop(strategy: Strategy) {
    let pool = pool(strategy, 1);
    let guard = pool.task().priority(Priority::Low).spawn(|| ()).abort_on_drop();
    let dropper = thread::spawn(move || drop(guard));
    pool.stop_now();
    dropper.join().unwrap();
    exact(&pool);
}

/// The parts of a task run on all workers, and look whether it was cancelled.
fn parts_of_a_cancelled_task(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let token = CancelToken::new();
    let cancel = token.clone();
    let task = pool.task().priority(Priority::High).cancel_on(&token).spawn(move || {
        let ((), late) = heist::join(
            || cancel.cancel(),
            || {
                heist::scope(|scope| {
                    scope.spawn(|_| assert_eq!(heist::current_priority(), Priority::High));
                    scope.spawn_handle(|_| heist::isolate(heist::is_cancelled)).join().unwrap()
                })
            },
        );
        (late, heist::is_cancelled())
    });
    if let Ok((_, last)) = task.join() {
        assert!(last, "it has cancelled itself");
    }
    pool.stop();
    exact(&pool);
}
