//! The product of two matrices by quarters: eight products, four at a time.
//!
//! A matrix is also stored by quarters, down to the leaves, which are stored by rows. Therefore a quarter is a
//! slice.

use std::sync::LazyLock;

use harness::metric::{self, Metric};
use harness::random::numbers;
use harness::row::Row;

use super::{Case, Fork, Program};

const SIZE: usize = if cfg!(test) { 64 } else { 512 };

/// The side of a leaf: 65,536 operations, which take some microseconds.
const LEAF: usize = 32;

/// The number of products in a sample. One takes a few milliseconds.
const LAPS: u64 = if cfg!(test) { 1 } else { 4 };

const PRODUCT: Case<Product> = Case {
    workload: "matmul",
    name: "",
    title: "512 × 512, f32",
    metric: &Metric { title: "µs per product", ratio: Some("time"), ..metric::TOTAL },
    program: Product,
    limits: &[],
    efficiency: None,
};

pub(super) fn rows() -> Vec<Row> {
    PRODUCT.rows()
}

struct Factors {
    a: Vec<f32>,
    b: Vec<f32>,
}

/// The factors: small integers, so that a sum of products is exact in any order.
static FACTORS: LazyLock<Factors> = LazyLock::new(|| {
    let mut digits = numbers(2 * SIZE * SIZE).map(|number| (number % 4) as f32);
    let a = digits.by_ref().take(SIZE * SIZE).collect();
    Factors { a, b: digits.collect() }
});

/// The product by its definition, added up once for each lap.
static EXPECTED: LazyLock<Vec<f32>> = LazyLock::new(|| {
    let Factors { a, b } = &*FACTORS;
    let mut c = vec![0.0; SIZE * SIZE];
    for row in 0..SIZE {
        for inner in 0..SIZE {
            let factor = a[place(row, inner)] * LAPS as f32;
            for column in 0..SIZE {
                c[place(row, column)] += factor * b[place(inner, column)];
            }
        }
    }
    c
});

/// Returns the index at which an item of the whole matrix is stored.
fn place(mut row: usize, mut column: usize) -> usize {
    let (mut place, mut half) = (0, SIZE / 2);
    while half >= LEAF {
        place += (row / half * 2 + column / half) * half * half;
        (row, column) = (row % half, column % half);
        half /= 2;
    }
    place + row * LEAF + column
}

#[derive(Clone, Copy)]
struct Product;

impl Program for Product {
    type Input = (&'static Factors, Vec<f32>);

    fn input(self) -> Self::Input {
        // Written to once, so that its pages exist before the measurement.
        let mut c = FACTORS.a.clone();
        c.fill(0.0);
        (&FACTORS, c)
    }

    fn run<F: Fork>(self, context: &mut F::Context<'_>, (factors, c): &mut Self::Input) -> u64 {
        (0..LAPS).for_each(|_| multiply::<F>(context, &factors.a, &factors.b, c));
        0
    }

    fn check(self, by: &str, (_, c): &Self::Input, _: u64) {
        assert!(*c == *EXPECTED, "{by}: wrong result: not the product");
    }

    fn operations(self) -> u64 {
        LAPS
    }
}

/// Adds the product of `a` and `b` to `c`.
fn multiply<F: Fork>(context: &mut F::Context<'_>, a: &[f32], b: &[f32], c: &mut [f32]) {
    if c.len() == LEAF * LEAF {
        return leaf(a, b, c);
    }
    let ([a11, a12, a21, a22], [b11, b12, b21, b22]) = (quarters(a), quarters(b));
    four::<F>(context, [(a11, b11), (a11, b12), (a21, b11), (a21, b12)], c);
    four::<F>(context, [(a12, b21), (a12, b22), (a22, b21), (a22, b22)], c);
}

/// Adds one product to each quarter of `c`.
fn four<F: Fork>(context: &mut F::Context<'_>, factors: [(&[f32], &[f32]); 4], c: &mut [f32]) {
    let [f11, f12, f21, f22] = factors;
    let quarter = c.len() / 4;
    let (upper, lower) = c.split_at_mut(2 * quarter);
    let two = |context: &mut F::Context<'_>, left: (&_, &_), right: (&_, &_), c: &mut [f32]| {
        let (c1, c2) = c.split_at_mut(quarter);
        F::join(
            context,
            move |context| multiply::<F>(context, left.0, left.1, c1),
            move |context| multiply::<F>(context, right.0, right.1, c2),
        );
    };
    F::join(
        context,
        |context| two(context, f11, f12, upper),
        |context| two(context, f21, f22, lower),
    );
}

fn quarters(matrix: &[f32]) -> [&[f32]; 4] {
    let (upper, lower) = matrix.split_at(matrix.len() / 2);
    let (m11, m12) = upper.split_at(upper.len() / 2);
    let (m21, m22) = lower.split_at(lower.len() / 2);
    [m11, m12, m21, m22]
}

/// Multiplies leaves row by row, so that the inner loop accesses neighbouring items.
fn leaf(a: &[f32], b: &[f32], c: &mut [f32]) {
    let (a, b) = (a.as_chunks::<LEAF>().0, b.as_chunks::<LEAF>().0);
    for (a, c) in a.iter().zip(c.as_chunks_mut::<LEAF>().0) {
        for (factor, b) in a.iter().zip(b) {
            for (c, b) in c.iter_mut().zip(b) {
                *c += factor * b;
            }
        }
    }
}
