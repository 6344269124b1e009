//! The contract of cancelling a task: by its handle, by a token, by a guard. A task that is said to be cancelled does not run,
//! its closure is dropped once, and it is counted.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::task::{Poll, Waker};

use heist::{CancelToken, JoinError, Pool, Priority, is_cancelled};

use crate::common::{
    Gate, Kind, Ledger, assert_balanced, block_on, eventually, for_every_strategy, poll_once,
};

for_every_strategy! {
    queued,
    queued_with_a_token,
    a_batch,
    said_at_once,
    awaited,
    running,
    running_with_a_token,
    all_parts_see_it,
    a_child_token,
    after_the_end,
    dropped_guard,
    detached_guard,
    awaited_guard,
    joined_inside,
    not_inherited,
    closures_are_dropped_once,
    either_cancelled_or_run,
    a_million_by_one_token,
}

fn is_cancelled_error<T>(result: Result<T, JoinError>) -> bool {
    matches!(result, Err(JoinError::Cancelled))
}

/// A task that has not started does not run.
fn queued(kind: Kind) {
    let pool = kind.pool(2);
    let gate = Gate::close(&pool);
    let plain = pool.spawn(|| unreachable!("cancelled"));
    let built = Priority::ALL
        .map(|priority| pool.task().priority(priority).spawn(|| unreachable!("cancelled")));
    let detached = pool.spawn(|| unreachable!("cancelled"));
    assert!(plain.cancel() && plain.cancel(), "a second call says the same");
    built.iter().for_each(|task| assert!(task.cancel()));
    assert!(detached.cancel());
    drop(detached);
    assert!(plain.is_finished());
    assert!(is_cancelled_error::<()>(plain.join()), "while all workers are busy");
    built.into_iter().for_each(|task| assert!(is_cancelled_error::<()>(task.join())));
    gate.open();
    pool.stop();
    assert_eq!(pool.stats().total.cancellations, 5);
    assert_balanced(&pool.stats());
}

fn queued_with_a_token(kind: Kind) {
    let pool = kind.pool(2);
    let (token, gate) = (CancelToken::new(), Gate::close(&pool));
    let spawn = |priority| pool.task().priority(priority).cancel_on(&token);
    let tasks = Priority::ALL.map(|priority| spawn(priority).spawn(|| unreachable!("cancelled")));
    let other = pool.task().cancel_on(&token.child()).spawn(|| unreachable!("cancelled"));
    token.cancel();
    assert!(is_cancelled_error::<()>(other.join()), "while all workers are busy");
    gate.open();
    tasks.into_iter().for_each(|task| assert!(is_cancelled_error::<()>(task.join())));
    let late = pool.task().cancel_on(&token).spawn(|| unreachable!("cancelled"));
    drop(late);
    pool.stop();
    assert_eq!(pool.stats().total.cancellations, 5);
    assert_balanced(&pool.stats());
}

/// Of a batch, all tasks are cancelled or none.
fn a_batch(kind: Kind) {
    let pool = kind.pool(1);
    let gate = Gate::close(&pool);
    let batch = pool.spawn_batch((0..100).map(|_| || unreachable!("cancelled")));
    assert!(batch.cancel());
    assert!(is_cancelled_error::<Vec<()>>(batch.join()));
    let empty = pool.spawn_batch([(); 0].map(|()| || ()));
    assert!(!empty.cancel(), "it has ended");
    assert_eq!(empty.join().unwrap(), []);
    gate.open();
    pool.stop();
    assert_eq!(pool.stats().total.cancellations, 100);
    assert_balanced(&pool.stats());
}

/// The handle says what a later join would.
fn said_at_once(kind: Kind) {
    let pool = kind.pool(1);
    for _ in 0..200 {
        let task = pool.spawn(|| 7);
        let cancelled = task.cancel();
        assert_eq!(is_cancelled_error(task.join()), cancelled);
    }
    pool.stop();
    assert_balanced(&pool.stats());
}

/// A future that was polled before yields the error at its next poll.
fn awaited(kind: Kind) {
    let pool = kind.pool(1);
    let gate = Gate::close(&pool);
    let tokens = [CancelToken::new(), CancelToken::new()];
    let mut plain = pool.spawn(|| unreachable!("cancelled"));
    let mut built = pool.task().cancel_on(&tokens[0]).spawn(|| unreachable!("cancelled"));
    assert!(
        poll_once(&mut plain, Waker::noop()).is_pending()
            && poll_once(&mut built, Waker::noop()).is_pending()
    );
    plain.cancel();
    tokens[0].cancel();
    for task in [&mut plain, &mut built] {
        let Poll::Ready(result) = poll_once(task, Waker::noop()) else { panic!("pending") };
        assert!(is_cancelled_error::<()>(result));
    }
    drop(built);
    gate.open();
    pool.stop();
    assert_balanced(&pool.stats());
}

/// A task that runs is not interrupted. If it was built, it can ask.
fn running(kind: Kind) {
    let pool = kind.pool(1);
    let (begin, begun) = mpsc::channel();
    let asks = pool.task().spawn(move || {
        assert!(!is_cancelled());
        begin.send(()).unwrap();
        while !is_cancelled() {
            std::thread::yield_now();
        }
        7
    });
    begun.recv().unwrap();
    assert!(!asks.cancel());
    assert_eq!(asks.join().unwrap(), 7);
    assert!(!pool.install(is_cancelled), "the next task was not cancelled");
    assert!(!is_cancelled());
}

fn running_with_a_token(kind: Kind) {
    let pool = kind.pool(1);
    let token = CancelToken::new();
    let (begin, begun) = mpsc::channel();
    let asks = pool.task().cancel_on(&token).spawn(move || {
        begin.send(()).unwrap();
        while !is_cancelled() {
            std::thread::yield_now();
        }
    });
    begun.recv().unwrap();
    token.cancel();
    asks.join().unwrap();
}

/// The parts of a task see that it was cancelled, on whatever thread they run.
fn all_parts_see_it(kind: Kind) {
    let pool = kind.pool(3);
    let token = CancelToken::new();
    let meet = Arc::new(Barrier::new(4));
    let parts = Arc::clone(&meet);
    let task = pool.task().cancel_on(&token).spawn(move || {
        let wait = || {
            parts.wait();
            while !is_cancelled() {
                std::thread::yield_now();
            }
        };
        // Three parts that must meet run on three workers.
        heist::scope(|scope| {
            scope.spawn(|_| wait());
            scope.spawn_handle(|_| heist::isolate(wait));
            wait();
        });
        heist::isolate(is_cancelled)
    });
    meet.wait();
    token.cancel();
    assert!(task.join().unwrap());
}

fn a_child_token(kind: Kind) {
    let pool = kind.pool(1);
    let parent = CancelToken::new();
    let gate = Gate::close(&pool);
    let child = parent.child();
    let cancelled = pool.task().cancel_on(&child).spawn(|| ());
    let other = pool.task().cancel_on(&parent).spawn(|| 7);
    child.cancel();
    gate.open();
    assert!(is_cancelled_error(cancelled.join()));
    assert_eq!(other.join().unwrap(), 7);
}

/// A task that has ended keeps its result.
fn after_the_end(kind: Kind) {
    let pool = kind.pool(1);
    let (plain, built) = (pool.spawn(|| 7), pool.task().spawn(|| 8));
    eventually("both have ended", || plain.is_finished() && built.is_finished());
    assert!(!plain.cancel() && !built.cancel());
    assert_eq!((plain.join().unwrap(), built.join().unwrap()), (7, 8));
}

fn dropped_guard(kind: Kind) {
    let pool = kind.pool(1);
    let gate = Gate::close(&pool);
    drop(pool.spawn(|| unreachable!("cancelled")).abort_on_drop());
    drop(pool.task().spawn(|| unreachable!("cancelled")).abort_on_drop());
    gate.open();
    pool.stop();
    assert_eq!(pool.stats().total.cancellations, 2);
}

fn detached_guard(kind: Kind) {
    let pool = kind.pool(1);
    let gate = Gate::close(&pool);
    let detached = pool.spawn(|| 7).abort_on_drop().detach();
    gate.open();
    assert_eq!(detached.join().unwrap(), 7);
    assert_eq!(pool.spawn(|| 8).abort_on_drop().join().unwrap(), 8);
}

fn awaited_guard(kind: Kind) {
    let pool = kind.pool(1);
    let gate = Gate::close(&pool);
    let mut task = pool.spawn(|| 7).abort_on_drop();
    assert!(poll_once(&mut task, Waker::noop()).is_pending());
    gate.open();
    assert_eq!(block_on(task).unwrap(), 7);
}

/// A task joins a task that was cancelled, and one whose token was.
fn joined_inside(kind: Kind) {
    let pool = Arc::new(kind.pool(1));
    let inside = Arc::clone(&pool);
    let both = pool.spawn(move || {
        let plain = inside.spawn(|| unreachable!("cancelled"));
        assert!(plain.cancel());
        let token = CancelToken::new();
        let built = inside.task().cancel_on(&token).spawn(|| unreachable!("cancelled"));
        token.cancel();
        is_cancelled_error::<()>(plain.join()) && is_cancelled_error::<()>(built.join())
    });
    assert!(both.join().unwrap());
    pool.stop();
    assert_eq!(pool.stats().total.cancellations, 2);
    assert_balanced(&pool.stats());
}

/// What a cancelled task has spawned runs.
fn not_inherited(kind: Kind) {
    let pool = Arc::new(kind.pool(1));
    let (token, inside) = (CancelToken::new(), Arc::clone(&pool));
    let cancel = token.clone();
    let spawned = pool.task().cancel_on(&token).spawn(move || {
        cancel.cancel();
        inside.spawn(is_cancelled)
    });
    assert!(!spawned.join().unwrap().join().unwrap());
}

fn closures_are_dropped_once(kind: Kind) {
    let pool = kind.pool(2);
    let (ledger, token) = (Ledger::new(60), CancelToken::new());
    let gate = Gate::close(&pool);
    for n in 0..60 {
        let tracked = ledger.item(n);
        let task = match n % 3 {
            0 => pool.spawn(move || drop(tracked)),
            1 => pool.task().cancel_on(&token).spawn(move || drop(tracked)),
            _ => pool.task().priority(Priority::Low).spawn(move || drop(tracked)),
        };
        if n % 2 == 0 {
            task.cancel();
        }
    }
    token.cancel();
    gate.open();
    pool.stop();
    ledger.assert_each_once();
    assert_balanced(&pool.stats());
}

/// Many threads cancel while workers start tasks.
fn either_cancelled_or_run(kind: Kind) {
    let pool = kind.pool(2);
    let ran = Arc::new(AtomicUsize::new(0));
    let cancelled: usize = std::thread::scope(|scope| {
        let cancel_some = || {
            let spawn = |n: usize| {
                let ran = Arc::clone(&ran);
                let run = move || _ = ran.fetch_add(1, Ordering::SeqCst);
                if n % 2 == 0 { pool.spawn(run) } else { pool.task().spawn(run) }
            };
            (0..2_000).filter(|&n| spawn(n).cancel()).count()
        };
        let threads = [(); 3].map(|()| scope.spawn(cancel_some));
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    pool.stop();
    assert_eq!(ran.load(Ordering::SeqCst) + cancelled, 6_000);
    assert_eq!(pool.stats().total.cancellations, cancelled as u64);
    assert_balanced(&pool.stats());
}

/// A token needs no list of the tasks that it cancels.
fn a_million_by_one_token(kind: Kind) {
    // Each task is an allocation or two: fewer in a debug build of the slower strategies.
    let count: u64 = if kind.steals { 1_000_000 } else { 100_000 };
    let pool = kind.pool(1);
    let (token, gate) = (CancelToken::new(), Gate::close(&pool));
    for _ in 0..count {
        pool.task().cancel_on(&token).spawn(|| unreachable!("cancelled"));
    }
    token.cancel();
    gate.open();
    pool.stop();
    assert_eq!(pool.stats().total.cancellations, count);
    assert_balanced(&pool.stats());
}

/// Tokens and guards, without a pool.
#[test]
fn a_guard_cancels_its_token() {
    let token = CancelToken::new();
    let guard = token.child().drop_guard();
    let child = guard.disarm();
    assert!(!child.is_cancelled());
    drop(token.clone().drop_guard());
    assert!(child.is_cancelled());
}

#[test]
fn debug_forms_say_what_there_is() {
    let pool = Pool::builder().workers(1).build().unwrap();
    let token = CancelToken::new();
    let builder = pool.task().priority(Priority::High).cancel_on(&token);
    let text = format!("{builder:?}");
    assert!(text.contains("High") && text.contains("cancelled: false"), "{text}");
}
