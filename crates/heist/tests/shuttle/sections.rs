//! Small pipelines with sections, each with every distribution. A batch that is left in a section is a deadlock, which shuttle
//! reports.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use heist::pipeline::{Distribution, Items, Pipeline, PipelineError, Retry, Skip, Stage};
use heist::{CancelToken, Pool};
use shuttle::thread;

/// Schedules of each kind, for each scenario and distribution.
const SCHEDULES: usize = 300;

/// A test for each distribution.
macro_rules! scenarios {
    ($($name:ident)*) => {$(
        mod $name {
            use heist::pipeline::Distribution;

            scenarios! { @each $name:
                pull Pull, round_robin RoundRobin, load_aware LoadAware, hybrid Hybrid, shared Shared
            }
        }
    )*};
    (@each $scenario:ident: $($test:ident $distribution:ident),*) => {$(
        #[test]
        fn $test() {
            heist_testkit::schedules::check(super::SCHEDULES, || {
                super::$scenario(Distribution::$distribution);
            });
        }
    )*};
}

scenarios! {
    one_at_a_time_in_order
    two_at_a_time_of_three_workers
    keys_in_order
    keys_in_order_without_stealing
    in_a_row
    a_group_that_fails
    a_limited_stage_that_panics
    cancelled_in_a_group
    paused_in_two_groups
    results_dropped
    in_a_task_of_a_single_worker
    a_single_batch_for_two_groups
}

fn pool(workers: usize) -> Arc<Pool> {
    Arc::new(Pool::builder().workers(workers).build().expect("a small pool"))
}

/// Checks that the pool works, and that it stops.
fn end(pool: &Pool) {
    assert_eq!(pool.spawn(|| 7).join().unwrap(), 7);
    pool.stop();
}

/// Numbers from zero, each a batch, of which three are in flight.
fn numbers(
    count: usize,
    distribution: Distribution,
) -> Pipeline<Items<impl Iterator<Item = usize> + Send + 'static>> {
    Pipeline::new(0..count).batch(1).in_flight(3).distribute(distribution)
}

/// Checks that no more threads are inside than may be.
struct Inside(AtomicUsize, usize);

impl Inside {
    fn pass(&self, n: usize) -> usize {
        assert!(self.0.fetch_add(1, Ordering::SeqCst) < self.1);
        thread::yield_now();
        self.0.fetch_sub(1, Ordering::SeqCst);
        n
    }
}

/// Locks what no other thread has at the moment: shuttle switches threads nowhere in between.
fn free<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.try_lock().expect("no thread is switched while this is locked")
}

fn one_at_a_time_in_order(distribution: Distribution) {
    let (pool, inside) = (pool(2), Inside(AtomicUsize::new(0), 1));
    let number = |next: &mut usize, n: usize| {
        *next += 1;
        (inside.pass(n), *next - 1)
    };
    let mut results = Vec::new();
    numbers(5, distribution)
        .limit_workers(1, |stages| stages.map_init(|| 0, number))
        .ordered()
        .run(&pool, |pair| results.push(pair))
        .unwrap();
    assert_eq!(results, [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)]);
    end(&pool);
}

fn two_at_a_time_of_three_workers(distribution: Distribution) {
    let (pool, inside) = (pool(3), Inside(AtomicUsize::new(0), 2));
    let mut results = Vec::new();
    let report = numbers(5, distribution)
        .limit_workers(2, |stages| stages.map(|n| inside.pass(n)))
        .run(&pool, |n| results.push(n))
        .unwrap();
    results.sort_unstable();
    assert_eq!(results, [0, 1, 2, 3, 4]);
    assert!(report.largest_in_flight <= 3, "{report:?}");
    end(&pool);
}

fn keys(distribution: Distribution, steals: bool) {
    let pool = pool(2);
    let seen = [(); 3].map(|()| Mutex::new(Vec::new()));
    let see = |n: usize| {
        free(&seen[n % 3]).push(n);
        thread::yield_now();
        n
    };
    let mut results = Vec::new();
    let numbers = numbers(6, distribution).steal(steals).batch(2);
    let grouped = numbers.group_by_key(2, |n| n % 3, |group| group.map(see));
    grouped.run(&pool, |n| results.push(n)).unwrap();
    results.sort_unstable();
    assert_eq!(results, [0, 1, 2, 3, 4, 5]);
    assert_eq!(seen.map(|seen| seen.into_inner().unwrap()), [[0, 3], [1, 4], [2, 5]]);
    end(&pool);
}

fn keys_in_order(distribution: Distribution) {
    keys(distribution, true);
}

fn keys_in_order_without_stealing(distribution: Distribution) {
    keys(distribution, false);
}

fn in_a_row(distribution: Distribution) {
    let (pool, inside) = (pool(2), Inside(AtomicUsize::new(0), 1));
    let mut results = Vec::new();
    numbers(6, distribution)
        .batch(2)
        .limit_workers(1, |stages| stages.map(|n| inside.pass(n)))
        .filter(|n| n / 2 != 1)
        .group_by_key(2, |n| *n, |group| group.flat_map(|n| [n; 2]))
        .limit_workers(2, |stages| stages.map(|n| n + 1))
        .ordered()
        .run(&pool, |n| results.push(n))
        .unwrap();
    assert_eq!(results, [1, 1, 2, 2, 5, 5, 6, 6]);
    end(&pool);
}

fn a_group_that_fails(distribution: Distribution) {
    let pool = pool(2);
    let mut results = Vec::new();
    let fail = |n: usize| if n == 3 { Err("planned") } else { Ok(n) };
    let error = numbers(8, distribution)
        .batch(2)
        .group_by_key(2, |n| *n, |group| group.try_map(fail))
        .ordered()
        .run(&pool, |n| results.push(n))
        .unwrap_err();
    assert_eq!(results, [0, 1]);
    assert_eq!((error.stage(), error.item()), (Some(Stage::Step(2)), Some(3)));
    end(&pool);
}

fn a_limited_stage_that_panics(distribution: Distribution) {
    let pool = pool(2);
    let mut results = Vec::new();
    let fail = |n: usize| if n == 2 { std::panic::panic_any("planned") } else { n };
    let error = numbers(5, distribution)
        .limit_workers(1, |stages| stages.map(fail))
        .ordered()
        .run(&pool, |n| results.push(n))
        .unwrap_err();
    assert_eq!(results, [0, 1]);
    assert_eq!((error.stage(), error.item()), (Some(Stage::Step(1)), Some(2)));
    end(&pool);
}

fn cancelled_in_a_group(distribution: Distribution) {
    let (pool, token) = (pool(2), CancelToken::new());
    let cancel = |n: usize| {
        if n == 2 {
            token.cancel();
        }
        n
    };
    let outcome = numbers(50, distribution)
        .cancel_on(&token)
        .group_by_key(2, |n| *n, |group| group.map(cancel))
        .run(&pool, |_| ());
    assert!(matches!(outcome, Err(PipelineError::Cancelled { .. })), "{outcome:?}");
    end(&pool);
}

/// Both shares of a batch pause, and the items of one are left out. A checker has no time, so that the pauses are over at once.
fn paused_in_two_groups(distribution: Distribution) {
    let pool = pool(2);
    let fail = |n: usize| if n % 2 == 0 { Err("planned") } else { Ok(n) };
    let retry = Retry::times(1).backoff(Duration::from_secs(1));
    let mut results = Vec::new();
    let report = numbers(4, distribution)
        .batch(4)
        .group_by_key(4, |n| *n, |group| group.try_map(fail).on_error(retry).on_error(Skip))
        .run(&pool, |n| results.push(n))
        .unwrap();
    assert_eq!(results, [1, 3]);
    assert_eq!((report.skipped, report.retried), (2, 2));
    end(&pool);
}

fn results_dropped(distribution: Distribution) {
    let pool = pool(2);
    let results = numbers(20, distribution)
        .group_by_key(2, |n| *n, |group| group.map(|n| n))
        .limit_workers(1, |stages| stages.map(|n| n))
        .results(&pool);
    assert!(results.unwrap().next().unwrap().is_ok());
    assert_eq!(pool.spawn(|| 7).join().unwrap(), 7);
    pool.stop();
}

fn in_a_task_of_a_single_worker(distribution: Distribution) {
    let pool = pool(1);
    let inner = Arc::clone(&pool);
    let task = pool.spawn(move || {
        let mut results = Vec::new();
        let numbers = numbers(4, distribution).batch(2).ordered();
        let limited = numbers.limit_workers(1, |stages| stages.map(|n| n));
        let grouped = limited.group_by_key(2, |n| *n, |group| group.map(|n| n));
        grouped.run(&inner, |n| results.push(n)).unwrap();
        results
    });
    assert_eq!(task.join().unwrap(), [0, 1, 2, 3]);
    end(&pool);
}

/// One worker has the batch, and the other one is started for the second group, after the source has ended.
fn a_single_batch_for_two_groups(distribution: Distribution) {
    let pool = pool(2);
    let came = AtomicUsize::new(0);
    let meet = |n: usize| {
        came.fetch_add(1, Ordering::SeqCst);
        while came.load(Ordering::SeqCst) < 2 {
            thread::yield_now();
        }
        n
    };
    let mut results = Vec::new();
    numbers(8, distribution)
        .batch(8)
        .group_by_key(8, |n| *n, |group| group.map(meet))
        .run(&pool, |n| results.push(n))
        .unwrap();
    assert_eq!(results, [0, 1, 2, 3, 4, 5, 6, 7]);
    end(&pool);
}
