//! The contract of loops that stop early: the same results as those of sequential loops, and an end.

use std::ops::ControlFlow::{self, Break, Continue};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use heist::parallel;

use crate::common::{Kind, Ledger, for_every_strategy, panic_message};
use crate::{SIZES, everywhere, work};

const ITEMS: usize = 1_000;

for_every_strategy! {
    same_results,
    first_errors,
    errors_of_every_kind,
    results_or_the_first_error,
    an_end_of_loops_that_have_none,
    all_items_before_the_first,
    no_item_after_the_end_on_one_worker,
    panics,
}

fn same_results(kind: Kind) {
    everywhere(kind, &|| {
        for size in SIZES {
            for step in [1, 2, 37, 5_000] {
                let is_hit = |n: &usize| work(*n) > 0 && n % step == step - 1;
                let expected = (0..size).find(is_hit);
                assert_eq!(parallel::find_first(0..size, is_hit), expected, "{size}, {step}");
                let found = parallel::find_any(0..size, is_hit);
                assert_eq!(found.is_some(), expected.is_some());
                assert!(found.is_none_or(|n| n < size && is_hit(&n)));
                assert_eq!(parallel::any(0..size, |n| is_hit(&n)), expected.is_some());
                assert_eq!(parallel::all(0..size, |n| !is_hit(&n)), expected.is_none());
            }
        }
    });
}

fn first_errors(kind: Kind) {
    everywhere(kind, &|| {
        for size in SIZES {
            for from in [0, 1, 50, 900, 10_000] {
                let calls: Vec<_> = (0..size).map(|_| AtomicBool::new(false)).collect();
                let result = parallel::try_for_each(0..size, |n| {
                    work(n);
                    assert!(!calls[n].swap(true, Relaxed), "an item is processed once");
                    if n >= from && n % 3 == 0 { Err(n) } else { Ok(()) }
                });
                let expected = (0..size).find(|n| *n >= from && n % 3 == 0);
                assert_eq!(result.err(), expected);
                let all = &calls[..expected.map_or(size, |n| n + 1)];
                assert!(all.iter().all(|call| call.load(Relaxed)), "all items before the error");
            }
        }
    });
}

fn errors_of_every_kind(kind: Kind) {
    everywhere(kind, &|| {
        let flow = |end: usize| {
            parallel::try_for_each(
                0..1_000_usize,
                |n| if n < end { Continue(()) } else { Break(n) },
            )
        };
        assert_eq!(flow(77), Break(77));
        assert_eq!(flow(1_000), Continue(()));
        let option = |end: usize| parallel::try_for_each(0..ITEMS, |n| (n < end).then_some(()));
        assert_eq!((option(5), option(1_000)), (None, Some(())));
        let nothing: ControlFlow<()> = parallel::try_for_each(0..0_u8, |_| unreachable!());
        assert_eq!(nothing, Continue(()));
    });
}

fn results_or_the_first_error(kind: Kind) {
    everywhere(kind, &|| {
        for size in SIZES {
            for from in [0, 1, 50, 900, 10_000] {
                let (ledger, made) = (Ledger::new(size), AtomicUsize::new(0));
                let result = parallel::try_map(0..size, |n| {
                    work(n);
                    if n >= from {
                        return Err(n);
                    }
                    made.fetch_add(1, Relaxed);
                    Ok(ledger.item(n))
                });
                match result {
                    Ok(items) => {
                        assert!(size <= from);
                        assert!(items.iter().map(|item| item.number).eq(0..size));
                    }
                    Err(n) => assert!(n == from && n < size),
                }
                assert_eq!(ledger.dropped(), made.into_inner(), "every result, once");
            }
        }
        let sizeless =
            |end: usize| parallel::try_map(0..500_usize, |n| if n < end { Ok(()) } else { Err(n) });
        assert_eq!((sizeless(500).map(|all| all.len()), sizeless(499)), (Ok(500), Err(499)));
    });
}

/// These loops would take years if they did not stop early.
fn an_end_of_loops_that_have_none(kind: Kind) {
    everywhere(kind, &|| {
        let found = parallel::find_any(0..u64::MAX, |n| n % 1_000 == 999);
        assert_eq!(found.map(|n| n % 1_000), Some(999));
        let found = parallel::find_any(0..=u128::MAX, |n| n % 1_000 == 999);
        assert_eq!(found.map(|n| n % 1_000), Some(999));
        assert_eq!(parallel::find_first(0..u64::MAX, |n| n % 1_000 == 999), Some(999));
        assert_eq!(parallel::find_first(0..=u128::MAX, |n| n % 1_000 == 999), Some(999));
        assert!(parallel::any(i128::MIN..i128::MAX, |n| n % 1_000 == 0));
        assert!(!parallel::all(0..=u64::MAX, |n| n % 1_000 < 999));
        let failed =
            parallel::try_for_each(0..u64::MAX, |n| if n % 1_000 == 999 { Err(n) } else { Ok(()) });
        assert_eq!(failed, Err(999));
    });
}

fn all_items_before_the_first(kind: Kind) {
    everywhere(kind, &|| {
        for first in [0, 1, 333, 999] {
            let calls: Vec<_> = (0..1_000).map(|_| AtomicUsize::new(0)).collect();
            let found = parallel::find_first(parallel::enumerate(&calls), |(index, call)| {
                work(*index);
                call.fetch_add(1, Relaxed);
                *index >= first
            });
            assert_eq!(found.map(|(index, _)| index), Some(first));
            assert!(calls[..=first].iter().all(|call| call.load(Relaxed) == 1));
            assert!(calls.iter().all(|call| call.load(Relaxed) <= 1));
        }
    });
}

fn no_item_after_the_end_on_one_worker(kind: Kind) {
    let pool = kind.pool(1);
    for end in [0, 1, 500, 999_999] {
        let calls = AtomicUsize::new(0);
        let is_end = |n: usize| {
            calls.fetch_add(1, Relaxed);
            n == end
        };
        pool.install(|| {
            assert_eq!(parallel::find_any(0..1_000_000_usize, |n| is_end(*n)), Some(end));
            assert_eq!(parallel::find_first(0..1_000_000_usize, |n| is_end(*n)), Some(end));
            assert!(parallel::any(0..1_000_000_usize, is_end));
            assert!(!parallel::all(0..1_000_000_usize, |n| !is_end(n)));
            let attempt = |n| if is_end(n) { Err(n) } else { Ok(()) };
            assert_eq!(parallel::try_for_each(0..1_000_000_usize, attempt), Err(end));
            assert_eq!(parallel::try_map(0..1_000_000_usize, attempt), Err(end));
        });
        assert_eq!(calls.into_inner(), 6 * (end + 1));
    }
}

fn panics(kind: Kind) {
    everywhere(kind, &|| {
        for bad in [0, 1, 500, 999] {
            let check = |n: usize| {
                work(n);
                assert!(n != bad, "at {bad}");
                true
            };
            let failed = [
                catch_unwind(|| parallel::find_any(0..ITEMS, |n| !check(*n)).is_some()),
                catch_unwind(|| parallel::find_first(0..ITEMS, |n| !check(*n)).is_some()),
                catch_unwind(|| parallel::any(0..ITEMS, |n| !check(n))),
                catch_unwind(|| parallel::all(0..ITEMS, check)),
                catch_unwind(|| {
                    parallel::try_for_each(0..ITEMS, |n| check(n).then_some(())).is_some()
                }),
            ];
            for failed in failed {
                assert_eq!(panic_message(&*failed.unwrap_err()), format!("at {bad}"));
            }
            let (ledger, made) = (Ledger::new(ITEMS), AtomicUsize::new(0));
            let failed = catch_unwind(AssertUnwindSafe(|| {
                parallel::try_map(0..ITEMS, |n| {
                    check(n);
                    made.fetch_add(1, Relaxed);
                    Ok::<_, ()>(ledger.item(n))
                })
            }));
            assert_eq!(panic_message(&*failed.unwrap_err()), format!("at {bad}"));
            assert_eq!(ledger.dropped(), made.into_inner(), "every result, once");
        }
    });
}
