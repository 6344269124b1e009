//! An integral, by halving intervals until that changes nothing: a join for every halving.

use std::hint::black_box;
use std::sync::LazyLock;

use harness::metric;
use harness::row::Row;

use super::{Case, Fork, Program};

/// The upper end of the interval, which begins at zero.
const END: f64 = if cfg!(test) { 10.0 } else { 10_000.0 };

/// An interval is done if halving it changes its area by no more than this.
const TOLERANCE: f64 = 1e-3;

const AREA: Case<Area> = Case {
    workload: "integrate",
    name: "",
    title: "x³ + x",
    metric: &metric::JOIN,
    program: Area,
    limits: &[],
    efficiency: None,
};

pub(super) fn rows() -> Vec<Row> {
    AREA.rows()
}

/// The result of the sequential program. All entries add areas in the same order, so all find the same result to
/// the last bit.
static FOUND: LazyLock<(f64, u64)> = LazyLock::new(|| {
    let mut joins = 0;
    (counted(Interval::new(0.0, END), &mut joins), joins)
});

#[derive(Clone, Copy)]
struct Area;

impl Program for Area {
    type Input = ();

    fn input(self) {}

    fn run<F: Fork>(self, context: &mut F::Context<'_>, (): &mut ()) -> u64 {
        area::<F>(context, Interval::new(0.0, black_box(END))).to_bits()
    }

    fn check(self, by: &str, (): &(), found: u64) {
        assert_eq!(f64::from_bits(found), FOUND.0, "{by}: wrong result: not the sequential area");
    }

    fn operations(self) -> u64 {
        FOUND.1
    }
}

fn height(x: f64) -> f64 {
    (x * x + 1.0) * x
}

/// An interval with the heights at its ends, which are not computed twice, and the area of the trapezium between
/// them.
#[derive(Clone, Copy)]
struct Interval {
    from: f64,
    to: f64,
    left: f64,
    right: f64,
    area: f64,
}

impl Interval {
    fn new(from: f64, to: f64) -> Self {
        Self::between(from, to, height(from), height(to))
    }

    #[inline(always)]
    fn between(from: f64, to: f64, left: f64, right: f64) -> Self {
        Self { from, to, left, right, area: (left + right) * (to - from) * 0.5 }
    }

    #[inline(always)]
    fn halves(self) -> (Self, Self) {
        let middle = self.from + (self.to - self.from) * 0.5;
        let height = height(middle);
        let left = Self::between(self.from, middle, self.left, height);
        (left, Self::between(middle, self.to, height, self.right))
    }

    /// Returns the sum of the halves, if it is accurate enough.
    #[inline(always)]
    fn done(self, (left, right): (Self, Self)) -> Option<f64> {
        let area = left.area + right.area;
        ((area - self.area).abs() <= TOLERANCE).then_some(area)
    }
}

fn area<F: Fork>(context: &mut F::Context<'_>, interval: Interval) -> f64 {
    let (left, right) = interval.halves();
    if let Some(area) = interval.done((left, right)) {
        return area;
    }
    let (a, b) = F::join(
        context,
        move |context| area::<F>(context, left),
        move |context| area::<F>(context, right),
    );
    a + b
}

/// Computes the same sequentially, and counts what would be joins.
fn counted(interval: Interval, joins: &mut u64) -> f64 {
    let (left, right) = interval.halves();
    interval.done((left, right)).unwrap_or_else(|| {
        *joins += 1;
        counted(left, joins) + counted(right, joins)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_area_is_that_of_the_formula() {
        let formula = END.powi(4) / 4.0 + END.powi(2) / 2.0;
        assert!((FOUND.0 - formula).abs() < formula * 1e-4, "{} {formula}", FOUND.0);
    }
}
