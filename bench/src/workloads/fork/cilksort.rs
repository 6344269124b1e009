//! The mergesort of the Cilk distribution: it sorts quarters and merges by halves.

use std::sync::LazyLock;

use harness::metric;
use harness::random::numbers;
use harness::row::Row;

use super::{Case, Fork, Program};

const ITEMS: usize = if cfg!(test) { 20_000 } else { 2_000_000 };

/// The sequential cutoff of the Cilk program: fewer items are neither sorted nor merged in parallel.
const SORT_ALONE: usize = 2048;
const MERGE_ALONE: usize = 2048;

const SORT: Case<Cilksort> = Case {
    workload: "cilksort",
    name: "",
    title: "two million u32",
    metric: &metric::ITEM,
    program: Cilksort,
    limits: &[],
    efficiency: None,
};

pub(super) fn rows() -> Vec<Row> {
    SORT.rows()
}

static UNSORTED: LazyLock<Vec<u32>> =
    LazyLock::new(|| numbers(ITEMS).map(|number| number as u32).collect());

static SORTED: LazyLock<Vec<u32>> = LazyLock::new(|| {
    let mut items = UNSORTED.clone();
    items.sort_unstable();
    items
});

/// The items, and a buffer of the same size.
struct Arrays {
    items: Vec<u32>,
    room: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Cilksort;

impl Program for Cilksort {
    type Input = Arrays;

    fn input(self) -> Arrays {
        // Not zeros: zeroed pages would be allocated only on first access, within the measured time.
        Arrays { items: UNSORTED.clone(), room: UNSORTED.clone() }
    }

    fn run<F: Fork>(self, context: &mut F::Context<'_>, arrays: &mut Arrays) -> u64 {
        sort::<F>(context, &mut arrays.items, &mut arrays.room);
        0
    }

    fn check(self, by: &str, arrays: &Arrays, _: u64) {
        assert!(arrays.items == *SORTED, "{by}: not sorted");
    }

    fn operations(self) -> u64 {
        ITEMS as u64
    }
}

/// Sorts in place. The contents of `room` are lost.
fn sort<F: Fork>(context: &mut F::Context<'_>, items: &mut [u32], room: &mut [u32]) {
    if items.len() <= SORT_ALONE {
        return items.sort_unstable();
    }
    let quarter = items.len() / 4;
    let (low, high) = items.split_at_mut(2 * quarter);
    let (low_room, high_room) = room.split_at_mut(2 * quarter);
    F::join(
        context,
        |context| sort_and_merge::<F>(context, quarter, low, low_room),
        |context| sort_and_merge::<F>(context, quarter, high, high_room),
    );
    merge::<F>(context, low_room, high_room, items);
}

/// Sorts two parts, and merges them into `room`.
fn sort_and_merge<F: Fork>(
    context: &mut F::Context<'_>,
    first: usize,
    items: &mut [u32],
    room: &mut [u32],
) {
    let (low, high) = items.split_at_mut(first);
    let (low_room, high_room) = room.split_at_mut(first);
    F::join(
        context,
        |context| sort::<F>(context, low, low_room),
        |context| sort::<F>(context, high, high_room),
    );
    merge::<F>(context, low, high, room);
}

/// Halves the longer part, and splits the other one where the middle item belongs.
fn merge<F: Fork>(context: &mut F::Context<'_>, a: &[u32], b: &[u32], into: &mut [u32]) {
    let (longer, shorter) = if a.len() < b.len() { (b, a) } else { (a, b) };
    if into.len() <= MERGE_ALONE || shorter.is_empty() {
        return merge_alone(longer, shorter, into);
    }
    let (longer_low, longer_high) = longer.split_at(longer.len() / 2);
    let middle = longer_high[0];
    let (shorter_low, shorter_high) =
        shorter.split_at(shorter.partition_point(|&item| item < middle));
    let (into_low, into_high) = into.split_at_mut(longer_low.len() + shorter_low.len());
    F::join(
        context,
        |context| merge::<F>(context, longer_low, shorter_low, into_low),
        |context| merge::<F>(context, longer_high, shorter_high, into_high),
    );
}

fn merge_alone(a: &[u32], b: &[u32], into: &mut [u32]) {
    let (mut from_a, mut from_b) = (0, 0);
    let mut places = into.iter_mut();
    while from_a < a.len() && from_b < b.len() {
        let place = places.next().expect("there is room for both");
        // Arithmetic instead of a branch, which would be mispredicted half of the time.
        let is_b = b[from_b] < a[from_a];
        *place = if is_b { b[from_b] } else { a[from_a] };
        from_b += usize::from(is_b);
        from_a += usize::from(!is_b);
    }
    let rest = if from_a < a.len() { &a[from_a..] } else { &b[from_b..] };
    places.into_slice().copy_from_slice(rest);
}
