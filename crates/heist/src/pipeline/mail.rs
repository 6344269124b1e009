//! How results get from the workers to whoever wants them.

use std::collections::VecDeque;

use crate::sync::{Mutex, Padded, lock};

/// The results of some batches, in ascending order of their numbers if that matters.
pub(super) struct Parcel<R> {
    pub(super) results: VecDeque<R>,
    pub(super) pieces: VecDeque<Piece>,
}

/// A batch in a parcel.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub(super) number: u64,
    pub(super) weight: u64,
    /// How many results there are of it.
    pub(super) results: usize,
}

impl<R> Default for Parcel<R> {
    fn default() -> Self {
        Self { results: VecDeque::new(), pieces: VecDeque::new() }
    }
}

/// Of one worker: parcels, of which the last one is being filled.
type Outbox<R> = Mutex<Vec<Parcel<R>>>;

/// What each worker has for whoever wants the results. It can be fetched at any time.
pub(super) struct Mail<R> {
    boxes: Box<[Padded<Outbox<R>>]>,
    ordered: bool,
}

impl<R> Mail<R> {
    pub(super) fn new(workers: usize, ordered: bool) -> Self {
        let boxes = (0..workers).map(|_| Padded(Mutex::new(vec![Parcel::default()]))).collect();
        Self { boxes, ordered }
    }

    /// How many there are: no more empty parcels are of use.
    pub(super) fn boxes(&self) -> usize {
        self.boxes.len()
    }

    /// The results of a batch, which are taken out of `results`.
    #[inline]
    pub(super) fn put(&self, worker: usize, piece: Piece, results: &mut VecDeque<R>) {
        let mut parcels = lock(&self.boxes[worker].0);
        let last = parcels.last().and_then(|parcel| parcel.pieces.back());
        if self.ordered && last.is_some_and(|last| piece.number < last.number) {
            parcels.push(Parcel::default());
        }
        let parcel = parcels.last_mut().expect("there is always one");
        parcel.pieces.push_back(piece);
        match (piece.results, results.pop_front()) {
            // By far the quickest way, for one.
            (1, Some(only)) => parcel.results.push_back(only),
            (_, first) => {
                parcel.results.extend(first);
                parcel.results.append(results);
            }
        }
    }

    /// Those that have come, in exchange for empty ones, of which there may be some in `blanks`.
    pub(super) fn fetch(&self, into: &mut Vec<Parcel<R>>, blanks: &mut Vec<Parcel<R>>) {
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
