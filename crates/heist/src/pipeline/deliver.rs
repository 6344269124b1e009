//! Where results are handed out, one batch after the other.

use std::collections::VecDeque;
use std::time::Duration;

use super::control::Control;
use super::desk::Freed;
use super::mail::{Mail, Parcel, Piece};
use crate::sync::Arc;
use crate::worker::current::with_worker;
use crate::worker::wait;

/// Whoever has just delivered something sleeps for so long at first, and is not woken for each batch; what is there by
/// then is delivered. If that is nothing, it sleeps until it is woken. So a result is held back at most that long, and
/// there is at most one such look for each delivery.
const DOZE: Duration = Duration::from_millis(1);

/// The side of whoever wants the results.
pub(super) struct Counter<R> {
    control: Arc<Control>,
    mail: Arc<Mail<R>>,
    ordered: bool,
    /// Parcels that have come; empty ones are in no queue.
    parcels: Vec<Parcel<R>>,
    empty: Vec<usize>,
    /// Where the results are, in the order in which they are to be handed out: a parcel for each batch from the `next`
    /// one on, if that is known yet; or else the parcels as they came.
    queue: VecDeque<usize>,
    /// The number of the next batch, if they are to be in order.
    next: u64,
    freed: Freed,
    /// So much of it is worth to be said.
    share: u64,
    heavy: i128,
    /// For `collect`.
    basket: Vec<Parcel<R>>,
    /// To be given back.
    blanks: Vec<Parcel<R>>,
}

/// No parcel yet.
const NONE: usize = usize::MAX;

impl<R> Counter<R> {
    pub(super) fn new(control: &Arc<Control>, mail: &Arc<Mail<R>>, ordered: bool) -> Self {
        Self {
            control: Arc::clone(control),
            mail: Arc::clone(mail),
            ordered,
            parcels: Vec::new(),
            empty: Vec::new(),
            queue: VecDeque::new(),
            next: 0,
            freed: Freed::default(),
            share: control.share_of_bound() as u64,
            heavy: control.share_of_weight(),
            basket: Vec::new(),
            blanks: Vec::new(),
        }
    }

    /// The next batch: its results are the first of those that [`result`](Self::result) gives. `None`: that was all.
    #[inline]
    pub(super) fn next_batch(&mut self) -> Option<Piece> {
        loop {
            match self.queue.front() {
                // What is over is over, whatever is here.
                _ if self.control.is_off() => return None,
                Some(&at) if at != NONE => return self.parcels[at].pieces.pop_front(),
                _ => {
                    if !self.fetch() {
                        return None;
                    }
                }
            }
        }
    }

    /// A result of that batch.
    #[inline]
    pub(super) fn result(&mut self) -> R {
        let at = self.queue[0];
        self.parcels[at].results.pop_front().expect("as many as the batch has")
    }

    /// The batch has been handed out.
    #[inline]
    pub(super) fn delivered(&mut self, piece: Piece) {
        let at = self.queue[0];
        let is_empty = self.parcels[at].pieces.is_empty();
        if is_empty || self.ordered {
            self.queue.pop_front();
        }
        if is_empty {
            let blank = std::mem::take(&mut self.parcels[at]);
            if self.blanks.len() < self.mail.boxes() {
                self.blanks.push(blank);
            }
            self.empty.push(at);
        }
        self.next += 1;
        self.freed.batches += 1;
        self.freed.weight += i128::from(piece.weight);
        self.freed.results += piece.results as u64;
        if self.freed.batches >= self.share || self.freed.weight >= self.heavy {
            self.flush();
        }
    }

    /// Says what was delivered.
    pub(super) fn flush(&mut self) {
        if self.freed.batches > 0 {
            self.control.freed(std::mem::take(&mut self.freed));
        }
    }

    /// Waits for the mail. `false`: there will be none.
    #[cold]
    fn fetch(&mut self) -> bool {
        // A thread of a pool lends its core to others while it waits, which is not for a moment.
        let mut deep = with_worker(|_| ()).is_some();
        loop {
            if self.collect() {
                return true;
            }
            let freed = std::mem::take(&mut self.freed);
            let Some(handle) = self.control.sleep(&freed, self.next, deep) else { return false };
            // Whoever has not seen that this thread sleeps has put something there before.
            if self.collect() {
                drop(handle);
                self.control.wake_reason();
                return true;
            }
            if deep {
                wait::wait(&handle, self.control.pool().id());
            } else {
                wait::doze(&handle, DOZE);
                deep = true;
            }
            // First, or to rise would be to wake oneself.
            drop(handle);
            self.control.wake_reason();
        }
    }

    /// What is in the mail. Is there something?
    fn collect(&mut self) -> bool {
        self.mail.fetch(&mut self.basket, &mut self.blanks);
        let any = !self.basket.is_empty();
        for parcel in self.basket.drain(..) {
            let at = self.empty.pop().unwrap_or(self.parcels.len());
            if self.ordered {
                for piece in &parcel.pieces {
                    let place = (piece.number - self.next) as usize;
                    if place >= self.queue.len() {
                        self.queue.resize(place + 1, NONE);
                    }
                    self.queue[place] = at;
                }
            } else {
                self.queue.push_back(at);
            }
            match self.parcels.get_mut(at) {
                Some(empty) => *empty = parcel,
                None => self.parcels.push(parcel),
            }
        }
        any
    }
}
