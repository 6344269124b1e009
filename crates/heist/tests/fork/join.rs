//! The contract of `join`: both closures run exactly once, on any threads, and their results and panics
//! reach the caller.

use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use heist::Pool;

use crate::common::{Kind, Ledger, WORKERS, assert_balanced, for_every_strategy};

for_every_strategy! {
    a_fork_at_every_call,
    a_panic_waits_for_the_other_half,
    scopes_wait_for_all,
    an_isolated_scope_ends,
    borrowed_halves,
    large_closures_and_results,
    nothing_in_and_nothing_out,
    drops_of_private_halves,
    drops_of_stolen_halves,
    drops_in_a_tree,
    in_tasks,
    outside_of_any_pool,
    from_other_threads,
    pools_that_wait_for_each_other,
    deep_on_the_left,
    deep_on_the_right,
}

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = heist::join(move || fib(n - 1), move || fib(n - 2));
    a + b
}

fn a_fork_at_every_call(kind: Kind) {
    for workers in [1, 2, 4] {
        let pool = kind.pool(workers);
        assert_eq!(pool.install(|| fib(20)), 6765);
        pool.stop();
        let stats = pool.stats();
        assert_eq!(stats.total.tasks_submitted, stats.total.tasks_completed);
    }
}

fn a_panic_waits_for_the_other_half(kind: Kind) {
    let pool = kind.pool(2);
    let ran = AtomicUsize::new(0);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        pool.join(|| panic!("left"), || ran.fetch_add(1, Ordering::Relaxed))
    }));
    assert_eq!(*panicked.unwrap_err().downcast::<&str>().unwrap(), "left");
    assert_eq!(ran.into_inner(), 1);
}

fn scopes_wait_for_all(kind: Kind) {
    let pool = kind.pool(3);
    let count = AtomicUsize::new(0);
    pool.scope(|scope| {
        for _ in 0..1000 {
            scope.spawn(|scope| {
                scope.spawn(|_| {
                    count.fetch_add(1, Ordering::Relaxed);
                });
            });
        }
    });
    assert_eq!(count.into_inner(), 1000);
}

fn an_isolated_scope_ends(kind: Kind) {
    let pool = kind.pool(1);
    let count = AtomicUsize::new(0);
    pool.install(|| {
        heist::isolate(|| {
            heist::scope(|scope| {
                for _ in 0..100 {
                    scope.spawn(|_| {
                        count.fetch_add(1, Ordering::Relaxed);
                    });
                }
            })
        })
    });
    assert_eq!(count.into_inner(), 100);
}

/// Keeps forking until another thread has set the flag, such that an idle thread can take an older half.
fn fork_until(happened: &AtomicBool) {
    while !happened.load(Ordering::Acquire) {
        heist::join(|| (), thread::yield_now);
    }
}

/// Adds one to each number, with one fork per number.
fn increment(numbers: &mut [usize]) {
    match numbers {
        [] => {}
        [one] => *one += 1,
        many => {
            let (left, right) = many.split_at_mut(many.len() / 2);
            heist::join(|| increment(left), || increment(right));
        }
    }
}

fn borrowed_halves(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let mut numbers: Vec<usize> = (0..10_000).collect();
        for _ in 0..10 {
            pool.install(|| increment(&mut numbers));
        }
        assert!(numbers.iter().enumerate().all(|(index, &number)| number == index + 10));
        let (mut left, mut right) = (0, 0);
        pool.join(|| left += 1, || right += 2);
        assert_eq!((left, right), (1, 2));
    }
}

/// Closures and results that are far larger than a task slot.
fn large_closures_and_results(kind: Kind) {
    fn tree(ballast: [u64; 40], depth: u64) -> [u64; 50] {
        let mut sum = [0; 50];
        if depth == 0 {
            sum[..40].copy_from_slice(&ballast);
            return sum;
        }
        let (mut one, mut other) = (ballast, ballast);
        one[3] += 1;
        other[39] += 1;
        let halves = heist::join(move || tree(one, depth - 1), move || tree(other, depth - 1));
        sum.iter_mut().zip(halves.0).zip(halves.1).for_each(|((sum, a), b)| *sum = a + b);
        sum
    }
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let sum = pool.install(|| tree([1; 40], 10));
        // A path has one bit for each of its ten forks; half of all bits are set.
        let expected = |place| match place {
            3 | 39 => 1024 + 1024 * 5,
            0..40 => 1024,
            _ => 0,
        };
        assert!(sum.iter().enumerate().all(|(place, &sum)| sum == expected(place)), "{sum:?}");
        let started = AtomicBool::new(workers == 1);
        let ballast = [7_u64; 40];
        let second = || {
            started.store(true, Ordering::Release);
            [ballast, black_box(ballast)]
        };
        assert_eq!(pool.join(|| fork_until(&started), second).1, [[7; 40]; 2]);
    }
}

fn nothing_in_and_nothing_out(kind: Kind) {
    fn tree(depth: u32) {
        static BOTTOM: AtomicUsize = AtomicUsize::new(0);
        if depth == 0 {
            BOTTOM.fetch_add(1, Ordering::Relaxed);
        } else if depth % 2 == 1 {
            heist::join(|| (), || ());
            tree(depth - 1);
        } else {
            heist::join(|| tree(0), || tree(0));
            tree(depth - 1);
        }
    }
    #[derive(Debug, PartialEq)]
    struct Nothing;
    for workers in WORKERS {
        let pool = kind.pool(workers);
        pool.install(|| tree(1000));
        for _ in 0..1000 {
            assert_eq!(pool.join(|| Nothing, || Nothing), (Nothing, Nothing));
        }
    }
}

/// The captured values and the results of both halves are dropped exactly once.
fn drops(kind: Kind, workers: usize, elsewhere: bool) {
    const ROUNDS: usize = 200;
    let pool = kind.pool(workers);
    let ledger = Ledger::new(4 * ROUNDS);
    pool.install(|| {
        for first in (0..ROUNDS).map(|round| 4 * round) {
            let [a, b, left, right] = [0, 1, 2, 3].map(|number| ledger.item(first + number));
            let started = &AtomicBool::new(!elsewhere);
            let one = move || {
                fork_until(started);
                (a.number, left)
            };
            let other = move || {
                started.store(true, Ordering::Release);
                (b.number, right)
            };
            let ((a, left), (b, right)) = heist::join(one, other);
            let numbers = [a, b, left.number, right.number].map(|number| number - first);
            assert_eq!(numbers, [0, 1, 2, 3]);
        }
    });
    ledger.assert_each_once();
    pool.stop();
    assert_balanced(&pool.stats());
}

fn drops_of_private_halves(kind: Kind) {
    drops(kind, 1, false);
}

fn drops_of_stolen_halves(kind: Kind) {
    for workers in [2, 4] {
        drops(kind, workers, true);
    }
}

/// Some halves stay private, some are published and taken back, some are stolen.
fn drops_in_a_tree(kind: Kind) {
    const ITEMS: usize = 1 << 14;
    /// The first item belongs to the fork itself, the others to its halves.
    fn tree(ledger: &Ledger, first: usize, items: usize) -> usize {
        if items == 0 {
            return 0;
        }
        let captured = ledger.item(first);
        let (few, many) = ((items - 1) / 2, items / 2);
        let (left, right) = heist::join(
            move || tree(ledger, first + 1, few) + captured.number,
            move || tree(ledger, first + 1 + few, many),
        );
        left + right
    }
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let ledger = Ledger::new(ITEMS);
        assert_eq!(pool.install(|| tree(&ledger, 0, ITEMS)), ITEMS * (ITEMS - 1) / 2);
        ledger.assert_each_once();
    }
}

fn in_tasks(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let tasks = [(); 10].map(|()| pool.spawn(|| fib(14)));
        let batch = pool.spawn_batch((0..10).map(|n| move || fib(n)));
        assert_eq!(pool.install(|| heist::join(|| fib(15), || fib(16))), (610, 987));
        assert_eq!(batch.join().expect("results"), [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]);
        tasks.into_iter().for_each(|task| assert_eq!(task.join().expect("a result"), 377));
        let nested = pool.install(|| {
            let half = || heist::spawn(|| fib(12)).join().expect("a result");
            heist::join(half, || pool.install(|| fib(12)))
        });
        assert_eq!(nested, (144, 144));
        pool.stop();
        assert_balanced(&pool.stats());
    }
}

/// These run on the global pool, which is the same for every strategy.
fn outside_of_any_pool(kind: Kind) {
    assert_eq!(fib(12), 144);
    let pool = kind.pool(1);
    let mut numbers = [0; 100];
    heist::join(|| increment(&mut numbers), || assert_eq!(pool.install(|| fib(10)), 55));
    assert_eq!(numbers, [1; 100]);
}

fn from_other_threads(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        assert_eq!(pool.join(|| fib(8), || fib(9)), (21, 34));
                    }
                });
            }
        });
        pool.stop();
        assert_balanced(&pool.stats());
    }
}

fn pools_that_wait_for_each_other(kind: Kind) {
    fn bounce(here: &Pool, there: &Pool, depth: u32) -> u64 {
        if depth == 0 {
            return 1;
        }
        let half = || bounce(there, here, depth - 1);
        let (left, right) = here.join(half, half);
        left + right
    }
    for workers in [1, 2] {
        let (one, other) = (kind.pool(workers), kind.pool(workers));
        thread::scope(|scope| {
            scope.spawn(|| assert_eq!(bounce(&one, &other, 6), 64));
            scope.spawn(|| assert_eq!(bounce(&other, &one, 6), 64));
        });
        for pool in [one, other] {
            pool.stop();
            assert_balanced(&pool.stats());
        }
    }
}

/// The depth of nested forks.
const DEEP: usize = if cfg!(debug_assertions) { 50_000 } else { 1_000_000 };

fn on_a_large_stack(kind: Kind, deep: fn(usize) -> usize) {
    for workers in [1, 2] {
        let pool = kind.builder(workers).stack_size(1 << 30).build().expect("a pool");
        assert_eq!(pool.install(|| deep(DEEP)), DEEP);
        pool.stop();
        assert_balanced(&pool.stats());
    }
}

fn deep_on_the_left(kind: Kind) {
    fn deep(forks: usize) -> usize {
        if forks == 0 {
            return 0;
        }
        let (below, here) = heist::join(move || deep(forks - 1), || 1);
        below + here
    }
    on_a_large_stack(kind, deep);
}

fn deep_on_the_right(kind: Kind) {
    fn deep(forks: usize) -> usize {
        if forks == 0 {
            return 0;
        }
        let (here, below) = heist::join(|| 1, move || deep(forks - 1));
        below + here
    }
    on_a_large_stack(kind, deep);
}
