//! How results get from the workers to whoever wants them.

use std::collections::VecDeque;

use crate::sync::{Mutex, lock};

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

/// Parcels on their way, and empty ones on their way back.
pub(crate) struct Mail<R>(Mutex<Bags<R>>);

struct Bags<R> {
    sent: Vec<Parcel<R>>,
    /// No more than were ever on their way at once.
    blanks: Vec<Parcel<R>>,
}

impl<R> Mail<R> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Bags { sent: Vec::new(), blanks: Vec::new() }))
    }

    /// Sends it off, and leaves an empty one.
    pub(crate) fn send(&self, parcel: &mut Parcel<R>) {
        let mut bags = lock(&self.0);
        let blank = bags.blanks.pop().unwrap_or_default();
        bags.sent.push(std::mem::replace(parcel, blank));
    }

    /// Those that have come, into `into`, which is empty; and gives back the `blanks`.
    pub(crate) fn exchange(&self, into: &mut Vec<Parcel<R>>, blanks: &mut Vec<Parcel<R>>) {
        let mut bags = lock(&self.0);
        std::mem::swap(&mut bags.sent, into);
        bags.blanks.append(blanks);
    }
}
