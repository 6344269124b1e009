//! Other kinds of loops: in chunks, in place, into a vector, until something is found, and from a sequential
//! iterator.

use std::hint::black_box;

use rayon::prelude::*;

use super::{Case, Run, batch, chain, timed};
use harness::random::{mix, numbers};

const MILLION: usize = 1_000_000;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::outside("chunks", "par_chunks(1,024): squares of 1,000,000 f32", |_| squares()),
        Case::outside("collect", "map().collect() of 1,000,000 u64 into a Vec", |_| collect()),
        Case::outside("find-any", "find_any in 1,000,000 u64, at 3/4", |_| find()),
        Case::outside("bridge", "par_bridge of 100,000 items of about 200 ns", |_| bridge()),
        Case::inside("flat", "par_iter_mut().for_each() of 1,000 u64, in a worker", |_| flat()),
    ]
}

fn squares() -> Run {
    // The integers are so small that no sum of them is rounded.
    let data: Vec<f32> = numbers(MILLION).map(|number| (number % 8) as f32).collect();
    let square = |chunk: &[f32]| f64::from(chunk.iter().map(|value| value * value).sum::<f32>());
    let expected = data.chunks(1_024).map(square).sum::<f64>();
    batch(4, expected, move || black_box(&data).par_chunks(1_024).map(square).sum::<f64>())
}

fn collect() -> Run {
    let expected: Vec<u64> = (0..MILLION as u64).map(mix).collect();
    Box::new(move || {
        let end = black_box(MILLION as u64);
        let collect = || (0..end).into_par_iter().map(mix).collect::<Vec<_>>();
        let (found, time) = timed(collect);
        assert!(found == expected, "wrong result");
        time
    })
}

fn find() -> Run {
    let data: Vec<u64> = numbers(MILLION).collect();
    let needle = data[MILLION / 4 * 3];
    batch(2, Some(needle), move || {
        black_box(&data).par_iter().find_any(|&&number| number == needle).copied()
    })
}

fn bridge() -> Run {
    const ITEMS: u64 = 100_000;
    const TURNS: u32 = 45;
    let expected = (0..ITEMS).map(|item| chain(item, TURNS) >> 32).sum::<u64>();
    batch(1, expected, move || {
        (0..black_box(ITEMS)).par_bridge().map(|item| chain(item, TURNS) >> 32).sum::<u64>()
    })
}

fn flat() -> Run {
    const COUNT: u32 = 2_000;
    let start: Vec<u64> = numbers(1_000).collect();
    let after = |number: u64| (0..COUNT).fold(number, |number, _| next(number));
    let expected: Vec<u64> = start.iter().copied().map(after).collect();
    let mut data = start.clone();
    Box::new(move || {
        data.copy_from_slice(&start);
        let loops = || {
            for _ in 0..COUNT {
                data.par_iter_mut().for_each(|number| *number = next(*number));
            }
        };
        let ((), time) = timed(loops);
        assert!(data == expected, "wrong result");
        time / f64::from(COUNT)
    })
}

fn next(number: u64) -> u64 {
    (number ^ (number >> 7)).wrapping_add(0x9e37)
}
