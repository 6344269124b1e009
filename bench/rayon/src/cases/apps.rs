//! Small programs as users write them: bodies that attract each other, a product of matrices, prime numbers.

use std::hint::black_box;

use rayon::join;
use rayon::prelude::*;

use super::{Case, Run, batch, timed};
use harness::random::numbers;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::outside("nbody", "4 steps of 1,000 bodies, par_iter_mut", |_| nbody()),
        Case::outside("matmul", "256 x 256 f32, in quarters by join", |_| matmul()),
        Case::outside("sieve", "primes below 10,000,000, in segments by par_iter", |_| {
            batch(1, 664_579, || primes_below(black_box(10_000_000)))
        }),
    ]
}

type Vector = [f32; 3];

/// Bodies of the same mass.
#[derive(Clone, PartialEq)]
struct Bodies {
    positions: Vec<Vector>,
    velocities: Vec<Vector>,
}

impl Bodies {
    fn new(count: usize) -> Self {
        let mut fractions = numbers(6 * count).map(|number| (number >> 40) as f32 / 16_777_216.0);
        let mut vectors = || {
            let mut fraction = || fractions.next().expect("six for each");
            (0..count).map(|_| [fraction(), fraction(), fraction()]).collect()
        };
        Self { positions: vectors(), velocities: vectors() }
    }

    fn step(&mut self) {
        let Self { positions, velocities } = self;
        let pairs = velocities.par_iter_mut().zip(&*positions);
        pairs.for_each(|(velocity, position)| accelerate(velocity, position, positions));
        let pairs = positions.par_iter_mut().zip(&*velocities);
        pairs.for_each(|(position, velocity)| advance(position, velocity));
    }

    /// Computes the same step without a pool.
    fn step_alone(&mut self) {
        let Self { positions, velocities } = self;
        let pairs = velocities.iter_mut().zip(&*positions);
        pairs.for_each(|(velocity, position)| accelerate(velocity, position, positions));
        let pairs = positions.iter_mut().zip(&*velocities);
        pairs.for_each(|(position, velocity)| advance(position, velocity));
    }
}

const TIME_STEP: f32 = 1e-3;

fn accelerate(velocity: &mut Vector, position: &Vector, positions: &[Vector]) {
    let mut pull = [0.0; 3];
    for other in positions {
        let [x, y, z] = std::array::from_fn(|axis| other[axis] - position[axis]);
        // The distance is softened, because a body has no distance from itself.
        let square = x * x + y * y + z * z + 1e-2;
        let factor = 1.0 / (square * square.sqrt());
        pull = [pull[0] + x * factor, pull[1] + y * factor, pull[2] + z * factor];
    }
    for (velocity, pull) in velocity.iter_mut().zip(pull) {
        *velocity += pull * TIME_STEP;
    }
}

fn advance(position: &mut Vector, velocity: &Vector) {
    for (position, velocity) in position.iter_mut().zip(velocity) {
        *position += velocity * TIME_STEP;
    }
}

fn nbody() -> Run {
    const STEPS: usize = 4;
    let start = Bodies::new(1_000);
    let mut expected = start.clone();
    (0..STEPS).for_each(|_| expected.step_alone());
    Box::new(move || {
        let mut bodies = start.clone();
        let ((), time) = timed(|| (0..STEPS).for_each(|_| bodies.step()));
        // The rounding is the same as well, because each body is computed in the same order.
        assert!(bodies == expected, "wrong result");
        time
    })
}

const SIZE: usize = 256;

/// The side of a square that is multiplied sequentially. Its numbers are stored row by row.
const LEAF: usize = 16;

/// Returns the quarters, which are stored one after another and each in the same way, so that they are slices.
fn quarters<T>(square: &[T]) -> [&[T]; 4] {
    let (upper, lower) = square.split_at(square.len() / 2);
    let (a, b) = upper.split_at(upper.len() / 2);
    let (c, d) = lower.split_at(lower.len() / 2);
    [a, b, c, d]
}

fn quarters_mut<T>(square: &mut [T]) -> [&mut [T]; 4] {
    let (upper, lower) = square.split_at_mut(square.len() / 2);
    let (a, b) = upper.split_at_mut(upper.len() / 2);
    let (c, d) = lower.split_at_mut(lower.len() / 2);
    [a, b, c, d]
}

/// Adds the product of `left` and `right` to `out`.
fn multiply(left: &[f32], right: &[f32], out: &mut [f32]) {
    if out.len() == LEAF * LEAF {
        return multiply_leaf(left, right, out);
    }
    let (a, b) = (quarters(left), quarters(right));
    for [first, second] in [[0, 0], [1, 2]] {
        let [c0, c1, c2, c3] = quarters_mut(out);
        let upper =
            || join(|| multiply(a[first], b[second], c0), || multiply(a[first], b[second + 1], c1));
        let lower = || {
            join(
                || multiply(a[first + 2], b[second], c2),
                || multiply(a[first + 2], b[second + 1], c3),
            )
        };
        join(upper, lower);
    }
}

fn multiply_leaf(left: &[f32], right: &[f32], out: &mut [f32]) {
    for (left, out) in left.chunks_exact(LEAF).zip(out.chunks_exact_mut(LEAF)) {
        for (&factor, right) in left.iter().zip(right.chunks_exact(LEAF)) {
            for (out, &right) in out.iter_mut().zip(right) {
                *out += factor * right;
            }
        }
    }
}

/// Returns the index at which the number in this row and column is stored.
fn place(row: usize, column: usize) -> usize {
    let mut square = LEAF * LEAF;
    let mut place = row % LEAF * LEAF + column % LEAF;
    let (mut row, mut column) = (row / LEAF, column / LEAF);
    while row + column > 0 {
        place += (row % 2 * 2 + column % 2) * square;
        (row, column, square) = (row / 2, column / 2, square * 4);
    }
    place
}

/// Computes the product row by row, for comparison.
fn product(left: &[f32], right: &[f32]) -> Vec<f32> {
    let rows = |square: &[f32]| -> Vec<[f32; SIZE]> {
        (0..SIZE).map(|row| std::array::from_fn(|column| square[place(row, column)])).collect()
    };
    let (left, right) = (rows(left), rows(right));
    let mut out = vec![0.0; SIZE * SIZE];
    for (row, left) in left.iter().enumerate() {
        let mut sums = [0.0; SIZE];
        for (factor, right) in left.iter().zip(&right) {
            sums.iter_mut().zip(right).for_each(|(sum, right)| *sum += factor * right);
        }
        for (column, sum) in sums.into_iter().enumerate() {
            out[place(row, column)] = sum;
        }
    }
    out
}

fn matmul() -> Run {
    // The integers are so small that no sum of products is rounded.
    let small = |number| (number % 8) as f32;
    let left: Vec<f32> = numbers(SIZE * SIZE).map(small).collect();
    let right: Vec<f32> = numbers(2 * SIZE * SIZE).skip(SIZE * SIZE).map(small).collect();
    let expected = product(&left, &right);
    let mut out = vec![0.0; SIZE * SIZE];
    Box::new(move || {
        out.fill(0.0);
        let ((), time) = timed(|| multiply(black_box(&left), black_box(&right), &mut out));
        assert!(out == expected, "wrong result");
        time
    })
}

/// The number of odd numbers in a segment, which fits into the innermost cache.
const SEGMENT: usize = 1 << 14;

fn primes_below(end: usize) -> usize {
    let root = end.isqrt() + 1;
    let small: Vec<usize> = (3..=root).step_by(2).filter(|&number| is_prime(number)).collect();
    let segments = (end / 2).div_ceil(SEGMENT);
    let odd = (0..segments).into_par_iter().map(|segment| {
        let first = segment * SEGMENT * 2 + 1;
        primes_in(first, end.min(first + SEGMENT * 2), &small)
    });
    // The prime 2 is not odd.
    1 + odd.sum::<usize>()
}

fn is_prime(odd: usize) -> bool {
    (3..)
        .step_by(2)
        .take_while(|factor| factor * factor <= odd)
        .all(|factor| !odd.is_multiple_of(factor))
}

/// Returns the number of primes among the odd numbers from `first` to before `end`.
fn primes_in(first: usize, end: usize, small: &[usize]) -> usize {
    let mut composite = [false; SEGMENT];
    for &prime in small.iter().take_while(|&prime| prime * prime < end) {
        let multiple = first.next_multiple_of(prime);
        let odd = if multiple % 2 == 0 { multiple + prime } else { multiple };
        let mut at = (odd.max(prime * prime) - first) / 2;
        while at < SEGMENT {
            composite[at] = true;
            at += prime;
        }
    }
    if first == 1 {
        composite[0] = true;
    }
    composite[..(end - first).div_ceil(2)].iter().filter(|&&composite| !composite).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_a_permutation() {
        let mut places: Vec<_> = (0..SIZE * SIZE).map(|at| place(at / SIZE, at % SIZE)).collect();
        places.sort_unstable();
        assert!(places.into_iter().eq(0..SIZE * SIZE));
    }

    #[test]
    fn few_primes_are_counted() {
        assert_eq!(primes_below(10), 4);
        assert_eq!(primes_below(100), 25);
        assert_eq!(primes_below(100_000), 9_592);
    }
}
