//! The reduce workload: items that take some microseconds each are counted in hash maps, which are merged. An accumulator that is
//! begun too often shows in the time: to merge two maps takes as long as some items.

use std::collections::HashMap;
use std::hint::black_box;
use std::time::Instant;

use harness::metric::{self, Metric};
use harness::random::mix;
use harness::row::{Row, Sample};
use harness::target::{Target, Than};
use heist::parallel;
use rayon::ThreadPool;
use rayon::prelude::*;

use crate::peers::heist::Stealing;
use crate::peers::{Pool, global, kept};

const ITEMS: u64 = if cfg!(test) { 200 } else { 20_000 };

/// How often an item is mixed: about 5 µs.
const TURNS: u32 = 1_100;

/// The number of different keys, and so the size of a map that has counted many items.
const KEYS: u64 = 1_000;

const ITEM: Metric = Metric { title: "ns per item", digits: (0, 1), ..metric::TIME };

const PLAIN: &str = "plain";

type Counts = HashMap<u64, u64>;

pub(crate) fn rows() -> Vec<Row> {
    let title = "20,000 items of 5 µs, counted in a hash map, 2 workers";
    let mut row = Row::of_pools("reduce", "map".into(), title.into(), vec![&ITEM]);
    row.references = vec![PLAIN, ThreadPool::NAME];
    row.workers = Some(global::WORKERS);
    row.enter(Stealing::NAME, || {
        let pool = kept::pool::<Stealing>(global::WORKERS);
        let count = || parallel::reduce(0..black_box(ITEMS), Counts::new, counted, merged);
        measure(Stealing::NAME, || pool.install(count))
    });
    row.enter(ThreadPool::NAME, || {
        let pool = kept::pool::<ThreadPool>(global::WORKERS);
        let items = || (0..black_box(ITEMS)).into_par_iter();
        let count = || items().fold(Counts::new, counted).reduce(Counts::new, merged);
        measure(ThreadPool::NAME, || pool.install(count))
    });
    row.enter_sequential(PLAIN, || measure(PLAIN, plain));
    row.targets = vec![Target {
        of: Stealing::NAME,
        metric: &ITEM,
        than: Than::Entry(ThreadPool::NAME),
        at_most: 1.0,
    }];
    vec![row]
}

fn measure(by: &str, count: impl Fn() -> Counts) -> Sample {
    let start = Instant::now();
    let found = count();
    let time = start.elapsed();
    let all: u64 = found.values().sum();
    assert_eq!(all, ITEMS, "{by}: wrong result: not all items");
    // The sum of all keys is that of another order as well.
    let keys = |counts: &Counts| counts.iter().map(|(key, count)| key * count).sum::<u64>();
    let expected = (0..ITEMS).map(|item| key(item, 0)).sum::<u64>();
    let found = keys(&found);
    assert_eq!(found, expected, "{by}: wrong result: not the counts");
    Sample::new(time, ITEMS)
}

fn plain() -> Counts {
    (0..black_box(ITEMS)).fold(Counts::new(), counted)
}

fn counted(mut counts: Counts, item: u64) -> Counts {
    *counts.entry(key(item, black_box(TURNS))).or_default() += 1;
    counts
}

/// Returns the key of an item, after so many turns of work that has no influence on it.
fn key(item: u64, turns: u32) -> u64 {
    black_box((0..turns).fold(item, |value, _| mix(value)));
    mix(item) % KEYS
}

fn merged(left: Counts, right: Counts) -> Counts {
    let (mut counts, others) = if left.len() < right.len() { (right, left) } else { (left, right) };
    for (key, count) in others {
        *counts.entry(key).or_default() += count;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_merged() {
        let some = |items: std::ops::Range<u64>| items.fold(Counts::new(), counted);
        assert_eq!(merged(some(0..50), some(50..ITEMS)), plain());
        assert_eq!(merged(plain(), Counts::new()), plain());
    }
}
