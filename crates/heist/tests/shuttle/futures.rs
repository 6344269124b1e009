//! Futures: wake-ups against polls, cancellations and the end of the pool; threads that wait for futures; yields.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use heist::{JoinError, Strategy};
use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use shuttle::thread;

use crate::scenarios::{exact, pool, scenarios};

scenarios! {
    wake_up_against_the_end
    pending_futures_against_the_end
    wake_up_against_a_cancellation
    wake_ups_from_two_threads
    future_that_wakes_itself_against_the_end
    future_joined_by_the_only_worker
    joined_while_it_is_queued
    woken_against_a_join
    joins_in_polls
    block_on_in_the_only_worker
    block_on_against_wake_ups
    yields_to_queued_tasks
    yields_on_all_workers
    a_token_against_wake_ups_and_the_end
}

/// A count that can be awaited: a future that is ready when it has come to a number.
#[derive(Clone, Default)]
struct Counter(Arc<Mutex<(usize, Option<Waker>)>>);

impl Counter {
    fn add(&self) {
        let mut state = self.0.lock().unwrap();
        state.0 += 1;
        let waker = state.1.clone();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn until(&self, number: usize) -> Until {
        Until(self.clone(), number)
    }
}

struct Until(Counter, usize);

impl Future for Until {
    type Output = usize;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<usize> {
        let mut state = self.0.0.lock().unwrap();
        if state.0 >= self.1 {
            return Poll::Ready(state.0);
        }
        state.1 = Some(context.waker().clone());
        Poll::Pending
    }
}

/// Wakes itself while it is polled, that many times.
struct Yields(usize);

impl Future for Yields {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.0 == 0 {
            return Poll::Ready(());
        }
        self.0 -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Whoever comes first, the future is dropped, and its handle is notified.
fn wake_up_against_the_end(strategy: Strategy) {
    let pool = pool(strategy, 1);
    let (counter, owned) = (Counter::default(), Arc::new(()));
    let (awaited, captured) = (counter.until(1), Arc::clone(&owned));
    let future = pool.spawn_future(async move {
        let count = awaited.await;
        drop(captured);
        count
    });
    let waker = thread::spawn(move || counter.add());
    pool.stop();
    assert!(matches!(future.join(), Ok(1) | Err(JoinError::Cancelled)));
    assert_eq!(Arc::strong_count(&owned), 1);
    waker.join().unwrap();
    exact(&pool);
}

/// Nobody wakes the futures. One is spawned before the stop and one at the same time.
fn pending_futures_against_the_end(strategy: Strategy) {
    let pool = pool(strategy, 1);
    let before = pool.spawn_future(std::future::pending::<()>());
    let here = pool.handle();
    let spawner = thread::spawn(move || here.spawn_future(std::future::pending::<()>()).join());
    pool.stop();
    assert!(matches!(before.join(), Err(JoinError::Cancelled)));
    let at_the_same_time = spawner.join().unwrap();
    assert!(matches!(at_the_same_time, Err(JoinError::Cancelled | JoinError::Stopped)));
    exact(&pool);
}

fn wake_up_against_a_cancellation(strategy: Strategy) {
    let pool = pool(strategy, 1);
    let counter = Counter::default();
    let future = pool.spawn_future(counter.until(1));
    let waker = thread::spawn(move || counter.add());
    future.cancel();
    assert!(matches!(future.join(), Ok(1) | Err(JoinError::Cancelled)));
    waker.join().unwrap();
    pool.stop();
    exact(&pool);
}

fn wake_ups_from_two_threads(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let counter = Counter::default();
    let future = pool.spawn_future(counter.until(4));
    let wakers = [(); 2].map(|()| {
        let counter = counter.clone();
        thread::spawn(move || (0..2).for_each(|_| counter.add()))
    });
    assert_eq!(future.join().unwrap(), 4);
    wakers.into_iter().for_each(|waker| waker.join().unwrap());
    pool.stop();
    exact(&pool);
}

/// What is ready is not lost, and what awaits it is not either.
fn future_that_wakes_itself_against_the_end(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let first = pool.spawn_future(Yields(2));
    let second = pool.spawn_future(async move { first.await.is_ok() });
    let task = pool.spawn(|| 1);
    let third = pool.spawn_future(async move { task.await.unwrap() });
    pool.stop();
    assert!(second.join().unwrap());
    assert_eq!(third.join().unwrap(), 1);
    exact(&pool);
}

fn future_joined_by_the_only_worker(strategy: Strategy) {
    let pool = pool(strategy, 1);
    let counter = Counter::default();
    let outer = pool.spawn(move || {
        let future = heist::spawn_future(counter.until(1));
        heist::spawn(move || counter.add());
        future.join().unwrap()
    });
    assert_eq!(outer.join().unwrap(), 1);
    pool.stop();
    exact(&pool);
}

/// The task that waits, or another worker, polls the future. It is cancelled at the same time, or the pool is stopped.
fn joined_while_it_is_queued(strategy: Strategy) {
    for cancels in [false, true] {
        let pool = pool(strategy, 2);
        let token = heist::CancelToken::new();
        let (here, of_future) = (pool.handle(), token.clone());
        let task = pool.spawn(move || {
            let builder = here.task().priority(heist::Priority::High).cancel_on(&of_future);
            builder.spawn_future(Yields(1)).join()
        });
        let canceller = cancels.then(|| thread::spawn(move || token.cancel()));
        pool.stop();
        canceller.into_iter().for_each(|canceller| canceller.join().unwrap());
        let result = task.join().unwrap();
        assert!(
            matches!(result, Ok(()) | Err(JoinError::Cancelled)) && (cancels || result.is_ok())
        );
        exact(&pool);
    }
}

/// The handle of a poll is left for the thread that waits while the poll runs, or while the next one is made.
fn woken_against_a_join(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let counter = Counter::default();
    let awaited = counter.clone();
    let future = pool.spawn_future(async move { awaited.until(1).await + awaited.until(2).await });
    let waker = thread::spawn(move || (0..2).for_each(|_| counter.add()));
    let task = pool.spawn(move || future.join().unwrap());
    assert!((3..=4).contains(&task.join().unwrap()));
    waker.join().unwrap();
    pool.stop();
    exact(&pool);
}

/// Tasks wait for futures, whose polls wait for others.
fn joins_in_polls(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let task = pool.spawn(|| {
        let inner = heist::spawn_future(async { heist::spawn(|| 1).join().unwrap() });
        let outer = heist::spawn_future(async move { inner.join().unwrap() + 1 });
        outer.join().unwrap()
    });
    assert_eq!(task.join().unwrap(), 2);
    pool.stop();
    exact(&pool);
    assert_eq!(pool.stats().total.tasks_completed, 4);
}

fn block_on_in_the_only_worker(strategy: Strategy) {
    let pool = pool(strategy, 1);
    let outer = pool.spawn(|| {
        let (one, two) = (heist::spawn(|| 1), heist::spawn(|| 2));
        heist::block_on(async { one.await.unwrap() + heist::block_on(two).unwrap() })
    });
    assert_eq!(heist::block_on(outer).unwrap(), 3);
    pool.stop();
    exact(&pool);
}

/// Each wake-up is seen, by a thread of the pool and by one of none.
fn block_on_against_wake_ups(strategy: Strategy) {
    let pool = pool(strategy, 1);
    let counter = Counter::default();
    let inside = counter.clone();
    let task = pool.spawn(move || heist::block_on(inside.until(2)));
    let other = counter.clone();
    let waker = thread::spawn(move || other.add());
    counter.add();
    assert_eq!(task.join().unwrap(), 2);
    let more = counter.clone();
    let late = thread::spawn(move || more.add());
    assert_eq!(heist::block_on(counter.until(3)), 3);
    waker.join().unwrap();
    late.join().unwrap();
    pool.stop();
    exact(&pool);
}

/// The task that is queued starts before the yield returns.
fn yields_to_queued_tasks(strategy: Strategy) {
    let pool = pool(strategy, 1);
    let outer = pool.spawn(|| {
        let started = Arc::new(AtomicUsize::new(0));
        let other = Arc::clone(&started);
        let task = heist::spawn(move || other.store(1, SeqCst));
        heist::yield_now();
        assert_eq!(started.load(SeqCst), 1);
        task.join().unwrap();
    });
    outer.join().unwrap();
    pool.stop();
    exact(&pool);
}

fn yields_on_all_workers(strategy: Strategy) {
    let pool = pool(strategy, 2);
    for _ in 0..3 {
        pool.spawn(|| {
            heist::spawn(|| ());
            heist::yield_now();
        });
    }
    pool.stop();
    exact(&pool);
    assert_eq!(pool.stats().total.tasks_completed, 6);
}

/// A future of high priority is woken while its token is cancelled and the pool is stopped.
fn a_token_against_wake_ups_and_the_end(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let (token, counter) = (heist::CancelToken::new(), Counter::default());
    let awaited = counter.clone();
    let builder = pool.task().priority(heist::Priority::High).cancel_on(&token);
    let future = builder.spawn_future(async move { awaited.until(1).await });
    let waker = thread::spawn(move || counter.add());
    let canceller = thread::spawn(move || token.cancel());
    pool.stop();
    waker.join().unwrap();
    canceller.join().unwrap();
    assert!(matches!(future.join(), Ok(1) | Err(JoinError::Cancelled)));
    exact(&pool);
}
