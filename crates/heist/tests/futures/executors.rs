//! Handles are awaited in the executors of other crates: tokio and smol.

use heist::{JoinError, JoinHandle};

use crate::common::{Kind, WORKERS, assert_counts, for_every_strategy};

for_every_strategy! {
    in_tokio,
    in_tokio_with_one_thread,
    in_smol,
    beside_a_timer,
}

const TASKS: u64 = 50;

async fn sum(handles: Vec<JoinHandle<u64>>) -> u64 {
    let mut sum = 0;
    for handle in handles {
        sum += handle.await.expect("a result");
    }
    sum
}

fn in_tokio(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build();
        let runtime = runtime.expect("a runtime");
        let sums: Vec<_> = (0..4)
            .map(|_| {
                let handles = (0..TASKS).map(|n| pool.spawn(move || n)).collect();
                runtime.spawn(sum(handles))
            })
            .collect();
        let panicked = pool.spawn(|| panic!("planned"));
        runtime.block_on(async {
            for sum in sums {
                assert_eq!(sum.await.expect("no panic"), TASKS * (TASKS - 1) / 2);
            }
            assert!(matches!(panicked.await, Err(JoinError::Panicked(_))));
        });
        assert_counts(&pool, 4 * TASKS, 1, 0);
    }
}

fn in_tokio_with_one_thread(kind: Kind) {
    let pool = kind.pool(1);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let handles = (0..TASKS).map(|n| pool.spawn(move || n)).collect();
    assert_eq!(runtime.block_on(sum(handles)), TASKS * (TASKS - 1) / 2);
    let batch = pool.spawn_batch((0..TASKS).map(|n| move || n));
    assert_eq!(runtime.block_on(batch).expect("results").len(), TASKS as usize);
    assert_counts(&pool, 2 * TASKS, 0, 0);
}

fn in_smol(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let sums: Vec<_> = (0..4)
            .map(|_| {
                let handles = (0..TASKS).map(|n| pool.spawn(move || n)).collect();
                smol::spawn(sum(handles))
            })
            .collect();
        smol::block_on(async {
            for sum in sums {
                assert_eq!(sum.await, TASKS * (TASKS - 1) / 2);
            }
        });
        assert_counts(&pool, 4 * TASKS, 0, 0);
    }
}

/// A runtime gives up a handle when its time is over. The task runs all the same.
fn beside_a_timer(kind: Kind) {
    let pool = kind.pool(1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a runtime");
    let (open, held) = crate::common::held_task(&pool);
    runtime.block_on(async {
        let limit = std::time::Duration::from_millis(1);
        assert!(tokio::time::timeout(limit, held).await.is_err(), "the task is held");
    });
    drop(open);
    assert_counts(&pool, 1, 0, 0);
}
