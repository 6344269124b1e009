//! How results get from the workers to whoever wants them.

use std::collections::VecDeque;

use crate::sync::{Mutex, Padded, lock};

/// The results of some batches, in ascending order of their numbers if that matters.
pub(crate) struct Parcel<R> {
    pub(crate) results: VecDeque<R>,
    pub(crate) pieces: VecDeque<Piece>,
}

/// A batch in a parcel.
#[derive(Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) number: u64,
    pub(crate) weight: u64,
    /// How many results there are of it.
    pub(crate) results: usize,
}

impl<R> Default for Parcel<R> {
    fn default() -> Self {
        Self { results: VecDeque::new(), pieces: VecDeque::new() }
    }
}

/// What each worker has for whoever wants the results. It can be fetched at any time.
pub(crate) struct Mail<R> {
    boxes: Box<[Padded<Mutex<Vec<Parcel<R>>>>]>,
    ordered: bool,
}

impl<R> Mail<R> {
    pub(crate) fn new(workers: usize, ordered: bool) -> Self {
        let boxes = (0..workers).map(|_| Padded(Mutex::new(vec![Parcel::default()]))).collect();
        Self { boxes, ordered }
    }

    /// The results of a batch, which are taken out of `results`.
    #[inline]
    pub(crate) fn put(&self, worker: usize, piece: Piece, results: &mut VecDeque<R>) {
        let mut parcels = lock(&self.boxes[worker].0);
        let last = parcels.last().and_then(|parcel| parcel.pieces.back());
        if self.ordered && last.is_some_and(|last| piece.number < last.number) {
            parcels.push(Parcel::default());
        }
        let parcel = parcels.last_mut().expect("there is always one");
        parcel.pieces.push_back(piece);
        parcel.results.extend(results.drain(..));
    }

    /// Those that have come, in exchange for empty ones, of which there may be some in `blanks`.
    pub(crate) fn fetch(&self, into: &mut Vec<Parcel<R>>, blanks: &mut Vec<Parcel<R>>) {
        for parcels in &self.boxes {
            let mut parcels = lock(&parcels.0);
            if parcels[0].pieces.is_empty() {
                continue;
            }
            into.append(&mut parcels);
            parcels.push(blanks.pop().unwrap_or_default());
        }
    }
}
