//! What workers say to the coordinator, and what it answers.

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{Commit, Coordinator, LEAST_STRAGGLER, Stop};
use crate::engine::{Address, Queue, QueueEvent};
use crate::error::ClusterError;
use crate::message::{
    Ended, Hello, Permit, Question, Reply, Up, Welcome, decode, decode_of_any, encode,
    encode_for_all,
};
use crate::window::{Finished, Verdict};

impl<Q: Queue> Coordinator<Q> {
    pub(super) async fn hear(&mut self, event: QueueEvent) -> Result<(), Stop> {
        match event {
            QueueEvent::Up(message, from) => {
                if let Some((up, tail)) = decode::<Up>(&message) {
                    self.hear_worker(up, tail, from).await;
                }
            }
            // A node of another version learns from the answer that it is one.
            QueueEvent::Hello(hello, from) => {
                if let Ok(hello) = decode_of_any::<Hello>(&hello)
                    && hello.run == Some(self.job.run)
                {
                    self.workers.hear(hello, Instant::now());
                }
                let welcome = encode_for_all(&self.welcome());
                self.queue.answer(from, welcome).await;
            }
            QueueEvent::Question(question, from) => {
                if let Ok(Question::Status) = decode_of_any(&question) {
                    let status = encode_for_all(&Reply::Running(Box::new(self.status())));
                    self.queue.answer(from, status).await;
                }
            }
            QueueEvent::Connected => {
                if !self.connected {
                    self.connected = true;
                    self.report.reconnects += 1;
                    self.mark(|| "connected again".to_owned());
                    self.reopen = true;
                    self.retry_at = Instant::now();
                }
            }
            QueueEvent::Disconnected => {
                self.connected = false;
                self.mark(|| "connection lost".to_owned());
                self.trouble("no connection".to_owned());
            }
            QueueEvent::Fatal(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn welcome(&self) -> Welcome {
        Welcome {
            run: self.job.run,
            queue: self.queue.name(),
            node: self.settings.node.clone(),
            fingerprint: self.job.fingerprint.clone(),
            describes: self.job.describes.clone(),
            lease_millis: self.settings.lease.as_millis() as u64,
            now_micros: self.micros(),
        }
    }

    async fn hear_worker(&mut self, up: Up, tail: Bytes, from: Option<Address>) {
        let ours = self.job.run;
        match up {
            Up::Started { run, number, node, again } if run == ours => {
                if again && self.window.get(number).is_some() {
                    self.report.redelivered += 1;
                    self.mark(|| format!("batch {number} started again by {node}"));
                }
                self.window.started(number, &node, Instant::now());
            }
            Up::Ended(ended) => self.hear_end(ended, tail).await,
            Up::Ask { run, number } => {
                let permit = if run == ours { self.permit(number) } else { Permit::Drop };
                if let Some(from) = from {
                    self.queue.answer(from, encode(&permit)).await;
                }
            }
            Up::Hungry { .. } => {
                let copy = self.window.straggler(LEAST_STRAGGLER, Instant::now());
                if let Some(copy) = &copy {
                    self.report.copies += 1;
                    self.mark(|| format!("copy of batch {}", copy.number));
                }
                self.unsent.extend(copy);
            }
            Up::GivenBack { run, batches } if run == ours => self.report.given_back += batches,
            Up::Left { id } => self.workers.left(id),
            Up::Started { .. } | Up::GivenBack { .. } => {}
        }
    }

    /// Decides whether a node may start a batch that was delivered before.
    fn permit(&mut self, number: u64) -> Permit {
        // It has a result, which is not delivered before it is committed.
        if self.commits.contains_key(&number) {
            return Permit::Drop;
        }
        match self.window.ask(number, self.settings.attempts) {
            Verdict::Start => Permit::Go,
            Verdict::NotWanted => Permit::Drop,
            Verdict::Poison(nodes) => {
                let job = self.job.name.clone();
                // It is the first outcome: the batch was asked about because it has none.
                let _ =
                    self.finish(number, Err(ClusterError::Poison { job, batch: number, nodes }));
                Permit::Drop
            }
        }
    }

    /// Takes the result of a batch. It is acknowledged here and not by the worker: if it is lost on its way, the lease expires.
    async fn hear_end(&mut self, ended: Ended, results: Bytes) {
        let number = ended.number;
        if ended.run != self.job.run {
            self.report.duplicates += 1;
            return;
        }
        if let Some(next) = ended.next {
            self.window.started(next, &ended.node, Instant::now());
        }
        if self.window.get(number).is_none() || self.commits.contains_key(&number) {
            self.report.duplicates += 1;
            self.trace_batch(&ended, ", dropped");
            self.queue.acknowledge(ended.ack).await;
            return;
        }
        if self.settings.resume && ended.failure.is_none() {
            self.commits.insert(number, Commit { results, ended });
            return self.commit(number);
        }
        self.accept(ended, results).await;
    }

    pub(super) async fn accept(&mut self, ended: Ended, results: Bytes) {
        self.trace_batch(&ended, if ended.failure.is_some() { ", failed" } else { "" });
        let Ended { number, node, micros, skipped, retried, ack, failure, .. } = ended;
        let outcome = match failure {
            None => Ok(results),
            Some(failure) => Err(failure.into_error(number, node.clone())),
        };
        if self.finish(number, outcome) == Finished::First {
            let node = self.report.nodes.entry(node).or_default();
            node.batches += 1;
            node.busy += Duration::from_micros(micros);
            self.report.skipped += skipped;
            self.report.retried += retried;
        }
        self.queue.acknowledge(ack).await;
    }
}
