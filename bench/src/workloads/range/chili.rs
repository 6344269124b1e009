//! chili: by halves, as its documentation does with a tree. The thread that opens a scope is one of the workers, so
//! that there is no call from outside; the scope is opened once, as in its benchmarks.

use chili::Scope;

use super::{PIECE, Place, Sums, kernel};
use crate::peers::global;
use crate::workloads::fork::{Chili as Forks, Fork};

pub(super) struct Chili;

impl Sums for Chili {
    const NAME: &'static str = Forks::NAME;

    type Context<'h> = Scope<'h>;

    fn run<R: Send>(_: Place, f: impl FnOnce(&mut Scope<'_>) -> R + Send) -> R {
        Forks::run(Forks::pool(global::WORKERS), f)
    }

    fn sum(scope: &mut Scope<'_>, items: &[f32]) -> f32 {
        if items.len() <= PIECE {
            return kernel(items);
        }
        let (low, high) = items.split_at(items.len() / 2);
        let (a, b) =
            scope.join(move |scope| Self::sum(scope, low), move |scope| Self::sum(scope, high));
        a + b
    }
}
