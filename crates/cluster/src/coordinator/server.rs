//! What the server has done for the coordinator, and what it may have lost.

use std::mem;
use std::time::Instant;

use bytes::Bytes;
use heist::CancelToken;

use super::{BACK_OFF, Commit, Coordinator, Done, Operation, Stop, Trouble, fnv};
use crate::engine::Queue;
use crate::error::{ClusterError, cancelled};
use crate::message::{BatchHead, Down, decode, encode_with};

impl<Q: Queue> Coordinator<Q> {
    pub(super) fn fetch(&mut self, number: u64) {
        let fetched = self.queue.fetch(number);
        self.operations.push(Box::pin(async move { Done::Fetched(number, fetched.await) }));
    }

    pub(super) fn commit(&mut self, number: u64) {
        let (Some(commit), Some(batch)) = (self.commits.get(&number), self.window.get(number))
        else {
            return;
        };
        let results = encode_with(&digest(&batch.payload), &commit.results);
        let committed = self.queue.commit(number, results);
        self.operations.push(Box::pin(async move { Done::Committed(number, committed.await) }));
    }

    pub(super) async fn complete(&mut self, done: Done) -> Result<(), Stop> {
        match done {
            Done::Sent { number, bytes, sent } => {
                self.sending -= 1;
                self.sending_bytes -= bytes;
                if let Err(error) = sent {
                    self.has_failed(Operation::Send, number, error)?;
                    if let Some(batch) = self.window.get(number) {
                        self.unsent.push_back(batch.resent(number));
                        self.report.resent += 1;
                    }
                } else {
                    self.failed.remove(&(Operation::Send, number));
                }
            }
            Done::Committed(number, Ok(())) => {
                self.failed.remove(&(Operation::Commit, number));
                if let Some(Commit { results, ended }) = self.commits.remove(&number) {
                    self.accept(ended, results).await;
                }
            }
            Done::Fetched(number, Ok(committed)) => {
                self.failed.remove(&(Operation::Fetch, number));
                self.resume(number, &committed)?;
            }
            Done::Committed(number, Err(error)) => {
                self.has_failed(Operation::Commit, number, error)?;
                self.uncommitted.push(number);
            }
            Done::Fetched(number, Err(error)) => {
                self.has_failed(Operation::Fetch, number, error)?;
                self.uncommitted.push(number);
            }
            Done::Waiting(waiting) => {
                self.checking = false;
                let lost = waiting.is_some_and(|waiting| {
                    waiting < self.window.outstanding().saturating_sub(self.commits.len()) as u64
                });
                // The queue may be gone, although the connection was not lost.
                self.reopen |= waiting.is_none();
                if lost && self.sending == 0 && self.unsent.is_empty() {
                    let late = self.window.resend_late(self.settings.lease * 2, Instant::now());
                    self.report.resent += late.len() as u64;
                    self.unsent.extend(late);
                }
            }
        }
        Ok(())
    }

    /// Takes the committed results of a batch instead of sending it.
    fn resume(&mut self, number: u64, committed: &Bytes) -> Result<(), ClusterError> {
        let Some(payload) = self.fetching.remove(&number) else { return Ok(()) };
        match decode::<u64>(committed) {
            Some((hash, results)) if hash == digest(&payload) => {
                self.report.resumed += 1;
                self.results_are(payload.len(), results.len());
                self.window.finish_known(number, Ok(results));
                Ok(())
            }
            _ => Err(ClusterError::SourceChanged { job: self.job.name.clone(), batch: number }),
        }
    }

    /// Notes that an operation for a batch has failed.
    fn has_failed(
        &mut self,
        operation: Operation,
        number: u64,
        error: ClusterError,
    ) -> Result<(), Stop> {
        if error.is_final() {
            return Err(error.into());
        }
        self.failed.insert((operation, number));
        self.trouble(error.to_string());
        // The server may not know the queue any more.
        self.reopen = true;
        Ok(())
    }

    /// Notes that the server cannot be used at the moment.
    pub(super) fn trouble(&mut self, reason: String) {
        let now = Instant::now();
        let since = self.troubled.as_ref().map_or(now, |trouble| trouble.since);
        self.troubled = Some(Trouble { since, reason });
        self.retry_at = now + BACK_OFF;
    }

    /// Returns whether there is nothing that the server has not done yet after it has failed.
    fn has_recovered(&mut self) -> bool {
        let (window, fetching) = (&self.window, &self.fetching);
        // The result of a batch may come although it could not be sent again.
        let known = |number| window.get(number).is_some() || fetching.contains_key(&number);
        self.failed.retain(|(_, number)| known(*number));
        self.connected && !self.reopen && self.failed.is_empty()
    }

    /// Looks at what no event announces.
    pub(super) async fn look(&mut self) -> Result<(), Stop> {
        if self.job.token.as_ref().is_some_and(CancelToken::is_cancelled) {
            return Err(ClusterError::from(cancelled()).into());
        }
        let now = Instant::now();
        if let Some(Trouble { since, reason }) = &self.troubled {
            let after = now.saturating_duration_since(*since);
            if after > self.settings.patience {
                let (url, reason) = (self.settings.shown_url(), reason.clone());
                return Err(ClusterError::Lost { url, after, reason }.into());
            }
        }
        if self.connected && now >= self.retry_at {
            if self.reopen {
                self.open_again().await?;
            }
            if self.has_recovered() {
                self.troubled = None;
            }
            for number in mem::take(&mut self.uncommitted) {
                if self.fetching.contains_key(&number) {
                    self.fetch(number)
                } else {
                    self.commit(number)
                }
            }
        }
        let limit = self.settings.lease * 2;
        if !self.checking
            && now.saturating_duration_since(self.checked) > self.settings.lease
            && self.window.any_late(limit, now)
        {
            self.checked = now;
            self.checking = true;
            let waiting = self.queue.waiting();
            self.operations.push(Box::pin(async move { Done::Waiting(waiting.await) }));
        }
        Ok(())
    }

    /// Makes the queue again if the server has lost it, and sends again what it may have lost.
    async fn open_again(&mut self) -> Result<(), Stop> {
        match self.queue.open(false).await {
            Ok(()) => {}
            Err(error) if error.is_final() => return Err(error.into()),
            Err(error) => {
                self.trouble(error.to_string());
                return Ok(());
            }
        }
        self.reopen = false;
        self.unsent = self.window.resend_all(Instant::now()).into();
        self.report.resent += self.unsent.len() as u64;
        let resent = self.unsent.len();
        self.mark(|| format!("{resent} batches sent again"));
        self.queue.tell(Down::Open).await;
        Ok(())
    }
}

/// Identifies the items of a batch, for a run that resumes this one in another process.
fn digest(payload: &Bytes) -> u64 {
    // The head contains the number of the run.
    let items = decode::<BatchHead>(payload)
        .map_or(&payload[..0], |(_, items)| &payload[payload.len() - items.len()..]);
    fnv(items)
}
