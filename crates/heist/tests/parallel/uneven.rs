//! Loops whose first items say nothing about the others: they are shared all the same.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Mutex;
use std::thread::{self, ThreadId};
use std::time::Duration;

use heist::Pool;
use heist::parallel;
use heist_testkit::test_path;

use crate::common::{in_child, watched};

const ITEMS: usize = 10_000;
/// Items from this one on are long.
const LONG: usize = 9_000;
/// From this item on, a thread that is alone gives the others plenty of time.
const LAST: usize = 9_900;

/// The threads that have run long items.
#[derive(Default)]
struct Meeting(Mutex<HashSet<ThreadId>>);

impl Meeting {
    /// An item of the loop. A long one takes its time until a second thread has run one: some five seconds in all,
    /// in which an idle worker is sure to come if it is called.
    fn item(&self, item: usize) {
        if item < LONG {
            return;
        }
        self.0.lock().unwrap().insert(thread::current().id());
        if !self.is_met() {
            thread::sleep(Duration::from_millis(if item < LAST { 1 } else { 50 }));
        }
    }

    fn is_met(&self) -> bool {
        self.0.lock().unwrap().len() > 1
    }
}

fn shared_to_the_end(name: &str, run: impl Fn(&Meeting)) {
    for _ in 0..5 {
        let meeting = Meeting::default();
        run(&meeting);
        assert!(meeting.is_met(), "one thread ran all long items: {name}");
    }
}

fn all_kinds(place: impl Fn(&(dyn Fn() + Sync))) {
    let each = |meeting: &Meeting| {
        place(&|| parallel::for_range(0..ITEMS, |item| meeting.item(item)));
    };
    shared_to_the_end("for_range", each);
    let pieces = |meeting: &Meeting| {
        // Short items take no time at all here, whatever the compiler makes of a loop.
        let each = |some: Range<usize>| {
            (some.start.max(LONG)..some.end).for_each(|item| meeting.item(item))
        };
        place(&|| _ = parallel::reduce_pieces(0..ITEMS, each, |(), ()| ()));
    };
    shared_to_the_end("reduce_pieces", pieces);
    let map = |meeting: &Meeting| {
        place(&|| assert_eq!(parallel::map(0..ITEMS, |item| meeting.item(item)).len(), ITEMS));
    };
    shared_to_the_end("map", map);
    let reduce = |meeting: &Meeting| {
        let count = |count, item| {
            meeting.item(item);
            count + 1
        };
        place(&|| assert_eq!(parallel::reduce(0..ITEMS, || 0, count, |a, b| a + b), ITEMS));
    };
    shared_to_the_end("reduce", reduce);
}

#[test]
fn long_items_after_many_short_ones_are_shared() {
    watched(test_path!("long_items_after_many_short_ones_are_shared"), || {
        let pool = Pool::builder().workers(2).build().unwrap();
        all_kinds(|run| pool.install(run));
    });
}

/// In a process of its own, because other tests use the global pool.
#[test]
fn long_items_after_many_short_ones_are_shared_outside_of_any_pool() {
    watched(test_path!("long_items_after_many_short_ones_are_shared_outside_of_any_pool"), || {
        in_child("outside", &[("HEIST_WORKERS", Some("2"))], || {
            all_kinds(|run| run());
        });
    });
}
