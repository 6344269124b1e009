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
    /// The size of each batch that has been delivered.
    left: Receiver<usize>,
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
        while let Ok(bytes) = self.left.try_recv() {
            self.leave(bytes);
        }
        while self.batches > 0 && !fits(self) {
            let bytes = self.left.recv().map_err(|_| Over)?;
            self.leave(bytes);
        }
        Ok(())
    }

    fn leave(&mut self, bytes: usize) {
        self.batches -= 1;
        self.bytes -= bytes;
    }
}

/// Tells the coordinator that the thread has ended, however it does.
struct Farewell<'i>(&'i UnboundedSender<Input>);

impl Drop for Farewell<'_> {
    fn drop(&mut self) {
        let _ = self.0.send(Input::SourceGone);
    }
}

/// Sends the batches of the source, until it ends or is to `stop`. `left` yields the size of each batch that was delivered.
pub(crate) fn feed<S>(
    mut batches: Batches<S>,
    run: u64,
    bounds: Bounds,
    input: &UnboundedSender<Input>,
    left: Receiver<usize>,
    stop: &AtomicBool,
) -> Largest
where
    S: Source,
    S::Item: Serialize,
{
    let _farewell = Farewell(input);
    let mut flight = InFlight { batches: 0, bytes: 0, largest: Largest::default(), left };
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
