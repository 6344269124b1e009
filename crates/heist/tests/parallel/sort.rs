//! The contract of the sorts: the same result as the sorts of the standard library.

use std::cmp::{Ordering, Reverse};
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering as Memory};

use heist::parallel::{
    sort, sort_by, sort_by_key, sort_unstable, sort_unstable_by, sort_unstable_by_key,
};
use proptest::prelude::{ProptestConfig, any, prop_oneof};
use proptest::test_runner::TestRunner;

use crate::common::{Kind, Rng, WORKERS, once, tests_for};

tests_for!(work_stealing: WORK_STEALING, {
    short,
    around_the_threshold,
    patterns,
    random,
    stable,
    stable_when_descending,
    orders,
    keys,
    strings,
    zero_sized,
    large_elements,
    few_comparisons,
});

once! {
    outside,
}

/// Enough elements for several leaves on each of a few workers.
const MANY: usize = 60_000;

type Sort<T> = (&'static str, fn(&mut [T]));

fn sorts<T: Ord + Clone + Send>() -> [Sort<T>; 6] {
    [
        ("sort", |v| sort(v)),
        ("sort_by", |v| sort_by(v, |a, b| a.cmp(b))),
        ("sort_by_key", |v| sort_by_key(v, |element| element.clone())),
        ("sort_unstable", |v| sort_unstable(v)),
        ("sort_unstable_by", |v| sort_unstable_by(v, |a, b| a.cmp(b))),
        ("sort_unstable_by_key", |v| sort_unstable_by_key(v, |element| element.clone())),
    ]
}

/// Sorts a copy with each function.
fn check<T: Ord + Clone + Send + Debug>(what: &str, v: &[T]) {
    let mut expected = v.to_vec();
    expected.sort();
    for (name, sort) in sorts() {
        let mut sorted = v.to_vec();
        sort(&mut sorted);
        assert!(sorted == expected, "{name}, {} elements: {what}", v.len());
    }
}

fn numbers(seed: u64, count: usize, distinct: usize) -> Vec<usize> {
    let mut rng = Rng::new(seed);
    (0..count).map(|_| rng.below(distinct)).collect()
}

/// Returns slices that are hard for one sort or another.
fn shapes(count: usize) -> Vec<(String, Vec<usize>)> {
    let random = numbers(count as u64, count, usize::MAX);
    let mut shapes = vec![
        ("random".into(), random.clone()),
        ("sorted".into(), (0..count).collect()),
        ("reversed".into(), (0..count).rev().collect()),
        ("all equal".into(), vec![7; count]),
        ("organ pipe".into(), (0..count / 2).chain((0..count.div_ceil(2)).rev()).collect()),
        ("valley".into(), (0..count / 2).rev().chain(0..count.div_ceil(2)).collect()),
        ("saw".into(), (0..count).map(|n| n % 1000).collect()),
        ("two runs".into(), (0..count / 2).chain(0..count.div_ceil(2)).collect()),
        ("falling in pairs".into(), (0..count).rev().map(|n| n / 2).collect()),
        ("the last one first".into(), (1..count).chain([0]).collect()),
        ("the first one last".into(), [count].into_iter().chain(0..count.max(1) - 1).collect()),
        ("zeroes with a few others".into(), random.iter().map(|n| n * (n % 500 / 499)).collect()),
        ("half of them least".into(), random.iter().map(|n| n * (n % 2)).collect()),
        (
            "half of them greatest".into(),
            random.iter().map(|n| n | (n % 2).wrapping_neg()).collect(),
        ),
        ("swapped here and there".into(), {
            let mut v: Vec<usize> = (0..count).collect();
            random.iter().take(count / 100).for_each(|n| v.swap(n % count, n / 7 % count));
            v
        }),
    ];
    for distinct in [2, 3, 16, 300] {
        shapes.push((format!("{distinct} distinct"), numbers(1, count, distinct)));
    }
    shapes
}

fn short(kind: Kind) {
    kind.pool(2).install(|| {
        for count in (0..40).chain([100, 1000]) {
            shapes(count).iter().for_each(|(what, v)| check(what, v));
        }
    });
}

/// Lengths around the threshold for a parallel sort.
fn around_the_threshold(kind: Kind) {
    kind.pool(4).install(|| {
        for count in [4_999, 5_000, 5_001, 9_999, 10_000, 10_001, 20_000, 20_001] {
            check("random", &numbers(3, count, usize::MAX));
        }
    });
}

fn patterns(kind: Kind) {
    for workers in [2, 5] {
        kind.pool(workers).install(|| {
            shapes(MANY + 1).iter().for_each(|(what, v)| check(what, v));
        });
    }
}

/// Random lengths, numbers of distinct elements and numbers of runs.
fn random(kind: Kind) {
    let pools = WORKERS.map(|workers| kind.pool(workers));
    let cases =
        (0..MANY, prop_oneof![1..20_usize, 1..usize::MAX], 1..50_usize, any::<u64>(), 0..3_usize);
    let mut runner = TestRunner::new(ProptestConfig { cases: 30, ..<_>::default() });
    let tried = runner.run(&cases, |(count, distinct, runs, seed, pool)| {
        let mut v = numbers(seed, count, distinct);
        if runs < 25 {
            v.chunks_mut(count / runs + 1).for_each(|run| run.sort());
        }
        pools[pool].install(|| check("random", &v));
        Ok(())
    });
    tried.unwrap();
}

/// The sorts are called on a thread that belongs to no pool.
fn outside() {
    check("random", &numbers(5, MANY, usize::MAX));
}

/// Returns the keys with their positions.
fn numbered(keys: Vec<usize>) -> Vec<(usize, usize)> {
    keys.into_iter().enumerate().map(|(place, key)| (key, place)).collect()
}

fn stable(kind: Kind) {
    kind.pool(4).install(|| {
        for (what, keys) in shapes(MANY) {
            let mut v = numbered(keys);
            sort_by(&mut v, |a, b| a.0.cmp(&b.0));
            assert!(v.is_sorted(), "{what}");
        }
    });
}

/// A strictly descending run may be reversed; one with equal elements may not.
fn stable_when_descending(kind: Kind) {
    kind.pool(2).install(|| {
        let mut v = numbered((0..MANY).rev().collect());
        v[MANY - 1].0 = v[MANY - 2].0;
        sort_by_key(&mut v, |element| element.0);
        assert!(v.is_sorted());
    });
}

fn orders(kind: Kind) {
    kind.pool(2).install(|| {
        let floats: Vec<f64> = numbers(6, MANY, 1 << 20).iter().map(|&n| n as f64 - 5e5).collect();
        let (mut stable, mut unstable) = (floats.clone(), floats);
        sort_by(&mut stable, |a, b| b.total_cmp(a));
        sort_unstable_by(&mut unstable, |a, b| b.total_cmp(a));
        assert!(stable.is_sorted_by(|a, b| a >= b));
        assert_eq!(stable, unstable);
    });
}

/// Keys that are created for the comparison and are neither `Send` nor `Sync`.
fn keys(kind: Kind) {
    use std::rc::Rc;
    kind.pool(2).install(|| {
        let (mut stable, mut unstable) = (numbers(7, MANY, 1 << 20), numbers(7, MANY, 1 << 20));
        sort_by_key(&mut stable, |&n| Reverse(Rc::new(n)));
        sort_unstable_by_key(&mut unstable, |&n| Reverse(Rc::new(n)));
        assert!(stable.is_sorted_by(|a, b| a >= b));
        assert_eq!(stable, unstable);
    });
}

fn strings(kind: Kind) {
    kind.pool(4).install(|| {
        for distinct in [1 << 30, 100] {
            let v: Vec<_> = numbers(8, MANY / 2, distinct).iter().map(usize::to_string).collect();
            check("strings", &v);
        }
    });
}

/// Elements without a size need no comparison.
fn zero_sized(kind: Kind) {
    kind.pool(2).install(|| {
        let mut v = vec![(); MANY];
        sort(&mut v);
        sort_unstable(&mut v);
        sort_by(&mut v, |(), ()| panic!("compared"));
        sort_unstable_by(&mut v, |(), ()| panic!("compared"));
    });
}

/// Elements that are expensive to swap.
fn large_elements(kind: Kind) {
    kind.pool(4).install(|| {
        for distinct in [usize::MAX, 3] {
            let v: Vec<_> = numbers(9, MANY / 3, distinct).iter().map(|&n| [n; 16]).collect();
            check("large", &v);
        }
    });
}

/// No shape takes more than a multiple of `n log n` comparisons, and easy shapes take few.
fn few_comparisons(kind: Kind) {
    kind.pool(4).install(|| {
        for (what, v) in shapes(MANY) {
            let compared = AtomicUsize::new(0);
            let compare = |a: &usize, b: &usize| -> Ordering {
                compared.fetch_add(1, Memory::Relaxed);
                a.cmp(b)
            };
            let limit = match what.as_str() {
                "sorted" | "reversed" | "all equal" => MANY + 100,
                "zeroes with a few others" | "2 distinct" | "3 distinct" => 7 * MANY,
                _ => 2 * MANY * MANY.ilog2() as usize,
            };
            sort_by(&mut v.clone(), compare);
            let stable = compared.swap(0, Memory::Relaxed);
            sort_unstable_by(&mut v.clone(), compare);
            let unstable = compared.load(Memory::Relaxed);
            assert!(stable < limit, "{what}: {stable} comparisons");
            assert!(unstable < limit, "{what}: {unstable} comparisons, unstable");
        }
    });
}
