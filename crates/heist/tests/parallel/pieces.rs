//! The contract of what a loop can run over: chunks, indices, pairs and ranges. Every loop gives the same result as the
//! sequential one.

use std::ops::RangeInclusive;

use heist::parallel::{self, IntoPieces, Pieces, with_min_len};

use crate::common::{Kind, for_every_strategy, panic_message};
use crate::{SIZES, everywhere, work};

for_every_strategy! {
    in_chunks,
    in_chunks_in_place,
    with_their_indices,
    in_pairs,
    inclusive_ranges,
    in_all_loops,
}

const CHUNKS: [usize; 5] = [1, 2, 7, 64, usize::MAX];

fn in_chunks(kind: Kind) {
    everywhere(kind, &|| {
        for size in SIZES {
            let numbers: Vec<usize> = (0..size).collect();
            for chunk in CHUNKS {
                let made = parallel::map(parallel::chunks(&numbers, chunk), <[usize]>::to_vec);
                assert!(
                    made.iter().map(Vec::as_slice).eq(numbers.chunks(chunk)),
                    "{size}, {chunk}"
                );
            }
        }
    });
}

fn in_chunks_in_place(kind: Kind) {
    everywhere(kind, &|| {
        for size in SIZES {
            for chunk in CHUNKS {
                let (mut here, mut expected): (Vec<_>, Vec<_>) = (0..size).map(|n| (n, n)).unzip();
                parallel::for_each(parallel::chunks_mut(&mut here, chunk), <[usize]>::reverse);
                expected.chunks_mut(chunk).for_each(<[usize]>::reverse);
                assert_eq!(here, expected, "{size}, {chunk}");
            }
        }
    });
}

fn with_their_indices(kind: Kind) {
    everywhere(kind, &|| {
        for size in SIZES {
            let mut numbers: Vec<usize> = (10..10 + size).collect();
            parallel::for_each(parallel::enumerate(&mut numbers), |(index, number)| {
                assert_eq!(*number, index + 10);
                work(index);
                *number = index;
            });
            assert_eq!(numbers, (0..size).collect::<Vec<_>>());
            let chunks = parallel::enumerate(parallel::chunks(&numbers, 3));
            let made = parallel::map(chunks, |(index, chunk)| index * 3 == chunk[0]);
            assert_eq!(made, vec![true; size.div_ceil(3)]);
        }
    });
}

fn in_pairs(kind: Kind) {
    everywhere(kind, &|| {
        for (left, right) in [(0, 5), (5, 0), (1_000, 1_000), (1_000, 999), (64, 8_000)] {
            let numbers: Vec<usize> = (0..left).collect();
            let pairs = parallel::map(parallel::zip(&numbers, 5..5 + right), |(a, b)| (*a, b));
            assert_eq!(pairs, (0..left).zip(5..5 + right).collect::<Vec<_>>());
        }
    });
}

fn inclusive_ranges(kind: Kind) {
    everywhere(kind, &|| {
        assert_eq!(parallel::map(0..=u8::MAX, |n| n), (0..=u8::MAX).collect::<Vec<_>>());
        assert_eq!(
            parallel::map(i8::MIN..=i8::MAX, |n| n),
            (i8::MIN..=i8::MAX).collect::<Vec<_>>()
        );
        let top = u128::MAX - 5_000;
        assert_eq!(parallel::map(top..=u128::MAX, |n| n), (top..=u128::MAX).collect::<Vec<_>>());
        assert_eq!(parallel::map(top..u128::MAX, |n| n), (top..u128::MAX).collect::<Vec<_>>());
        let bottom = i128::MIN + 5_000;
        let low = parallel::map(i128::MIN..bottom, |n| n);
        assert_eq!(low, (i128::MIN..bottom).collect::<Vec<_>>());
        parallel::for_each(RangeInclusive::new(5, 3_u32), |_| panic!("there is nothing in it"));
    });
}

/// Runs every loop over the same items, which are numbers from zero on after `number`.
fn all_loops<I, T>(size: usize, items: impl Fn() -> I, number: impl Fn(T) -> usize + Sync)
where
    I: IntoPieces<Pieces: Pieces<Item = T>>,
    T: Send,
{
    let sum = |numbers: Vec<usize>| numbers.into_iter().sum::<usize>();
    let total = (0..size).sum();
    for loops in [with_min_len(0), with_min_len(1), with_min_len(100)] {
        loops.for_each(items(), |item| assert!(number(item) < size));
        loops.for_each_init(items(), || 0, |most, item| *most = number(item).max(*most));
        assert_eq!(sum(loops.map(items(), &number)), total);
        assert_eq!(sum(loops.map_init(items(), || 0, |_, item| number(item))), total);
        assert_eq!(loops.reduce(items(), || 0, |a, item| a + number(item), |a, b| a + b), total);
        let each = |some: I::Pieces| some.into_iter().map(&number).sum::<usize>();
        let reduced = loops.reduce_pieces(items(), each, |a, b| a + b);
        assert_eq!(reduced, (size > 0).then_some(total));
        assert!(loops.find_any(items(), |_| false).is_none());
        assert_eq!(loops.find_any(items(), |_| true).is_some(), size > 0);
        assert_eq!(loops.find_first(items(), |_| true).map(&number), (size > 0).then_some(0));
        assert_eq!(loops.any(items(), |item| number(item) + 1 == size), size > 0);
        assert!(loops.all(items(), |item| number(item) < size));
        let failing = |item| if number(item) >= size / 2 { Err(()) } else { Ok(()) };
        assert_eq!(loops.try_for_each(items(), failing).is_err(), size > 0);
        let made = loops.try_map(items(), |item| Ok::<_, ()>(number(item)));
        assert_eq!(made.map(sum), Ok(total));
    }
}

fn in_all_loops(kind: Kind) {
    everywhere(kind, &|| {
        for size in [0, 1, 2, 3, 65, 1_000] {
            let numbers: Vec<usize> = (0..size).collect();
            all_loops(size, || 0..size, |n| n);
            all_loops(size, || &numbers, |n| *n);
            all_loops(size, || numbers.clone(), |n| n);
            all_loops(size, || parallel::chunks(&numbers, 1), |chunk| chunk[0]);
            all_loops(size, || parallel::enumerate(&numbers), |(index, _)| index);
            all_loops(size, || parallel::zip(numbers.clone(), 7..2_000), |(n, _)| n);
        }
    });
}

#[test]
fn chunks_of_zero_elements_are_refused() {
    let refused = std::panic::catch_unwind(|| parallel::chunks(&[1, 2], 0).len());
    let expected = "chunks of zero elements: the size of a chunk must be at least one";
    assert_eq!(panic_message(&*refused.unwrap_err()), expected);
    let refused = std::panic::catch_unwind(|| parallel::chunks_mut(&mut [1, 2], 0).len());
    assert_eq!(panic_message(&*refused.unwrap_err()), expected);
}

#[test]
fn chunks_are_split_between_each_other() {
    let numbers: Vec<u8> = (0..20).collect();
    let chunks = parallel::chunks(&numbers, 6);
    for middle in 0..=4 {
        let (left, right) = chunks.split_at(middle);
        assert_eq!((left.len(), right.len()), (middle, 4 - middle));
        assert!(left.into_iter().chain(right.into_iter()).eq(numbers.chunks(6)));
    }
}

/// The longest slice there is: of elements without a size.
#[test]
fn chunks_of_the_longest_slice() {
    let longest = [(); usize::MAX];
    let chunks = parallel::chunks(&longest, usize::MAX - 1);
    let (left, right) = chunks.split_at(1);
    assert_eq!((chunks.len(), left.len(), right.into_iter().map(<[()]>::len).sum()), (2, 1, 1));
}

/// Items without a number are left out; all others have theirs.
#[test]
fn indices_of_a_range_that_is_longer_than_they_are() {
    let (left, right) = parallel::enumerate(0..u128::MAX).split_at(usize::MAX);
    assert_eq!((left.len(), right.len()), (usize::MAX, 0));
    assert_eq!(right.into_iter().next(), None);
    assert_eq!(left.into_iter().next(), Some((0, 0)));
}
