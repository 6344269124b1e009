//! The contract of `CancelToken::run`: loops, sorts and scopes end early when the token is cancelled, and leave their data in
//! the documented state.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};

use heist::{CancelToken, Cancelled, Pool, is_cancelled, parallel, stop_point};
use heist_testkit::panics::panic_message;
use heist_testkit::watchdog::watched;

/// Runs the body on a thread of no pool, and on a worker of pools of several sizes.
fn everywhere(name: &'static str, body: fn()) {
    watched(name, move || {
        body();
        for workers in [1, 2, 4] {
            Pool::builder().workers(workers).build().unwrap().install(body);
        }
    });
}

/// More items than any test could process.
const ENDLESS: std::ops::Range<u64> = 0..u64::MAX;

/// Calls `f` with a token that is cancelled by the item that calls the second closure.
fn cancelled<R>(f: impl FnOnce(&(dyn Fn(u64) + Sync)) -> R) -> Result<R, Cancelled> {
    let token = CancelToken::new();
    let cancel = token.clone();
    token.run(|| {
        f(&|item| {
            if item >= 100 {
                cancel.cancel()
            }
        })
    })
}

#[test]
fn every_loop_ends_early() {
    everywhere("every_loop_ends_early", || {
        let ends = [
            cancelled(|at| parallel::for_each(ENDLESS, at)),
            cancelled(|at| parallel::for_each_init(ENDLESS, || (), |(), item| at(item))),
            cancelled(|at| {
                _ = parallel::any(ENDLESS, |item| {
                    at(item);
                    false
                })
            }),
            cancelled(|at| {
                _ = parallel::all(ENDLESS, |item| {
                    at(item);
                    true
                })
            }),
            cancelled(|at| {
                _ = parallel::find_any(ENDLESS, |&item| {
                    at(item);
                    false
                })
            }),
            cancelled(|at| {
                _ = parallel::find_first(ENDLESS, |&item| {
                    at(item);
                    false
                })
            }),
            cancelled(|at| {
                _ = parallel::try_for_each(ENDLESS, |item| {
                    at(item);
                    Some(())
                })
            }),
            cancelled(|at| {
                _ = parallel::reduce(
                    ENDLESS,
                    || 0,
                    |_, item| {
                        at(item);
                        0
                    },
                    |_, _| 0,
                )
            }),
        ];
        assert_eq!(ends, [Err(Cancelled); 8]);
    });
}

#[test]
fn results_and_items_are_dropped_once() {
    everywhere("results_and_items_are_dropped_once", || {
        let ledger = heist_testkit::ledger::Ledger::new(20_000);
        let items: Vec<_> = (0..20_000).map(|number| ledger.item(number)).collect();
        let token = CancelToken::new();
        let seen = AtomicUsize::new(0);
        let ended = token.run(|| {
            parallel::map(items, |item| {
                if seen.fetch_add(1, SeqCst) == 500 {
                    token.cancel();
                }
                item
            })
        });
        // If the last block was running already, the loop has ended.
        assert!(matches!(ended, Err(Cancelled) | Ok(_)));
        drop(ended);
        ledger.assert_each_once();
    });
}

#[test]
fn each_item_once_or_not_at_all() {
    everywhere("each_item_once_or_not_at_all", || {
        let mut items = vec![0_u8; 100_000];
        let token = CancelToken::new();
        let _ = token.run(|| {
            parallel::for_each(parallel::enumerate(&mut items), |(index, item)| {
                *item += 1;
                if index == 10_000 {
                    token.cancel();
                }
            });
        });
        assert!(items.iter().all(|&item| item <= 1));
        assert_eq!(items[10_000], 1);
    });
}

#[test]
fn sorts_keep_all_elements() {
    everywhere("sorts_keep_all_elements", || {
        let mixed = || (0..50_000_u64).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20);
        for unstable in [false, true] {
            let mut values: Vec<_> = mixed().map(|n| n.to_string()).collect();
            let (token, compared) = (CancelToken::new(), AtomicUsize::new(0));
            let ended = token.run(|| {
                let compare = |a: &String, b: &String| {
                    if compared.fetch_add(1, SeqCst) == 50_000 {
                        token.cancel();
                    }
                    a.cmp(b)
                };
                if unstable {
                    parallel::sort_unstable_by(&mut values, compare);
                } else {
                    parallel::sort_by(&mut values, compare);
                }
            });
            if ended.is_ok() {
                assert!(values.is_sorted());
            }
            let (mut left, mut all): (Vec<_>, Vec<_>) =
                (values, mixed().map(|n| n.to_string()).collect());
            left.sort_unstable();
            all.sort_unstable();
            assert_eq!(left, all);
        }
    });
}

#[test]
fn parts_of_a_scope_run_whole_or_not_at_all() {
    everywhere("parts_of_a_scope_run_whole_or_not_at_all", || {
        let (token, begun, ended) = (CancelToken::new(), AtomicUsize::new(0), AtomicUsize::new(0));
        let result = token.run(|| {
            heist::scope(|scope| {
                for n in 0..1_000 {
                    let (token, begun, ended) = (&token, &begun, &ended);
                    scope.spawn(move |_| {
                        begun.fetch_add(1, SeqCst);
                        if n % 100 == 50 {
                            token.cancel();
                        }
                        ended.fetch_add(1, SeqCst);
                    });
                }
            });
        });
        assert_eq!(result, Err(Cancelled));
        assert_eq!(begun.load(SeqCst), ended.load(SeqCst));
        assert!(begun.load(SeqCst) < 1_000);
    });
}

#[test]
fn nested_calls_end_where_they_were_cancelled() {
    everywhere("nested_calls_end_where_they_were_cancelled", || {
        let (outer, inner) = (CancelToken::new(), CancelToken::new());
        // The inner one ends, and the outer one goes on.
        let result = outer.run(|| {
            let ended = inner.run(|| parallel::for_each(ENDLESS, |_| inner.cancel()));
            assert!(!is_cancelled(), "the outer token was not cancelled");
            ended
        });
        assert_eq!(result, Ok(Err(Cancelled)));
        // The outer one is cancelled within the inner one, which does not return.
        let (outer, inner) = (CancelToken::new(), CancelToken::new());
        let result = outer.run(|| {
            let _ = inner.run(|| parallel::for_each(ENDLESS, |_| outer.cancel()));
            unreachable!("the outer call has ended");
        });
        assert_eq!(result, Err::<(), _>(Cancelled));
        // A child is cancelled with its parent: the innermost call ends first.
        let outer = CancelToken::new();
        let inner = outer.child();
        let result = outer.run(|| {
            let ended = inner.run(|| parallel::for_each(ENDLESS, |_| outer.cancel()));
            assert_eq!(ended, Err(Cancelled));
            assert!(is_cancelled());
            stop_point();
            unreachable!("the outer call has ended");
        });
        assert_eq!(result, Err::<(), _>(Cancelled));
    });
}

#[test]
fn results_and_panics_pass_through() {
    everywhere("results_and_panics_pass_through", || {
        let token = CancelToken::new();
        assert_eq!(token.run(|| parallel::map(0..1_000, |n| n)).unwrap().len(), 1_000);
        let panic = catch_unwind(AssertUnwindSafe(|| {
            token.run(|| parallel::for_each(0..1_000, |n| assert_ne!(n, 500, "this one")))
        }));
        let payload = panic.expect_err("it panics");
        let message = panic_message(&*payload);
        assert!(message.contains("this one"), "{message}");
        // It was cancelled, and has a result all the same.
        assert_eq!(
            token.run(|| {
                token.cancel();
                7
            }),
            Ok(7)
        );
        assert_eq!(token.run(|| unreachable!("cancelled before")), Err::<(), _>(Cancelled));
    });
}

#[test]
fn recursion_ends_at_a_stop_point() {
    fn forever(token: &CancelToken, depth: usize) {
        stop_point();
        if depth == 12 {
            token.cancel();
        }
        heist::join(|| forever(token, depth + 1), || forever(token, depth + 1));
    }
    everywhere("recursion_ends_at_a_stop_point", || {
        let token = CancelToken::new();
        assert_eq!(token.run(|| forever(&token, 0)), Err(Cancelled));
        stop_point();
    });
}

#[test]
fn another_thread_cancels_an_endless_loop_on_all_workers() {
    watched("another_thread_cancels_an_endless_loop_on_all_workers", || {
        let pool = Pool::builder().workers(3).build().unwrap();
        for _ in 0..20 {
            let token = CancelToken::new();
            let (begin, begun) = mpsc::channel();
            let canceller = std::thread::spawn({
                let token = token.clone();
                move || begun.recv().is_ok().then(|| token.cancel())
            });
            let result = token.run(|| {
                pool.install(|| {
                    parallel::for_each(ENDLESS, |n| {
                        if n == 10_000 {
                            let _ = begin.send(());
                        }
                    });
                })
            });
            assert_eq!(result, Err(Cancelled));
            canceller.join().unwrap();
        }
        pool.stop();
        let total = pool.stats().total;
        assert_eq!(total.panics, 0, "{total:?}");
        assert_eq!(total.tasks_submitted, total.tasks_completed + total.cancellations, "{total:?}");
    });
}

#[test]
fn what_is_spawned_goes_on() {
    everywhere("what_is_spawned_goes_on", || {
        let token = CancelToken::new();
        let spawned = token.run(|| {
            let inside = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&inside);
            let task = heist::spawn(move || {
                parallel::for_each(0..1_000, |_| _ = counted.fetch_add(1, SeqCst))
            });
            token.cancel();
            (task, inside)
        });
        let (task, counted) = spawned.unwrap();
        task.join().unwrap();
        assert_eq!(counted.load(SeqCst), 1_000);
    });
}

/// Calls its closure when it is dropped.
struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// What a destructor does while the call unwinds is not cancelled, on whatever thread: unwinding from there would end the
/// process.
#[test]
fn destructors_go_on() {
    everywhere("destructors_go_on", || {
        let (token, done) = (CancelToken::new(), AtomicUsize::new(0));
        let count = |_| _ = done.fetch_add(1, SeqCst);
        let ended = token.run(|| {
            let _loop = OnDrop(|| parallel::for_each(0..50_000_u32, count));
            let _scope = OnDrop(|| {
                heist::scope(|scope| (0..100).for_each(|n| scope.spawn(move |_| count(n))));
            });
            let _sort = OnDrop(|| {
                let mut values: Vec<_> =
                    (0..50_000_u32).map(|n| n.wrapping_mul(0x9E37_79B9)).collect();
                parallel::sort(&mut values);
                parallel::sort_unstable_by(&mut values, |a, b| b.cmp(a));
                assert!(values.is_sorted_by(|a, b| a >= b));
                stop_point();
                count(0);
            });
            parallel::for_each(ENDLESS, |_| token.cancel());
        });
        assert_eq!(ended, Err(Cancelled));
        assert_eq!(done.load(SeqCst), 50_101);
    });
}

/// A caller that joins a part which has ended early ends early as well.
#[test]
fn joined_parts_end_their_caller() {
    everywhere("joined_parts_end_their_caller", || {
        let token = CancelToken::new();
        let ended = token.run(|| {
            heist::scope(|scope| {
                let part = scope.spawn_handle(|_| parallel::for_each(ENDLESS, |_| token.cancel()));
                part.join().unwrap();
            });
        });
        assert_eq!(ended, Err(Cancelled));
        // A part that has not begun does not run, and a caller that is not a part of the call gets an error.
        let token = CancelToken::new();
        let ended = heist::scope(|scope| {
            let part = scope.spawn_handle(|_| {
                let ended = token.run(|| {
                    heist::scope(|scope| {
                        token.cancel();
                        scope.spawn_handle(|_| unreachable!("cancelled"));
                    });
                });
                assert_eq!(ended, Err(Cancelled));
            });
            part.join()
        });
        assert!(ended.is_ok(), "{ended:?}");
    });
}

/// A panic is not hidden by a cancellation.
#[test]
fn a_panic_says_more_than_a_cancellation() {
    everywhere("a_panic_says_more_than_a_cancellation", || {
        let token = CancelToken::new();
        let panic = catch_unwind(AssertUnwindSafe(|| {
            token.run(|| {
                heist::scope(|scope| {
                    scope.spawn(|scope| {
                        (0..10).for_each(|_| scope.spawn(|_| ()));
                        token.cancel();
                        panic!("this one");
                    });
                });
            })
        }));
        let payload = panic.expect_err("it panics");
        let message = panic_message(&*payload);
        assert!(message.contains("this one"), "{message}");
    });
}
