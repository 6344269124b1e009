//! The lock of a job: which coordinator runs it (L1 to L4). The protocol is in ../../README.md.

use std::time::{Duration, Instant};

use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::stream::{LastRawMessageErrorKind, Stream};
use async_nats::{Client, HeaderMap, RequestErrorKind, jetstream};
use bytes::Bytes;
use tokio::time::{sleep, timeout};

use super::queue::refused;
use super::{Names, RECONNECT, REQUEST};
use crate::error::ClusterError;
use crate::message::{Owner, decode, encode};

/// The stream with the locks of all jobs.
pub(super) const LOCKS: &str = "HEIST-LOCKS";
/// How often the lock of a coordinator that has died is taken over before the attempt fails. Others may do so at the same time.
const ATTEMPTS: usize = 5;
/// A coordinator that nobody hears for this long is gone. One that only connects again needs the longest time between two attempts,
/// and the rest is a guess.
const GRACE: Duration = RECONNECT.saturating_mul(4);
/// The time between two questions for a coordinator.
const PAUSE: Duration = Duration::from_millis(100);

const OPERATION: &str = "the lock of the job";

/// The lock of a job, as one coordinator sees it.
pub(super) struct Lock {
    pub(super) context: jetstream::Context,
    pub(super) client: Client,
    pub(super) names: Names,
    pub(super) run: u64,
    pub(super) node: String,
}

impl Lock {
    /// Takes the lock. It is read first, even if this coordinator has had it: a server that has lost its files counts from 1
    /// again, and the lock of another coordinator may be in the place of the earlier one.
    pub(super) async fn take(&self, locks: &Stream) -> Result<(), ClusterError> {
        for _ in 0..ATTEMPTS {
            // L1.
            let (place, owner) = self.last(locks).await?;
            // L2.
            if let Some(Owner { run, node, ended: false }) = owner
                && run != self.run
                && self.is_alive(run).await?
            {
                return Err(ClusterError::AlreadyRunning { job: self.names.job.clone(), node });
            }
            // L3.
            if self.write(place, false).await? {
                return Ok(());
            }
        }
        Err(ClusterError::Server {
            operation: OPERATION,
            reason: "several coordinators try to take it".to_owned(),
        })
    }

    /// Returns the place of the lock if this coordinator has it.
    pub(super) async fn own<I>(&self, locks: &Stream<I>) -> Option<u64> {
        let (place, owner) = self.last(locks).await.ok()?;
        owner.is_some_and(|owner| owner.run == self.run).then_some(place)
    }

    /// Says that the run has ended (L4), if the lock is where it was.
    pub(super) async fn release(&self, place: u64) {
        let _ = self.write(place, true).await;
    }

    /// Returns the place of the lock, or 0, and its owner if it has one.
    async fn last<I>(&self, locks: &Stream<I>) -> Result<(u64, Option<Owner>), ClusterError> {
        match locks.get_last_raw_message_by_subject(&self.names.shared("lock")).await {
            Ok(message) => {
                let owner = decode::<Owner>(&message.payload).map(|(owner, _)| owner);
                Ok((message.sequence, owner))
            }
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok((0, None)),
            Err(error) => Err(refused(OPERATION)(error)),
        }
    }

    /// Writes the lock. Returns whether nobody else has written since it was read.
    async fn write(&self, place: u64, ended: bool) -> Result<bool, ClusterError> {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Expected-Last-Subject-Sequence", place.to_string());
        let owner = encode(&Owner { run: self.run, node: self.node.clone(), ended });
        let subject = self.names.shared("lock");
        let published =
            async { self.context.publish_with_headers(subject, headers, owner).await?.await };
        match published.await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => Ok(false),
            Err(error) => Err(refused(OPERATION)(error)),
        }
    }

    /// Returns whether the coordinator of a run is connected, or connects again in the grace period. It need not answer: the
    /// server knows whether it listens.
    async fn is_alive(&self, run: u64) -> Result<bool, ClusterError> {
        let began = Instant::now();
        loop {
            let subject = self.names.shared(&format!("alive.{run:016x}"));
            match timeout(REQUEST, self.client.request(subject, Bytes::new())).await {
                Ok(Err(error)) if error.kind() == RequestErrorKind::NoResponders => {}
                Ok(Err(error)) if error.kind() != RequestErrorKind::TimedOut => {
                    return Err(refused(OPERATION)(error));
                }
                // A process that is stopped listens, and does not answer.
                Ok(_) | Err(_) => return Ok(true),
            }
            if began.elapsed() >= GRACE {
                return Ok(false);
            }
            sleep(PAUSE).await;
        }
    }
}
