//! rayon: chunks of a slice.

use rayon::ThreadPool;
use rayon::prelude::*;

use super::{PIECE, Place, Sums, kernel};
use crate::peers::{Pool, global, kept};

pub(super) struct Rayon;

impl Sums for Rayon {
    const NAME: &'static str = ThreadPool::NAME;

    type Context<'h> = ();

    fn run<R: Send>(place: Place, f: impl FnOnce(&mut ()) -> R + Send) -> R {
        match place {
            Place::Outside => f(&mut ()),
            Place::Inside => kept::pool::<ThreadPool>(global::WORKERS).install(|| f(&mut ())),
        }
    }

    fn sum((): &mut (), items: &[f32]) -> f32 {
        items.par_chunks(PIECE).map(kernel).sum()
    }
}
