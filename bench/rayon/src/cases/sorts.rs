//! Sorting: rayon's own sorts, and two hand-written ones.

use rayon::join;
use rayon::prelude::*;

use super::{Case, Run, on_a_copy};
use harness::random::numbers;

const MILLION: usize = 1_000_000;

/// The sequential cutoff: shorter slices are sorted by insertion. It is small, so that there are many joins.
const CUTOFF: usize = 32;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::outside("sort/unstable", "par_sort_unstable of 1,000,000 u64", |_| {
            sorting(numbers(MILLION), <[u64]>::par_sort_unstable)
        }),
        Case::outside("sort/stable", "par_sort of 1,000,000 u64", |_| {
            sorting(numbers(MILLION), <[u64]>::par_sort)
        }),
        Case::inside("sort/quick", "quicksort by join of 1,000,000 u32", |_| {
            sorting(narrow(), quicksort)
        }),
        Case::inside("sort/merge", "mergesort by join of 1,000,000 u32", |_| {
            let mut buffer = vec![0; MILLION];
            sorting(narrow(), move |data| mergesort(data, &mut buffer))
        }),
    ]
}

fn narrow() -> impl Iterator<Item = u32> {
    numbers(MILLION).map(|number| number as u32)
}

fn sorting<T: Copy + Ord + Send + 'static>(
    input: impl Iterator<Item = T>,
    sort: impl FnMut(&mut [T]) + Send + 'static,
) -> Run {
    let input: Vec<T> = input.collect();
    let mut expected = input.clone();
    expected.sort_unstable();
    on_a_copy(input, expected, sort)
}

fn quicksort(data: &mut [u32]) {
    if data.len() <= CUTOFF {
        return insertion_sort(data);
    }
    let middle = partition(data);
    let (low, high) = data.split_at_mut(middle);
    join(|| quicksort(low), || quicksort(&mut high[1..]));
}

/// Partitions a slice, and returns the index of the pivot: items before it are smaller, items after it are not.
fn partition(data: &mut [u32]) -> usize {
    let last = data.len() - 1;
    let mut three = [0, last / 2, last];
    three.sort_unstable_by_key(|&at| data[at]);
    data.swap(three[1], last);
    let pivot = data[last];
    let mut low = 0;
    for at in 0..last {
        // Without a branch, which could not be predicted: an item that is not smaller changes places with another
        // one that is not.
        let is_smaller = data[at] < pivot;
        data.swap(low, at);
        low += usize::from(is_smaller);
    }
    data.swap(low, last);
    low
}

fn mergesort(data: &mut [u32], buffer: &mut [u32]) {
    if data.len() <= CUTOFF {
        return insertion_sort(data);
    }
    let (left, right) = data.split_at_mut(data.len() / 2);
    let (left_buffer, right_buffer) = buffer.split_at_mut(left.len());
    join(|| mergesort(left, left_buffer), || mergesort(right, right_buffer));
    merge(left, right, buffer);
    data.copy_from_slice(buffer);
}

fn merge(left: &[u32], right: &[u32], out: &mut [u32]) {
    let (mut from_left, mut from_right) = (0, 0);
    while from_left < left.len() && from_right < right.len() {
        let (a, b) = (left[from_left], right[from_right]);
        out[from_left + from_right] = a.min(b);
        from_left += usize::from(a <= b);
        from_right += usize::from(a > b);
    }
    let (left, right) = (&left[from_left..], &right[from_right..]);
    let (rest_of_left, rest_of_right) = out[from_left + from_right..].split_at_mut(left.len());
    rest_of_left.copy_from_slice(left);
    rest_of_right.copy_from_slice(right);
}

fn insertion_sort(data: &mut [u32]) {
    for end in 1..data.len() {
        let value = data[end];
        let mut at = end;
        while at > 0 && data[at - 1] > value {
            data[at] = data[at - 1];
            at -= 1;
        }
        data[at] = value;
    }
}
