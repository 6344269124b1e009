//! Which run a worker serves: how it finds the coordinator, and when the run has ended.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use heist::CancelToken;

use super::{Answer, HELLO, HELLO_WHILE_WAITING, Worker};
use crate::engine::{Address, Greeting, Pull};
use crate::error::ClusterError;
use crate::message::{Hello, Question, Reply, Welcome, decode_of_any, encode_for_all};
use crate::status::{LeavingWorker, WaitingWorker};
use crate::trace::RemoteClock;

impl<P: Pull> Worker<P> {
    pub(super) fn hear_greeting(
        &mut self,
        greeting: Greeting,
        took: Duration,
    ) -> Result<(), ClusterError> {
        let now = Instant::now();
        match greeting {
            // It was sent before the run has ended.
            Greeting::Welcome(welcome) if self.ended == Some(welcome.run) => {}
            Greeting::Welcome(welcome) => {
                self.abandoned = false;
                self.prefetch.note_round_trip(took);
                self.alone = now;
                let (run, micros) = (welcome.run, welcome.now_micros);
                self.attach(welcome)?;
                if self.attached.as_ref().is_some_and(|attached| attached.run == run) {
                    self.clock.note(micros, took, now);
                }
            }
            Greeting::Foreign(protocol) => {
                let theirs = protocol.map_or_else(
                    || "an unknown version of heist-cluster".to_owned(),
                    |protocol| format!("heist-cluster with protocol {protocol}"),
                );
                return Err(self.mismatch(theirs));
            }
            Greeting::Nobody => self.abandoned = true,
            Greeting::Refused(error) => return Err(error),
            Greeting::Over => {
                if let Some(run) = self.attached.as_ref().map(|attached| attached.run) {
                    self.end_of(run);
                }
            }
            Greeting::NoAnswer => self.hello_at = now + HELLO_WHILE_WAITING,
        }
        Ok(())
    }

    fn mismatch(&self, theirs: String) -> ClusterError {
        let (job, ours) = (self.service.job.clone(), self.service.describes.clone());
        ClusterError::Mismatch { job, ours, theirs }
    }

    /// Serves the run that the coordinator has named.
    fn attach(&mut self, welcome: Welcome) -> Result<(), ClusterError> {
        if welcome.fingerprint != self.service.fingerprint {
            return Err(self.mismatch(welcome.describes));
        }
        let known = self.attached.as_ref().map(|run| (run.run, run.queue.as_str()));
        if known == Some((welcome.run, welcome.queue.as_str())) {
            return Ok(());
        }
        if known.is_some_and(|(run, _)| run != welcome.run) {
            // The coordinator of the earlier run has died.
            self.forget();
            self.clock = RemoteClock::default();
        }
        self.pull.attach(&welcome.queue);
        self.request_again(Instant::now());
        self.attached = Some(welcome);
        // The coordinator knows then that this worker serves the run.
        self.hello_at = Instant::now();
        Ok(())
    }

    /// A run has ended: nothing of it is wanted any more.
    pub(super) fn end_of(&mut self, run: u64) {
        self.ended = Some(run);
        if self.attached.as_ref().is_none_or(|attached| attached.run != run) {
            return;
        }
        self.attached = None;
        self.clock = RemoteClock::default();
        self.alone = Instant::now();
        self.forget();
        self.ending |= !self.settings.stay;
    }

    /// Drops what is not started, and cancels what is.
    pub(super) fn forget(&mut self) {
        self.token.cancel();
        self.token = CancelToken::new();
        for key in self.jobs.take_back(0, false) {
            self.held.remove(&key);
        }
        self.request_again(Instant::now());
    }

    /// Answers an observer.
    pub(super) async fn hear_question(&mut self, question: &Bytes, from: Address) {
        let Ok(question) = decode_of_any::<Question>(question) else { return };
        let (node, job) = (self.settings.node.clone(), self.service.job.clone());
        let reply = match question {
            Question::Status if !self.ending && (self.abandoned || self.attached.is_none()) => {
                Reply::Waiting(WaitingWorker { node, job, threads: self.service.threads })
            }
            Question::Drain { node: asked }
                if asked.as_ref().is_none_or(|asked| *asked == node) =>
            {
                self.service.drained.store(true, Ordering::SeqCst);
                Reply::Leaving(LeavingWorker { node, job, held: self.held.len() })
            }
            Question::Status | Question::Drain { .. } => return,
        };
        self.pull.answer(from, encode_for_all(&reply)).await;
    }

    pub(super) fn greet(&mut self, now: Instant) {
        self.greeting = true;
        self.hello_at = now + if self.attached.is_some() { HELLO } else { HELLO_WHILE_WAITING };
        let hello = self.pull.hello(&Hello {
            node: self.settings.node.clone(),
            id: self.id,
            run: self.attached.as_ref().map(|attached| attached.run),
            threads: self.service.threads,
            held: self.held.len(),
        });
        let answers = self.answers.clone();
        tokio::spawn(async move {
            let greeting = hello.await;
            let _ = answers.send(Answer::Hello { greeting, took: now.elapsed() });
        });
    }
}
