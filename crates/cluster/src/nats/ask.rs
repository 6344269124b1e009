//! An observer's end: asks all nodes, and collects their answers.

use std::time::Duration;

use async_nats::{Client, RequestErrorKind, StatusCode, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::time::{Instant, timeout, timeout_at};

use super::queue::refused;
use super::{Connection, QUESTIONS, REQUEST};
use crate::error::ClusterError;
use crate::message::{Question, Reply, decode_of_any, encode_for_all};
use crate::settings::Settings;

/// How many nodes there are is not known: after this without another answer, all have answered. A guess.
const QUIET: Duration = Duration::from_millis(300);
/// Answers that come later than this are not waited for, however many there are.
const LONGEST: Duration = Duration::from_secs(5);

/// Returns whether the server answers: it says that nobody listens on this subject.
async fn answers_at_all(client: &Client) -> bool {
    let asked = timeout(REQUEST, client.request("heist.$nobody", Bytes::new())).await;
    matches!(asked, Ok(Err(error)) if error.kind() == RequestErrorKind::NoResponders)
}

/// An observer's end.
pub(crate) struct NatsAsk {
    connection: Connection,
    /// Answers are expected below this subject, and not at an inbox: workers may publish on subjects of jobs only.
    inbox: String,
    answers: Subscriber,
    /// How often it has asked. An answer to an earlier question may come late.
    asked: u64,
}

impl NatsAsk {
    /// Connects to the server.
    pub(crate) async fn new(settings: &Settings) -> Result<Self, ClusterError> {
        let mut connection = Connection::new(settings).await?;
        let client = connection.client.clone();
        let id = client.new_inbox();
        let inbox = format!("heist.$to.{}", id.rsplit('.').next().unwrap_or_default());
        let subject = format!("{inbox}.*");
        let subscribed = connection.before_start(async {
            let answers = client.subscribe(subject).await.map_err(refused("a subscription"))?;
            client.flush().await.map_err(refused("a subscription"))?;
            Ok(answers)
        });
        let answers = subscribed.await?;
        Ok(Self { connection, inbox, answers, asked: 0 })
    }

    /// Asks all nodes. Nodes with another version of the protocol do not count.
    pub(crate) async fn ask(&mut self, question: &Question) -> Result<Vec<Reply>, ClusterError> {
        self.asked += 1;
        let reply = format!("{}.{}", self.inbox, self.asked);
        let client = self.connection.client.clone();
        let (answers, url) = (&mut self.answers, self.connection.url.clone());
        let question = encode_for_all(question);
        let asked = async {
            let sent = client.publish_with_reply(QUESTIONS, reply.clone(), question);
            // The client makes the caller wait when it has no connection and too many messages.
            match timeout(REQUEST, sent).await {
                Ok(sent) => sent.map_err(refused("a question to all nodes"))?,
                Err(_) => return Err(super::silent(url, REQUEST)),
            }
            let longest = Instant::now() + LONGEST;
            let mut found = Vec::new();
            let mut until = Instant::now() + REQUEST;
            loop {
                let message = match timeout_at(until, answers.next()).await {
                    Ok(Some(message)) => message,
                    // There are nodes, none of which has an answer, or there is no connection.
                    Err(_) if found.is_empty() && !answers_at_all(&client).await => {
                        return Err(super::silent(url, REQUEST));
                    }
                    Ok(None) | Err(_) => return Ok(found),
                };
                if message.subject.as_str() != reply {
                    continue;
                }
                // There are no nodes.
                if message.status == Some(StatusCode::NO_RESPONDERS) {
                    return Ok(found);
                }
                found.push(message.payload);
                until = longest.min(Instant::now() + QUIET);
            }
        };
        let answers: Vec<Bytes> = self.connection.or_violation(asked).await?;
        Ok(answers.iter().filter_map(|answer| decode_of_any(answer).ok()).collect())
    }
}
