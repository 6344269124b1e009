//! How results get from the workers to whoever wants them.

use std::collections::VecDeque;

use crate::sync::{Mutex, lock};

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

/// Parcels on their way, and empty ones on their way back.
pub(super) struct Mail<R> {
    sent: Mutex<Vec<Parcel<R>>>,
    blanks: Mutex<Vec<Parcel<R>>>,
    /// More are not kept.
    most_blanks: usize,
}

impl<R> Mail<R> {
    pub(super) fn new(workers: usize) -> Self {
        let (sent, blanks) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        Self { sent, blanks, most_blanks: BLANKS * workers }
    }

    /// Sends it off, and returns an empty one.
    pub(super) fn send(&self, parcel: Parcel<R>) -> Parcel<R> {
        lock(&self.sent).push(parcel);
        lock(&self.blanks).pop().unwrap_or_default()
    }

    /// Those that have come, into `into`, which is empty.
    pub(super) fn collect(&self, into: &mut Vec<Parcel<R>>) {
        std::mem::swap(&mut *lock(&self.sent), into);
    }

    /// An empty one.
    pub(super) fn give_back(&self, blank: Parcel<R>) {
        let mut blanks = lock(&self.blanks);
        if blanks.len() < self.most_blanks {
            blanks.push(blank);
        }
    }
}

/// Empty parcels to keep for each worker; a guess.
const BLANKS: usize = 8;
