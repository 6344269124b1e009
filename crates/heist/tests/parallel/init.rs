//! The contract of loops with a state: one state for each part that is begun before the part before it has ended.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc;

use heist::parallel;

use crate::common::{Kind, Ledger, for_every_strategy, panic_message};
use crate::{SIZES, everywhere, work};

for_every_strategy! {
    same_results,
    each_state_is_dropped,
    one_state_without_help,
    no_state_without_items,
    panics,
}

fn same_results(kind: Kind) {
    everywhere(kind, &|| {
        for size in SIZES {
            let made = parallel::map_init(0..size, Vec::new, |buffer: &mut Vec<usize>, n| {
                buffer.clear();
                buffer.push(work(n));
                buffer[0]
            });
            assert_eq!(made, (0..size).map(work).collect::<Vec<_>>());

            let mut numbers: Vec<usize> = (0..size).collect();
            parallel::for_each_init(
                &mut numbers,
                || 0,
                |calls, number| {
                    *calls += 1;
                    *number = work(*number);
                },
            );
            assert_eq!(numbers, made);
        }
    });
}

/// A state that counts what it has seen, and adds it to a total when it is dropped.
struct Counting<'t> {
    seen: usize,
    total: &'t AtomicUsize,
}

impl Drop for Counting<'_> {
    fn drop(&mut self) {
        self.total.fetch_add(self.seen, Relaxed);
    }
}

fn each_state_is_dropped(kind: Kind) {
    everywhere(kind, &|| {
        for size in SIZES {
            let total = AtomicUsize::new(0);
            let init = || Counting { seen: 0, total: &total };
            parallel::for_each_init(0..size, init, |state, n| {
                work(n);
                state.seen += 1;
            });
            assert_eq!(total.load(Relaxed), size);
            parallel::map_init(0..size, init, |state, n| {
                work(n);
                state.seen += 1;
            });
            assert_eq!(total.load(Relaxed), 2 * size);
        }
    });
}

fn one_state_without_help(kind: Kind) {
    let pool = kind.pool(2);
    let (started, is_started) = mpsc::channel();
    let (open, opened) = mpsc::channel::<()>();
    let busy = pool.spawn(move || {
        started.send(()).expect("a test that waits");
        let _ = opened.recv();
    });
    is_started.recv().expect("a worker");
    // The other worker is busy, so that nobody helps.
    let states = AtomicUsize::new(0);
    let init = || states.fetch_add(1, Relaxed);
    pool.install(|| parallel::for_each_init(0..100_000_usize, init, |_, n| _ = work(n % 10)));
    assert_eq!(states.load(Relaxed), 1);
    pool.install(|| parallel::map_init(0..100_000_usize, init, |_, n| work(n % 10)));
    assert_eq!(states.load(Relaxed), 2);
    drop(open);
    busy.join().expect("an end");
}

fn no_state_without_items(kind: Kind) {
    everywhere(kind, &|| {
        parallel::for_each_init(0..0, || panic!("no state is needed"), |(): &mut (), _| ());
        let none = parallel::map_init(0..0, || panic!("no state is needed"), |(): &mut (), n| n);
        assert_eq!(none, []);
    });
}

fn panics(kind: Kind) {
    everywhere(kind, &|| {
        for bad in [0, 1, 40, 500, 999] {
            let (ledger, count) = (Ledger::new(1000), AtomicUsize::new(0));
            let failed = catch_unwind(AssertUnwindSafe(|| {
                parallel::map_init(
                    0..1000_usize,
                    || 0,
                    |_, n| {
                        work(n);
                        assert!(n != bad, "at {bad}");
                        count.fetch_add(1, Relaxed);
                        ledger.item(n)
                    },
                )
            }));
            assert_eq!(panic_message(&*failed.unwrap_err()), format!("at {bad}"));
            assert_eq!(ledger.dropped(), count.into_inner(), "every result, once");
        }
        let init = || -> u8 { panic!("no state") };
        let failed = catch_unwind(|| parallel::for_each_init(0..1000, init, |_, _| ()));
        assert_eq!(panic_message(&*failed.unwrap_err()), "no state");
        let failed = catch_unwind(|| parallel::map_init(vec![1, 2, 3], init, |_, n| n));
        assert_eq!(panic_message(&*failed.unwrap_err()), "no state");
    });
}
