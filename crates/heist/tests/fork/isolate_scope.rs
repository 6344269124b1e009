//! A scope under a lock inside `isolate`, while other threads want the lock.

use std::sync::Mutex;
use std::thread;

use heist_testkit::test_path;

use crate::common::{Kind, watched};

/// Several parts of a scope want one lock, and each opens a scope while it holds the lock. The thread
/// with the lock waits for what it has spawned. It may find another part first, which it must leave to
/// another thread, where the part waits for the lock. The spawned closures run nevertheless.
fn under_a_lock(kind: Kind, workers: usize, rounds: usize, outside: bool) {
    let pool = kind.pool(workers);
    let shared = Mutex::new(0);
    for _ in 0..rounds {
        pool.scope(|scope| {
            (0..20).for_each(|_| scope.spawn(|_| heist::isolate(|| count(&shared, outside))));
        });
    }
    assert_eq!(shared.into_inner().expect("no panic"), rounds * 20 * 5);
}

fn count(shared: &Mutex<usize>, outside: bool) {
    let mut sum = shared.lock().expect("no panic");
    let mut counts = [0; 5];
    heist::scope(|scope| {
        for count in &mut counts {
            let spawn = move || scope.spawn(move |_| *count += 1);
            if outside { thread::scope(|threads| _ = threads.spawn(spawn)) } else { spawn() }
        }
    });
    *sum += counts.iter().sum::<usize>();
}

macro_rules! tests {
    ($($name:ident: $kind:ident, $workers:literal, $rounds:literal, $outside:literal;)*) => {
        $(
            #[test]
            fn $name() {
                watched(test_path!(stringify!($name)), || under_a_lock(Kind::$kind, $workers, $rounds, $outside));
            }
        )*
    };
}

tests! {
    one_worker_with_a_global_queue: GLOBAL_QUEUE, 1, 1, false;
    two_workers_with_a_global_queue: GLOBAL_QUEUE, 2, 100, false;
    three_workers: WORK_STEALING, 3, 100, false;
    two_workers_locked: LOCKED_DEQUES, 2, 100, false;
    one_worker_spawned_outside: WORK_STEALING, 1, 1, true;
    one_worker_spawned_outside_locked: LOCKED_DEQUES, 1, 1, true;
}
