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
        Case::outside("stencil", "50 passes over 256 x 256 f32, by rows", |_| stencil()),
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

/// The side of the square of a stencil.
const SIDE: usize = 256;

fn stencil() -> Run {
    const PASSES: usize = 50;
    let start: Vec<f32> = numbers(SIDE * SIDE).map(|number| (number % 8) as f32).collect();
    let (mut from, mut to) = (start.clone(), start.clone());
    for _ in 0..PASSES {
        to.chunks_mut(SIDE).enumerate().for_each(|(at, row)| smooth(&from, at, row));
        std::mem::swap(&mut from, &mut to);
    }
    let expected = from.clone();
    Box::new(move || {
        from.copy_from_slice(&start);
        let passes = || {
            for _ in 0..PASSES {
                to.par_chunks_mut(SIDE).enumerate().for_each(|(at, row)| smooth(&from, at, row));
                std::mem::swap(&mut from, &mut to);
            }
        };
        let ((), time) = timed(passes);
        assert!(from == expected, "wrong result");
        time
    })
}

/// Computes a row from the square before: each number becomes the mean of its four neighbours, around the edges.
fn smooth(square: &[f32], at: usize, row: &mut [f32]) {
    let line = |at: usize| &square[at % SIDE * SIDE..][..SIDE];
    let (above, here, below) = (line(at + SIDE - 1), line(at), line(at + 1));
    for (column, value) in row.iter_mut().enumerate() {
        let beside = here[(column + SIDE - 1) % SIDE] + here[(column + 1) % SIDE];
        *value = (above[column] + below[column] + beside) / 4.0;
    }
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
