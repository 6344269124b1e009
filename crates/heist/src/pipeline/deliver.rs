//! Where results are handed out, one batch after the other.

use std::collections::BTreeMap;
use std::time::Duration;

use super::control::{Control, Freed, Next};
use super::mail::{Mail, Parcel, Piece};
use crate::member::with_host;
use crate::sync::Arc;
use crate::wait;

/// Whoever has just delivered something sleeps for so long at first, and is not woken for each batch; what is there by
/// then is delivered. If that is nothing, it sleeps until it is woken. So a result is held back at most that long, and
/// there is at most one such look for each delivery.
const DOZE: Duration = Duration::from_millis(1);

/// The side of whoever wants the results.
pub(super) struct Counter<R> {
    control: Arc<Control>,
    mail: Arc<Mail<R>>,
    ordered: bool,
    /// Parcels that have come, the last one first; they stay here if they need not be in order.
    basket: Vec<Parcel<R>>,
    /// If they do: by the numbers of their first batches.
    waiting: BTreeMap<u64, Parcel<R>>,
    /// Empty ones, to be given back.
    blanks: Vec<Parcel<R>>,
    /// What is being handed out.
    open: Parcel<R>,
    /// The number of the next batch, if they are to be in order.
    next: u64,
    freed: Freed,
    share: u64,
}

impl<R> Counter<R> {
    pub(super) fn new(control: &Arc<Control>, mail: &Arc<Mail<R>>, ordered: bool) -> Self {
        Self {
            control: Arc::clone(control),
            mail: Arc::clone(mail),
            ordered,
            basket: Vec::new(),
            waiting: BTreeMap::new(),
            blanks: Vec::new(),
            open: Parcel::default(),
            next: 0,
            freed: Freed::default(),
            share: control.share_of_bound() as u64,
        }
    }

    /// The next batch: its results are the first of those that [`result`](Self::result) gives. `None`: that was all.
    #[inline]
    pub(super) fn next_batch(&mut self) -> Option<Piece> {
        loop {
            if let Some(piece) = self.open.pieces.front()
                && (!self.ordered || piece.number == self.next)
            {
                return self.open.pieces.pop_front();
            }
            if !self.open_next() {
                return None;
            }
        }
    }

    /// A result of that batch.
    #[inline]
    pub(super) fn result(&mut self) -> R {
        self.open.results.pop_front().expect("as many as the batch has")
    }

    /// The batch has been handed out.
    #[inline]
    pub(super) fn delivered(&mut self, piece: Piece) {
        self.next += 1;
        self.freed.batches += 1;
        self.freed.weight += piece.weight;
        self.freed.results += piece.results as u64;
        if self.freed.batches >= self.share {
            self.control.freed(std::mem::take(&mut self.freed));
        }
    }

    /// Another parcel. `false`: there will be none.
    fn open_next(&mut self) -> bool {
        let old = std::mem::take(&mut self.open);
        match old.pieces.front() {
            // What comes between is in another parcel.
            Some(piece) => drop(self.waiting.insert(piece.number, old)),
            None => self.blanks.push(old),
        }
        loop {
            let parcel =
                if self.ordered { self.waiting.remove(&self.next) } else { self.basket.pop() };
            if let Some(parcel) = parcel {
                self.open = parcel;
                return true;
            }
            if !self.fetch() {
                return false;
            }
        }
    }

    /// Waits for the mail.
    fn fetch(&mut self) -> bool {
        // A thread of a pool lends its seat to others while it waits, which is not for a moment.
        let mut deep = with_host(|_| ()).is_some();
        loop {
            let freed = std::mem::take(&mut self.freed);
            match self.control.next(&freed, self.next, deep) {
                Next::Over => return false,
                Next::Come => {
                    self.collect();
                    return true;
                }
                Next::Sleep(receipt) if deep => wait::wait(&receipt, self.control.pool().id()),
                Next::Sleep(receipt) => {
                    wait::doze(&receipt, DOZE);
                    deep = true;
                }
            }
        }
    }

    fn collect(&mut self) {
        self.mail.exchange(&mut self.basket, &mut self.blanks);
        if !self.ordered {
            return self.basket.reverse();
        }
        for parcel in self.basket.drain(..) {
            let first = parcel.pieces.front().expect("no empty parcel is sent").number;
            self.waiting.insert(first, parcel);
        }
    }
}
