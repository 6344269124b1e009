//! heist: with its defaults, and with a minimum length of a piece.

use heist::parallel;

use super::{PIECE, Place, Sums, kernel};
use crate::peers::heist::Stealing;
use crate::peers::{Pool, global, kept};

pub(super) struct Heist;

impl Sums for Heist {
    const NAME: &'static str = Stealing::NAME;

    type Context<'h> = ();

    fn run<R: Send>(place: Place, f: impl FnOnce(&mut ()) -> R + Send) -> R {
        run(place, f)
    }

    fn sum((): &mut (), items: &[f32]) -> f32 {
        let sum = parallel::reduce_pieces(items, |piece: &[f32]| kernel(piece), |a, b| a + b);
        sum.expect("there are items")
    }
}

pub(super) struct WithMinLen;

impl Sums for WithMinLen {
    const NAME: &'static str = "heist-min";

    type Context<'h> = ();

    fn run<R: Send>(place: Place, f: impl FnOnce(&mut ()) -> R + Send) -> R {
        run(place, f)
    }

    fn sum((): &mut (), items: &[f32]) -> f32 {
        let pieces = parallel::with_min_len(PIECE);
        let sum = pieces.reduce_pieces(items, |piece: &[f32]| kernel(piece), |a, b| a + b);
        sum.expect("there are items")
    }
}

fn run<R: Send>(place: Place, f: impl FnOnce(&mut ()) -> R + Send) -> R {
    match place {
        Place::Outside => f(&mut ()),
        Place::Inside => kept::pool::<Stealing>(global::WORKERS).install(|| f(&mut ())),
    }
}
