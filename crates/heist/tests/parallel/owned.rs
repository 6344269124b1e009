//! The contract of vectors and arrays by value: each item is given to the closure or dropped, once, whatever happens.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use heist::parallel::{self, IntoPieces};

use crate::common::{Kind, Ledger, Tracked, for_every_strategy, panic_message};
use crate::{SIZES, everywhere, work};

for_every_strategy! {
    each_item_is_moved_once,
    arrays,
    nothing_is_lost_when_a_closure_panics,
    nothing_is_lost_when_a_destructor_panics,
    nothing_is_lost_when_the_loop_stops_early,
    the_longer_one_of_a_pair,
    pieces_that_outlive_the_loop,
}

const ITEMS: usize = 1_000;

fn tracked(ledger: &Ledger, size: usize) -> Vec<Tracked> {
    (0..size).map(|number| ledger.item(number)).collect()
}

fn each_item_is_moved_once(kind: Kind) {
    everywhere(kind, &|| {
        for size in SIZES {
            let ledger = Ledger::new(size);
            let kept = parallel::map(tracked(&ledger, size), |item| {
                work(item.number);
                item
            });
            assert_eq!(ledger.dropped(), 0);
            assert!(kept.iter().enumerate().all(|(place, item)| place == item.number));
            parallel::for_each(kept, drop);
            ledger.assert_each_once();
        }
    });
}

fn arrays(kind: Kind) {
    everywhere(kind, &|| {
        let words = parallel::map(["a", "b", "c"].map(String::from), |word| word + "!");
        assert_eq!(words, ["a!", "b!", "c!"]);
        let none: [String; 0] = [];
        parallel::for_each(none, |_| unreachable!());
        assert_eq!(parallel::map([(); 500], |()| 1).len(), 500);
    });
}

fn nothing_is_lost_when_a_closure_panics(kind: Kind) {
    everywhere(kind, &|| {
        for bad in [0, 1, 40, 500, ITEMS - 1] {
            let ledger = Ledger::new(ITEMS);
            let failed = catch_unwind(AssertUnwindSafe(|| {
                parallel::map(tracked(&ledger, ITEMS), |item| {
                    work(item.number);
                    assert!(item.number != bad, "bad item");
                    item
                })
            }));
            assert_eq!(panic_message(&*failed.unwrap_err()), "bad item");
            ledger.assert_each_once();

            let ledger = Ledger::new(ITEMS);
            let failed = catch_unwind(AssertUnwindSafe(|| {
                parallel::for_each(
                    parallel::enumerate(tracked(&ledger, ITEMS)),
                    |(index, item)| {
                        assert_eq!(index, item.number);
                        work(index);
                        assert!(index != bad, "bad index");
                    },
                );
            }));
            assert_eq!(panic_message(&*failed.unwrap_err()), "bad index");
            ledger.assert_each_once();
        }
    });
}

fn nothing_is_lost_when_a_destructor_panics(kind: Kind) {
    everywhere(kind, &|| {
        let ledger = Ledger::new(ITEMS);
        let mut items = tracked(&ledger, 500);
        items.push(ledger.bomb(500));
        items.extend((501..ITEMS).map(|number| ledger.item(number)));
        let failed = catch_unwind(AssertUnwindSafe(|| parallel::for_each(items, drop)));
        assert_eq!(failed.unwrap_err().downcast_ref(), Some(&500_usize));
        ledger.assert_each_once();
    });
}

fn nothing_is_lost_when_the_loop_stops_early(kind: Kind) {
    everywhere(kind, &|| {
        for end in [0, 1, 40, 500, ITEMS - 1] {
            let ledger = Ledger::new(ITEMS);
            let is_end = |item: &Tracked| {
                work(item.number);
                item.number == end
            };
            let found = parallel::find_any(tracked(&ledger, ITEMS), is_end);
            assert_eq!(found.map(|item| item.number), Some(end));
            ledger.assert_each_once();

            let ledger = Ledger::new(ITEMS);
            let found = parallel::find_first(tracked(&ledger, ITEMS), |item| item.number >= end);
            assert_eq!(found.map(|item| item.number), Some(end));
            ledger.assert_each_once();

            let ledger = Ledger::new(ITEMS);
            let keep = |item: Tracked| if item.number < end { Ok(item) } else { Err(item) };
            let failed = parallel::try_map(tracked(&ledger, ITEMS), keep);
            assert_eq!(failed.map_err(|item| item.number).err(), Some(end));
            ledger.assert_each_once();
        }
    });
}

fn the_longer_one_of_a_pair(kind: Kind) {
    everywhere(kind, &|| {
        let (long, short) = (Ledger::new(ITEMS), Ledger::new(300));
        let pairs = parallel::zip(tracked(&long, ITEMS), tracked(&short, 300));
        assert_eq!(long.dropped(), ITEMS - 300);
        let sum = AtomicUsize::new(0);
        parallel::for_each(pairs, |(a, b)| _ = sum.fetch_add(a.number + b.number, Relaxed));
        assert_eq!(sum.into_inner(), 2 * (0..300).sum::<usize>());
        long.assert_each_once();
        short.assert_each_once();
    });
}

fn pieces_that_outlive_the_loop(kind: Kind) {
    everywhere(kind, &|| {
        let ledger = Ledger::new(ITEMS);
        let keep = |some| vec![some];
        let join = |left: Vec<_>, right| left.into_iter().chain(right).collect();
        let pieces = parallel::reduce_pieces(tracked(&ledger, ITEMS), keep, join);
        assert_eq!(ledger.dropped(), 0);
        let numbers = pieces.into_iter().flatten().flatten().map(|item| item.number);
        assert!(numbers.eq(0..ITEMS));
        ledger.assert_each_once();
    });
}

#[test]
fn a_vector_is_an_iterator_over_its_items() {
    let mut items = vec![1, 2, 3].into_pieces();
    assert_eq!((items.next(), items.len(), items.sum()), (Some(1), 2, 5));
}
