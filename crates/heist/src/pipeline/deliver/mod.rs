//! How results get from the workers to the consumer: the workers store them in outboxes (`outbox`), and the
//! consumer takes them from there (`delivery`), in a call of `run` or through an iterator (`results`), a stream (`stream`) or a
//! future (`run_async`). `tee` has a second sink.
//!
//! Results are fetched, not sent. How the consumer sleeps when there are none is a part of the protocol in
//! `control::consumer`.

mod delivery;
mod outbox;
mod results;
#[cfg(feature = "futures")]
mod run_async;
#[cfg(feature = "futures")]
mod stream;
mod tee;

pub(super) use delivery::Delivery;
pub(super) use outbox::{BatchEntry, Outboxes};
pub use results::Results;
#[cfg(feature = "futures")]
pub use stream::ResultStream;
#[doc(hidden)]
pub use tee::Outcome;
pub use tee::Tee;
