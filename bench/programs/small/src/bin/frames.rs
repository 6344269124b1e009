//! Frames of a game with many short loops: the systems of a world of 4,000 things, each one or two parallel loops over arrays of
//! the crate ndarray or over vectors. The main thread calls them one after the other.

use heist_bench_small_programs::random;
use ndarray::{Array1, Array2, Zip};
use rayon::prelude::*;

const FRAMES: u64 = 2_000;
const THINGS: usize = 4_000;
const FIELD: usize = 64;

fn main() {
    let array = |seed: u64| Array1::from_shape_fn(THINGS, |place| random(seed + place as u64));
    let (mut place, mut speed, mut health) = (array(0), array(10_000), array(20_000));
    let mut heat = Array2::from_shape_fn((FIELD, FIELD), |(x, y)| random((x * FIELD + y) as u64));
    let mut next = heat.clone();
    let mut sum = 0.0;
    for frame in 0..FRAMES {
        // Movement.
        Zip::from(&mut place).and(&speed).par_for_each(|place, speed| *place += speed * 0.016);
        speed.par_mapv_inplace(|speed| (speed * 0.99).sin());
        // Damage and healing.
        let dead =
            health.as_slice().expect("one row").par_iter().filter(|&&health| health < 0.1).count();
        health.par_mapv_inplace(|health| if health < 0.1 { 1.0 } else { health * 0.97 });
        // A field of heat that spreads, row by row.
        Zip::indexed(next.rows_mut()).par_for_each(|row, mut cells| {
            let (above, below) = (row.saturating_sub(1), (row + 1).min(FIELD - 1));
            for column in 0..FIELD {
                let (left, right) = (column.saturating_sub(1), (column + 1).min(FIELD - 1));
                let around = heat[[above, column]]
                    + heat[[below, column]]
                    + heat[[row, left]]
                    + heat[[row, right]];
                cells[column] = 0.5 * heat[[row, column]] + 0.125 * around;
            }
        });
        std::mem::swap(&mut heat, &mut next);
        // What can be seen, nearest first.
        let (places, healths) =
            (place.as_slice().expect("one row"), health.as_slice().expect("one row"));
        let mut seen: Vec<(u32, usize)> = places
            .par_iter()
            .zip(healths)
            .enumerate()
            .filter(|(_, (place, health))| place.fract() < 0.25 && **health > 0.2)
            .map(|(thing, (place, _))| (place.fract().to_bits(), thing))
            .collect();
        seen.par_sort_unstable();
        let first = seen.first().map_or(0, |&(_, thing)| thing);
        sum += (dead + first) as f64 + f64::from(heat[[frame as usize % FIELD, 0]]);
    }
    println!("{sum}");
}
