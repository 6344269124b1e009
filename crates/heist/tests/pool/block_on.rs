//! The contract of `block_on`: a task that waits for a future blocks itself, never the pool.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::task::{Poll, Waker};
use std::thread;

use crate::common::{Kind, WORKERS, assert_balanced, assert_counts, for_every_strategy, held_task};

for_every_strategy! {
    outside_of_a_pool,
    ready_at_once,
    woken_during_a_poll,
    woken_from_another_thread,
    needs_another_task,
    nested,
    on_every_worker,
    in_parts,
    no_thread_to_take_over,
    future_that_panics,
    waker_outlives_the_call,
    while_stopping,
}

/// Wakes itself while it is polled, that many times.
async fn yields(mut times: usize) {
    poll_fn(move |context| {
        if times == 0 {
            return Poll::Ready(());
        }
        times -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn outside_of_a_pool(kind: Kind) {
    assert_eq!(heist::block_on(async { 1 }), 1);
    heist::block_on(yields(10));
    let pool = kind.pool(1);
    for n in 0..100 {
        assert_eq!(heist::block_on(pool.spawn(move || n)).expect("a result"), n);
    }
    assert_counts(&pool, 100, 0, 0);
}

fn ready_at_once(kind: Kind) {
    let pool = kind.pool(1);
    assert_eq!(pool.install(|| heist::block_on(async { 1 })), 1);
    assert_counts(&pool, 1, 0, 0);
}

fn woken_during_a_poll(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        pool.install(|| heist::block_on(yields(100)));
        assert_counts(&pool, 1, 0, 0);
    }
}

fn woken_from_another_thread(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for _ in 0..50 {
            let (send, wakers) = mpsc::channel::<Waker>();
            let waker = thread::spawn(move || wakers.into_iter().for_each(Waker::wake));
            let mut polls = 0;
            pool.install(|| {
                heist::block_on(poll_fn(|context| {
                    polls += 1;
                    if polls == 5 {
                        return Poll::Ready(());
                    }
                    send.send(context.waker().clone()).expect("a thread that wakes");
                    Poll::Pending
                }));
            });
            drop(send);
            waker.join().expect("no panic");
        }
    }
}

/// What the future waits for is queued on the same pool, perhaps by the same thread.
fn needs_another_task(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for n in 0..50 {
            let outer = pool.spawn(move || {
                let (one, two) = (heist::spawn(move || n), heist::spawn(|| 1));
                heist::block_on(async {
                    one.await.expect("a result") + two.await.expect("a result")
                })
            });
            assert_eq!(outer.join().expect("a result"), n + 1);
        }
        assert_counts(&pool, 150, 0, 0);
    }
}

fn nested(kind: Kind) {
    fn depth(n: usize) -> usize {
        if n == 0 {
            return 0;
        }
        heist::block_on(async {
            yields(1).await;
            let inner = heist::spawn(move || depth(n - 1));
            // One within the other on the same stack, too.
            heist::block_on(inner).expect("a result") + 1
        })
    }
    for workers in WORKERS {
        let pool = kind.pool(workers);
        assert_eq!(pool.spawn(|| depth(20)).join().expect("a result"), 20);
        assert_counts(&pool, 21, 0, 0);
    }
}

/// All workers wait for each other, until a task that comes last.
fn on_every_worker(kind: Kind) {
    for workers in WORKERS {
        let (pool, there) = (kind.pool(workers), kind.pool(1));
        let (open, held) = held_task(&there);
        let mut before = pool.spawn(|| heist::block_on(held).map_or(1, |()| 0));
        for _ in 0..3 * workers {
            let awaited = before;
            before = pool.spawn(move || heist::block_on(awaited).expect("a result") + 1);
        }
        pool.spawn(move || drop(open));
        assert_eq!(before.join().expect("a result"), 3 * workers);
    }
}

/// In halves of joins and parts of scopes, on the pool and outside.
fn in_parts(kind: Kind) {
    let work = || {
        let half = || heist::block_on(heist::spawn(|| 1)).expect("a result");
        let (a, b) = heist::join(half, half);
        let mut parts = [0; 4];
        heist::scope(|scope| {
            for part in &mut parts {
                scope.spawn(move |_| *part = half());
            }
        });
        a + b + parts.iter().sum::<i32>()
    };
    for workers in WORKERS {
        let pool = kind.pool(workers);
        for _ in 0..20 {
            assert_eq!(pool.install(work), 6);
        }
        pool.stop();
        assert_balanced(&pool.stats());
    }
    assert_eq!(work(), 6);
}

fn no_thread_to_take_over(kind: Kind) {
    let pool = kind.builder(1).max_threads(1).build().expect("a pool");
    let outer = pool.spawn(|| heist::block_on(heist::spawn(|| 1)).expect("a result"));
    assert_eq!(outer.join().expect("a result"), 1);
    assert_counts(&pool, 2, 0, 0);
}

fn future_that_panics(kind: Kind) {
    let pool = kind.pool(1);
    let failed = pool.spawn(|| {
        let caught = catch_unwind(AssertUnwindSafe(|| {
            heist::block_on(async {
                yields(1).await;
                panic!("planned")
            })
        }));
        assert!(caught.is_err());
        heist::block_on(async { panic!("planned again") })
    });
    let result: Result<(), _> = failed.join();
    assert!(result.is_err());
    assert_eq!(pool.spawn(|| heist::block_on(async { 1 })).join().expect("a result"), 1);
    assert_counts(&pool, 1, 1, 0);
}

fn waker_outlives_the_call(kind: Kind) {
    let pool = kind.pool(1);
    let wake = || {
        let waker = heist::block_on(poll_fn(|context| Poll::Ready(context.waker().clone())));
        waker.wake_by_ref();
        waker.wake_by_ref();
        waker
    };
    let waker = pool.install(wake);
    drop(pool);
    waker.wake();
    wake().wake();
}

fn while_stopping(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let tasks: Vec<_> = (0..20)
            .map(|_| {
                pool.spawn(|| {
                    heist::block_on(yields(2));
                    heist::block_on(heist::spawn(|| 1)).expect("a result")
                })
            })
            .collect();
        pool.stop();
        tasks.into_iter().for_each(|task| assert_eq!(task.join().expect("a result"), 1));
        assert_counts(&pool, 40, 0, 0);
    }
}
