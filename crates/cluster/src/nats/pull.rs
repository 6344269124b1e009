//! A worker's end. The protocol is in ../../README.md.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::jetstream;
use async_nats::jetstream::context::AccountErrorKind;
use async_nats::{Client, Message, RequestErrorKind, StatusCode, Subject, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::time::timeout;

use super::lock::LOCKS;
use super::queue::is_lack_of_jetstream;
use super::{Change, Connection, Names, QUESTIONS, REQUEST, SEND, full_text};
use crate::engine::{Address, Greeting, Pull, PullEvent};
use crate::error::ClusterError;
use crate::message::{Hello, Owner, decode, decode_of_any, encode, encode_for_all};
use crate::settings::Settings;

/// The header of a batch that was sent before.
pub(super) const AGAIN: &str = "Heist-Again";
/// How long the server keeps a request for batches.
const EXPIRES: Duration = Duration::from_secs(5);
/// How often the server says that it still knows of the request: a new leader does not.
const ALIVE: Duration = Duration::from_millis(500);
/// A batch that is not to be delivered at once is delivered after this.
const LATER: Duration = Duration::from_millis(300);

/// A worker's end of a job.
pub(crate) struct NatsPull {
    connection: Connection,
    context: jetstream::Context,
    names: Names,
    /// The consumer to pull from.
    queue: String,
    /// Batches are delivered here.
    inbox: String,
    batches: Subscriber,
    downs: Subscriber,
    hungry: Subscriber,
    questions: Subscriber,
    /// Whether the server has JetStream, or cannot tell: it was asked.
    has_jetstream: Arc<AtomicBool>,
}

impl NatsPull {
    /// Connects to the server.
    pub(crate) async fn new(settings: &Settings, names: Names) -> Result<Self, ClusterError> {
        let mut connection = Connection::new(settings).await?;
        let client = connection.client.clone();
        let inbox = client.new_inbox();
        let questions = QUESTIONS.to_owned();
        let subjects = [inbox.clone(), names.own("down"), names.own("hungry"), questions];
        let subscribed = connection.before_start(async {
            let mut subscribers = Vec::new();
            let refused = |error: &dyn std::error::Error| ClusterError::Server {
                operation: "a subscription",
                reason: full_text(error),
            };
            for subject in subjects {
                subscribers.push(client.subscribe(subject).await.map_err(|error| refused(&error))?);
            }
            client.flush().await.map_err(|error| refused(&error))?;
            Ok(subscribers)
        });
        let subscribers = subscribed.await?;
        let [batches, downs, hungry, questions] =
            <[Subscriber; 4]>::try_from(subscribers).expect("four of them");
        let context = connection.jetstream();
        let queue = String::new();
        Ok(Self {
            connection,
            context,
            names,
            queue,
            inbox,
            batches,
            downs,
            hungry,
            questions,
            has_jetstream: Arc::default(),
        })
    }

    /// Returns what a message at the inbox means.
    fn read(&self, message: Message) -> PullEvent {
        match message.status {
            None | Some(StatusCode::OK) => {}
            Some(StatusCode::IDLE_HEARTBEAT) => return PullEvent::Alive,
            // A request has ended. It says how many of its batches have not come, unless the consumer is gone.
            Some(_) => {
                let headers = message.headers.as_ref();
                let pending = headers.and_then(|headers| headers.get("Nats-Pending-Messages"));
                return PullEvent::Ended(pending.and_then(|pending| pending.as_str().parse().ok()));
            }
        }
        let Some(ack) = message.reply.as_ref().map(ToString::to_string) else {
            return PullEvent::Alive;
        };
        let copied = message.headers.as_ref().is_some_and(|headers| headers.get(AGAIN).is_some());
        let payload = message.payload.clone();
        let message = jetstream::Message { message, context: self.context.clone() };
        let delivered = message.info().map_or(1, |info| info.delivered);
        PullEvent::Batch { payload, ack, again: copied || delivered > 1 }
    }

    // Without a connection, leases expire and the coordinator sends batches again.
    async fn publish(&self, subject: impl Into<String>, message: impl Into<Bytes>) {
        self.connection.publish(subject.into(), message.into()).await;
    }
}

/// Returns the run that has had the lock last, if it has ended (E2).
async fn last_ended(client: &Client, lock: &str) -> Option<u64> {
    let subject = format!("$JS.API.DIRECT.GET.{LOCKS}.{lock}");
    let message = timeout(REQUEST, client.request(subject, Bytes::new())).await.ok()?.ok()?;
    let (owner, _) = decode::<Owner>(&message.payload)?;
    owner.ended.then_some(owner.run)
}

/// Returns whether the server says that it has no JetStream, or none for this user. A user may have no right to ask.
async fn lacks_jetstream(context: &jetstream::Context) -> bool {
    match timeout(REQUEST, context.query_account()).await {
        Ok(Err(error)) => match error.kind() {
            AccountErrorKind::JetStreamUnavailable => true,
            AccountErrorKind::JetStream(error) => is_lack_of_jetstream(&error),
            _ => false,
        },
        _ => false,
    }
}

impl Pull for NatsPull {
    fn hello(&self, hello: &Hello) -> impl Future<Output = Greeting> + use<> {
        let (client, subject) = (self.connection.client.clone(), self.names.shared("hello"));
        let lock = self.names.shared("lock");
        let (context, url) = (self.context.clone(), self.connection.url.clone());
        let has_jetstream = Arc::clone(&self.has_jetstream);
        let (served, hello) = (hello.run, encode_for_all(hello));
        async move {
            match timeout(REQUEST, client.request(subject, hello)).await {
                Ok(Ok(message)) => match decode_of_any(&message.payload) {
                    Ok(welcome) => Greeting::Welcome(welcome),
                    Err(protocol) => Greeting::Foreign(protocol),
                },
                Ok(Err(error)) if error.kind() == RequestErrorKind::NoResponders => match served {
                    Some(run) if last_ended(&client, &lock).await == Some(run) => Greeting::Over,
                    // No coordinator can use such a server, and nobody else would say why this worker waits.
                    None if !has_jetstream.load(Ordering::Relaxed)
                        && lacks_jetstream(&context).await =>
                    {
                        Greeting::Refused(ClusterError::NoJetStream { url })
                    }
                    _ => {
                        has_jetstream.store(true, Ordering::Relaxed);
                        Greeting::Nobody
                    }
                },
                Ok(Err(_)) | Err(_) => Greeting::NoAnswer,
            }
        }
    }

    fn attach(&mut self, queue: &str) {
        self.queue = queue.to_owned();
    }

    async fn request(&self, batches: usize) {
        let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{}.{}", self.names.stream(), self.queue);
        let request = format!(
            r#"{{"batch":{batches},"expires":{},"idle_heartbeat":{}}}"#,
            EXPIRES.as_nanos(),
            ALIVE.as_nanos()
        );
        let inbox = Subject::from(self.inbox.as_str());
        let client = &self.connection.client;
        let _ = timeout(SEND, client.publish_with_reply(subject, inbox, request.into())).await;
    }

    async fn event(&mut self) -> PullEvent {
        tokio::select! {
            Some(message) = self.batches.next() => self.read(message),
            Some(message) = self.downs.next() => PullEvent::Down(message.payload),
            Some(message) = self.hungry.next() => match decode::<u64>(&message.payload) {
                Some((id, _)) => PullEvent::Hungry(id),
                None => PullEvent::Alive,
            },
            Some(message) = self.questions.next() => match message.reply {
                Some(reply) => PullEvent::Question(message.payload, reply.to_string()),
                None => PullEvent::Alive,
            },
            change = self.connection.change() => match change {
                Change::Connected => PullEvent::Connected,
                Change::Disconnected => PullEvent::Disconnected,
                Change::Fatal(error) => PullEvent::Fatal(error),
            },
        }
    }

    async fn renew(&self, batch: &str) {
        self.publish(batch, "+WPI").await;
    }

    async fn give_back(&self, batch: &str, at_once: bool) {
        if at_once {
            return self.publish(batch, "-NAK").await;
        }
        self.publish(batch, format!(r#"-NAK {{"delay":{}}}"#, LATER.as_nanos())).await;
    }

    async fn refuse(&self, batch: &str) {
        self.publish(batch, "+TERM").await;
    }

    async fn up(&self, message: Bytes) {
        self.publish(self.names.own("up"), message).await;
    }

    fn ask(&self, message: Bytes) -> impl Future<Output = Option<Bytes>> + use<> {
        let (client, subject) = (self.connection.client.clone(), self.names.own("up"));
        async move {
            let answer = timeout(REQUEST, client.request(subject, message)).await;
            answer.ok()?.ok().map(|message| message.payload)
        }
    }

    async fn answer(&self, to: Address, message: Bytes) {
        self.publish(to, message).await;
    }

    async fn hungry(&self, id: u64) {
        self.publish(self.names.own("hungry"), encode(&id)).await;
    }

    async fn flush(&self) {
        let _ = timeout(REQUEST, self.connection.client.flush()).await;
    }

    fn limit(&self) -> usize {
        self.connection.limit()
    }
}
