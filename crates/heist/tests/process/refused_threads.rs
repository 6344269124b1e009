//! Forks on a system that refuses threads: no standby thread can take over the core of a thread that waits.

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};

use heist_testkit::limits::{ONE_ARENA, limit_address_space};

use crate::common::{Kind, assert_balanced, for_every_strategy, in_child};

for_every_strategy! {
    scope_on_a_deep_stack,
    isolated_scope,
    isolated_joins,
}

const STACK: usize = 64 << 20;
const PARTS: usize = 100;

fn without_threads(kind: Kind, workers: usize, work: fn() -> usize) {
    in_child("refused", &[ONE_ARENA], || {
        let pool = kind.builder(workers).stack_size(STACK).build().expect("a pool");
        pool.spawn(|| ()).join().expect("a result");
        limit_address_space(STACK / 2);
        assert!(kind.builder(1).stack_size(STACK).build().is_err(), "room for one more");
        assert_eq!(pool.install(work), PARTS);
        pool.stop();
        assert_balanced(&pool.stats());
    });
}

fn scope() -> usize {
    let count = AtomicUsize::new(0);
    heist::scope(|scope| {
        for _ in 0..PARTS {
            scope.spawn(|_| _ = count.fetch_add(1, Ordering::Relaxed));
        }
    });
    count.into_inner()
}

/// Calls `f` when a third of the stack is used.
#[inline(never)]
fn on_top(beginning: usize, f: fn() -> usize) -> usize {
    let ballast = black_box([0_u8; 1024]);
    let used = beginning.abs_diff((&raw const ballast).addr());
    let result = if used > STACK / 3 { f() } else { on_top(beginning, f) };
    result + usize::from(black_box(ballast)[0])
}

fn scope_on_a_deep_stack(kind: Kind) {
    without_threads(kind, 1, || {
        let here = 0_u8;
        on_top((&raw const here).addr(), scope)
    });
}

fn isolated_scope(kind: Kind) {
    without_threads(kind, 1, || heist::isolate(scope));
}

fn isolated_joins(kind: Kind) {
    fn fork(parts: usize) -> usize {
        if parts < 2 {
            return parts;
        }
        let (left, right) = heist::join(|| fork(parts / 2), || fork(parts - parts / 2));
        left + right
    }
    without_threads(kind, 2, || heist::isolate(|| fork(PARTS)));
}
