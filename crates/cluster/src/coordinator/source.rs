//! Cuts and encodes the batches, on a thread of its own, and keeps the bounds of what is in flight.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::Duration;

use heist::pipeline::{Batches, Cut, Numbered, Source};
use serde::Serialize;
use tokio::sync::mpsc::UnboundedSender;

use super::Input;
use crate::error::ClusterError;
use crate::message::BatchHead;

/// A source whose senders have sent nothing is asked again after this. A guess: short against the time of a batch that is worth
/// sending.
const PENDING: Duration = Duration::from_millis(1);

/// The bounds of what is in flight.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) batches: usize,
    pub(crate) bytes: usize,
}

/// What was in flight at most.
#[derive(Clone, Copy, Default)]
pub(crate) struct Largest {
    pub(crate) batches: usize,
    pub(crate) bytes: usize,
}

/// What is in flight. Only the thread of the source knows.
struct InFlight {
    batches: usize,
    bytes: usize,
    largest: Largest,
    moves: Receiver<Move>,
}

/// What changes what is in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Move {
    /// A batch of this size has results of this size, which take its place.
    Results { batch: usize, results: usize },
    /// Results of this size were delivered.
    Delivered(usize),
}

/// The run has ended.
struct Over;

impl InFlight {
    fn enter(&mut self, bytes: usize) {
        self.batches += 1;
        self.bytes += bytes;
        self.largest.batches = self.largest.batches.max(self.batches);
        self.largest.bytes = self.largest.bytes.max(self.bytes);
    }

    /// Waits until the condition holds. It does if nothing is in flight.
    fn wait_until(&mut self, fits: impl Fn(&Self) -> bool) -> Result<(), Over> {
        while let Ok(next) = self.moves.try_recv() {
            self.apply(next);
        }
        while self.batches > 0 && !fits(self) {
            let next = self.moves.recv().map_err(|_| Over)?;
            self.apply(next);
        }
        Ok(())
    }

    fn apply(&mut self, next: Move) {
        match next {
            Move::Results { batch, results } => {
                self.bytes = self.bytes + results - batch;
                self.largest.bytes = self.largest.bytes.max(self.bytes);
            }
            Move::Delivered(results) => {
                self.batches -= 1;
                self.bytes -= results;
            }
        }
    }
}

/// Tells the coordinator that the thread has ended, however it does.
struct Farewell<'i>(&'i UnboundedSender<Input>);

impl Drop for Farewell<'_> {
    fn drop(&mut self) {
        let _ = self.0.send(Input::SourceGone);
    }
}

/// Sends the batches of the source, until it ends or is to `stop`. `moves` yields what becomes of them.
pub(crate) fn feed<S>(
    mut batches: Batches<S>,
    run: u64,
    bounds: Bounds,
    input: &UnboundedSender<Input>,
    moves: Receiver<Move>,
    stop: &AtomicBool,
) -> Largest
where
    S: Source,
    S::Item: Serialize,
{
    let _farewell = Farewell(input);
    let mut flight = InFlight { batches: 0, bytes: 0, largest: Largest::default(), moves };
    let is_over = || stop.load(Ordering::SeqCst);
    let mut number = 0;
    while !is_over() {
        if flight.wait_until(|flight| flight.batches < bounds.batches).is_err() {
            break;
        }
        let (first, items) = match batches.cut(&is_over) {
            Ok(Cut::Batch(Numbered { first, items, .. })) => (first, items),
            Ok(Cut::Pending) => {
                thread::sleep(PENDING);
                continue;
            }
            Ok(Cut::End) => {
                let _ = input.send(Input::End);
                break;
            }
            Err(error) => {
                let _ = input.send(Input::Failed { number, error: error.into() });
                break;
            }
        };
        let head = postcard::to_stdvec(&BatchHead { run, number, first });
        let encoded = head.and_then(|head| postcard::to_extend(&items, head));
        let bytes = match encoded {
            Ok(bytes) => bytes,
            Err(error) => {
                let reason = error.to_string();
                let action = "encoded";
                let error = ClusterError::Codec { batch: number, action, reason };
                let _ = input.send(Input::Failed { number, error });
                break;
            }
        };
        if flight.wait_until(|flight| flight.bytes + bytes.len() <= bounds.bytes).is_err() {
            break;
        }
        flight.enter(bytes.len());
        let _ = input.send(Input::Batch { number, payload: bytes.into() });
        number += 1;
    }
    flight.largest
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn results_take_the_place_of_their_batch() {
        let (sender, moves) = channel();
        let mut flight = InFlight { batches: 0, bytes: 0, largest: Largest::default(), moves };
        flight.enter(10);
        flight.enter(20);
        for next in [Move::Results { batch: 10, results: 100 }, Move::Delivered(100)] {
            sender.send(next).expect("a receiver");
        }
        // It holds at once, and what has happened is counted first.
        assert!(flight.wait_until(|_| true).is_ok());
        assert_eq!((flight.batches, flight.bytes, flight.largest.bytes), (1, 20, 120));
        sender.send(Move::Results { batch: 20, results: 5 }).expect("a receiver");
        assert!(flight.wait_until(|flight| flight.bytes <= 5).is_ok());
        sender.send(Move::Delivered(5)).expect("a receiver");
        assert!(flight.wait_until(|flight| flight.bytes == 0).is_ok());
        flight.enter(7);
        drop(sender);
        assert!(flight.wait_until(|flight| flight.bytes == 0).is_err());
    }
}
