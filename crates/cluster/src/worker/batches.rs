//! The batches of a worker: what its threads say of them, and what it tells the coordinator.

use std::time::{Duration, Instant};

use super::runner::{Computed, Key, News};
use super::{Answer, Held, Worker};
use crate::engine::Pull;
use crate::message::{Ended, Failure, Permit, Up, decode, encode, encode_with};

impl<P: Pull> Worker<P> {
    pub(super) async fn hear_thread(&mut self, news: News) {
        match news {
            News::Started(key) => self.say_started(key, false).await,
            News::May(key, answer) => {
                let Some(held) = self.held.get(&key) else { return };
                let asked = self.pull.ask(encode(&Up::Ask { run: held.run, number: held.number }));
                let answers = self.answers.clone();
                tokio::spawn(async move {
                    let permit = asked.await.and_then(|permit| decode::<Permit>(&permit));
                    let permit = permit.map(|(permit, _)| permit);
                    let _ = answers.send(Answer::May { key, permit, answer });
                });
            }
            News::Ended { key, began, micros, thread, outcome, next } => {
                self.finish(key, (began, micros, thread), outcome, next).await;
            }
        }
    }

    /// Tells the coordinator that a batch is started now.
    pub(super) async fn say_started(&self, key: Key, again: bool) {
        let Some(held) = self.held.get(&key) else { return };
        let node = self.settings.node.clone();
        let up = Up::Started { run: held.run, number: held.number, node, again };
        self.pull.up(encode(&up)).await;
    }

    async fn finish(
        &mut self,
        key: Key,
        (began, micros, thread): (Instant, u64, usize),
        outcome: Result<Computed, Failure>,
        next: Option<Key>,
    ) {
        let held = self.held.remove(&key);
        let of_run = |next: &&Held| held.as_ref().is_some_and(|held| held.run == next.run);
        let starts = next.and_then(|next| self.held.get(&next)).filter(of_run);
        let starts = starts.map(|next| next.number);
        // The batch that has ended is not wanted any more, or the next one is of another run.
        if let Some(next) = next
            && starts.is_none()
        {
            self.say_started(next, false).await;
        }
        let Some(Held { ack, run, number }) = held else { return };
        self.report.batches += 1;
        self.prefetch.note_batch(Duration::from_micros(micros));
        let node = self.settings.node.clone();
        let (failure, computed) = match outcome {
            Ok(computed) => (None, computed),
            Err(failure) => (Some(failure), Computed::default()),
        };
        let Computed { results, skipped, retried } = computed;
        self.report.skipped += skipped;
        self.report.retried += retried;
        let began = self.clock.at(began);
        let next = starts;
        let mut ended = Ended {
            run,
            number,
            node,
            began,
            micros,
            thread,
            skipped,
            retried,
            ack,
            failure,
            next,
        };
        let mut message = encode_with(&Up::Ended(ended.clone()), &results);
        let limit = self.pull.limit();
        if message.len() > limit {
            ended.failure = Some(Failure::ResultTooLarge { bytes: message.len(), limit });
            message = encode(&Up::Ended(ended));
        }
        self.pull.up(message).await;
    }
}
