//! The coordinator's end. The protocol is in ../../README.md.

use std::error::Error;
use std::time::Duration;

use async_nats::jetstream::context::{CreateStreamErrorKind, PublishError, PublishErrorKind};
use async_nats::jetstream::stream::{Config, RetentionPolicy, StorageType, Stream};
use async_nats::jetstream::{self, ErrorCode, consumer::AckPolicy, consumer::pull};
use async_nats::{HeaderMap, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;

use super::lock::{LOCKS, Lock};
use super::{Change, Connection, Names, QUESTIONS, full_text};
use crate::engine::{Address, Queue, QueueEvent};
use crate::error::ClusterError;
use crate::message::{Down, encode};
use crate::settings::{Settings, Storage};
use crate::window::Dispatch;

/// How long the server remembers the identities of batches. A batch that is sent again later would be computed again, and its
/// second result dropped. Longer than most restarts of a server.
const DUPLICATES: Duration = Duration::from_secs(120);
/// Requests of workers that the server keeps waiting, at most.
const MAX_WAITING: i64 = 8_192;

/// The coordinator's end of a job.
pub(crate) struct NatsQueue {
    connection: Connection,
    context: jetstream::Context,
    names: Names,
    settings: Settings,
    run: u64,
    in_flight: usize,
    /// How often the queue was made. Each has a consumer of another name: acknowledgements that belong to a queue that was lost
    /// must not reach its successor.
    epoch: u64,
    /// Whether the queue is this coordinator's. Without a connection, another one may take over the job.
    owner: bool,
    ups: Subscriber,
    hellos: Subscriber,
    /// Other coordinators ask here whether this one is alive. The subscription itself is the answer.
    alive: Subscriber,
    questions: Subscriber,
}

impl NatsQueue {
    /// Connects to the server.
    pub(crate) async fn new(
        settings: &Settings,
        names: Names,
        run: u64,
        in_flight: usize,
    ) -> Result<Self, ClusterError> {
        let mut connection = Connection::new(settings).await?;
        let client = connection.client.clone();
        let alive = names.shared(&format!("alive.{run:016x}"));
        let subjects = [names.own("up"), names.shared("hello"), alive, QUESTIONS.to_owned()];
        let subscribed = connection.before_start(async {
            let mut subscribers = Vec::new();
            for subject in subjects {
                subscribers
                    .push(client.subscribe(subject).await.map_err(refused("a subscription"))?);
            }
            client.flush().await.map_err(refused("a subscription"))?;
            Ok(subscribers)
        });
        let subscribers = subscribed.await?;
        let [ups, hellos, alive, questions] =
            <[Subscriber; 4]>::try_from(subscribers).expect("four of them");
        let context = connection.jetstream();
        Ok(Self {
            connection,
            context,
            names,
            settings: settings.clone(),
            run,
            in_flight,
            epoch: 0,
            owner: false,
            ups,
            hellos,
            alive,
            questions,
        })
    }

    fn config(&self, name: String, subject: String) -> Config {
        Config {
            name,
            subjects: vec![subject],
            storage: match self.settings.storage {
                Storage::Memory => StorageType::Memory,
                Storage::File => StorageType::File,
            },
            num_replicas: self.settings.replicas,
            ..Config::default()
        }
    }

    fn lock(&self) -> Lock {
        Lock {
            context: self.context.clone(),
            client: self.connection.client.clone(),
            names: self.names.clone(),
            run: self.run,
            node: self.settings.node.clone(),
        }
    }

    fn setup(&self) -> Setup {
        let batches = Config {
            retention: RetentionPolicy::WorkQueue,
            duplicate_window: DUPLICATES,
            ..self.config(self.names.stream(), self.names.shared("q.*"))
        };
        let results = Config {
            storage: StorageType::File,
            ..self.config(self.names.results_stream(), self.names.shared("r.*.*"))
        };
        let locks = Config {
            max_messages_per_subject: 1,
            // A worker asks there whether a run has ended, perhaps after a restart of the server, and may do nothing else.
            storage: StorageType::File,
            allow_direct: true,
            ..self.config(LOCKS.to_owned(), "heist.*.lock".to_owned())
        };
        let consumer = pull::Config {
            filter_subject: self.batch_subject(),
            ack_policy: AckPolicy::Explicit,
            ack_wait: self.settings.lease,
            // A batch may be there several times: as a copy, and with the attempts that the server has lost and found.
            max_ack_pending: (self.in_flight * 4 + 1_000) as i64,
            max_waiting: MAX_WAITING,
            ..pull::Config::default()
        };
        Setup {
            context: self.context.clone(),
            lock: self.lock(),
            names: self.names.clone(),
            url: self.connection.url.clone(),
            run: self.run,
            epoch: self.epoch,
            batches,
            results: self.settings.resume.then_some(results),
            locks,
            consumer,
        }
    }

    fn batch_subject(&self) -> String {
        self.names.shared(&format!("q.{}", self.names.fingerprint))
    }

    /// The subject of the committed results of a batch, or of all batches.
    fn result_subject(&self, number: &str) -> String {
        self.names.shared(&format!("r.{}.{number}", self.names.fingerprint))
    }
}

/// What is made on the server before a run, and again after the server was lost.
struct Setup {
    context: jetstream::Context,
    lock: Lock,
    names: Names,
    url: String,
    run: u64,
    epoch: u64,
    batches: Config,
    results: Option<Config>,
    locks: Config,
    consumer: pull::Config,
}

impl Setup {
    /// Makes everything. Returns the number of the queue.
    async fn make(mut self, first: bool) -> Result<u64, ClusterError> {
        let locks = self.stream(&self.locks).await?;
        self.lock.take(&locks).await?;
        if first {
            // An earlier run may have left batches.
            let _ = self.context.delete_stream(&self.batches.name).await;
            if self.results.is_none() {
                let _ = self.context.delete_stream(self.names.results_stream()).await;
            }
        }
        if let Some(results) = &self.results {
            self.stream(results).await?;
        }
        let stream = self.stream(&self.batches).await?;
        let name = |epoch| Names::queue(self.run, epoch);
        if stream.consumer_info(name(self.epoch)).await.is_ok() {
            return Ok(self.epoch);
        }
        // Two consumers of a work queue cannot share a subject.
        for epoch in 0..=self.epoch {
            let _ = stream.delete_consumer(&name(epoch)).await;
        }
        self.epoch += 1;
        self.consumer.durable_name = Some(Names::queue(self.run, self.epoch));
        let made = stream.create_consumer(self.consumer).await;
        made.map_err(refused("the consumer of the batches"))?;
        Ok(self.epoch)
    }

    async fn stream(&self, config: &Config) -> Result<Stream, ClusterError> {
        // Asked first: streams that a user of the server has made, with other limits for example, are used as they are.
        if let Ok(stream) = self.context.get_stream(&config.name).await {
            return Ok(stream);
        }
        match self.context.create_stream(config).await {
            Ok(_) => self.context.get_stream(&config.name).await.map_err(refused("a stream")),
            Err(error) => Err(match error.kind() {
                CreateStreamErrorKind::JetStreamUnavailable => {
                    ClusterError::NoJetStream { url: self.url.clone() }
                }
                CreateStreamErrorKind::JetStream(error) if is_lack_of_jetstream(&error) => {
                    ClusterError::NoJetStream { url: self.url.clone() }
                }
                _ => refused("a stream")(error),
            }),
        }
    }
}

/// Returns whether an error says that the server has no JetStream, or none for this user.
pub(super) fn is_lack_of_jetstream(error: &jetstream::Error) -> bool {
    let code = error.error_code();
    code == ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT || code == ErrorCode::JETSTREAM_NOT_ENABLED
}

/// Returns why the server has not stored a message.
fn not_stored(operation: &'static str, error: &PublishError) -> ClusterError {
    let reason = full_text(error);
    let stated = error.source().and_then(|source| source.downcast_ref::<jetstream::Error>());
    let is_limit = error.kind() == PublishErrorKind::MaxPayloadExceeded
        || stated.is_some_and(|stated| match stated.error_code() {
            ErrorCode::ACCOUNT_RESOURCES_EXCEEDED
            | ErrorCode::INSUFFICIENT_RESOURCES
            | ErrorCode::MEMORY_RESOURCES_EXCEEDED
            | ErrorCode::STORAGE_RESOURCES_EXCEEDED
            | ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM
            | ErrorCode::STREAM_HEADER_EXCEEDS_MAXIMUM => true,
            // The limits of a stream that somebody has made. Other failures of the store may pass.
            ErrorCode::STREAM_STORE_FAILED => reason.contains("exceeded"),
            _ => false,
        });
    if is_limit {
        return ClusterError::Limit { operation, reason };
    }
    ClusterError::Server { operation, reason }
}

/// Returns a function that makes an error of what the client says.
pub(super) fn refused<E: Error>(operation: &'static str) -> impl Fn(E) -> ClusterError {
    move |error| ClusterError::Server { operation, reason: full_text(&error) }
}

impl Queue for NatsQueue {
    async fn open(&mut self, first: bool) -> Result<(), ClusterError> {
        self.owner = false;
        let mut setup = self.setup();
        self.epoch = if first {
            // The limit for the start ends what takes too long.
            setup.context.set_timeout(self.settings.start);
            self.connection.before_start(setup.make(first)).await?
        } else {
            self.connection.or_violation(setup.make(first)).await?
        };
        self.owner = true;
        Ok(())
    }

    fn name(&self) -> String {
        Names::queue(self.run, self.epoch)
    }

    fn waiting(&self) -> impl Future<Output = Option<u64>> + use<> {
        let (context, stream, consumer) = (self.context.clone(), self.names.stream(), self.name());
        async move {
            let stream = context.get_stream_no_info(stream).await.ok()?;
            let info = stream.consumer_info(consumer).await.ok()?;
            Some(info.num_pending + info.num_ack_pending as u64)
        }
    }

    fn limit(&self) -> usize {
        self.connection.limit()
    }

    fn send(&self, batch: Dispatch) -> impl Future<Output = Result<(), ClusterError>> + use<> {
        let (context, subject, run) = (self.context.clone(), self.batch_subject(), self.run);
        let limit = self.limit();
        let Dispatch { number, attempt, again, payload } = batch;
        let bytes = payload.len();
        async move {
            let mut headers = HeaderMap::new();
            headers.insert("Nats-Msg-Id", format!("{run:x}-{number}-{attempt}"));
            if again {
                headers.insert(super::pull::AGAIN, "1");
            }
            let sent =
                async { context.publish_with_headers(subject, headers, payload).await?.await };
            match sent.await {
                Ok(_) => Ok(()),
                // The server that the client is connected to now may have another limit.
                Err(error) if error.kind() == PublishErrorKind::MaxPayloadExceeded => {
                    Err(ClusterError::BatchTooLarge { batch: number, bytes, limit })
                }
                Err(error) => Err(not_stored("a batch", &error)),
            }
        }
    }

    async fn event(&mut self) -> QueueEvent {
        loop {
            tokio::select! {
                // A change of the connection comes before what the new connection brings.
                biased;
                change = self.connection.change() => return match change {
                    Change::Connected => QueueEvent::Connected,
                    Change::Disconnected => {
                        self.owner = false;
                        QueueEvent::Disconnected
                    }
                    Change::Fatal(error) => QueueEvent::Fatal(error),
                },
                Some(message) = self.hellos.next() => if let Some(reply) = message.reply {
                    return QueueEvent::Hello(message.payload, reply.to_string());
                },
                Some(message) = self.questions.next() => if let Some(reply) = message.reply {
                    return QueueEvent::Question(message.payload, reply.to_string());
                },
                Some(message) = self.alive.next() => if let Some(reply) = message.reply {
                    self.connection.publish(reply, Bytes::new()).await;
                },
                Some(message) = self.ups.next() => {
                    return QueueEvent::Up(message.payload, message.reply.map(|to| to.to_string()));
                }
            }
        }
    }

    // What cannot be sent because there is no connection is sent again by its own rule: batches by the window, and the rest when
    // a lease has expired.
    async fn acknowledge(&self, batch: Address) {
        self.connection.publish(batch, Bytes::from_static(b"+ACK")).await;
    }

    async fn answer(&self, to: Address, message: Bytes) {
        self.connection.publish(to, message).await;
    }

    async fn tell(&self, message: Down) {
        self.connection.publish(self.names.own("down"), encode(&message)).await;
    }

    async fn committed(&mut self) -> Result<Vec<u64>, ClusterError> {
        let operation = "the list of committed results";
        let mut context = self.context.clone();
        context.set_timeout(super::LIST);
        let stream = context.get_stream(self.names.results_stream()).await;
        let stream = stream.map_err(refused(operation))?;
        let all = stream.info_with_subjects(self.result_subject("*")).await;
        let mut all = all.map_err(refused(operation))?;
        let mut numbers = Vec::new();
        while let Some(subject) = all.next().await {
            let (subject, _) = subject.map_err(refused(operation))?;
            numbers
                .extend(subject.rsplit('.').next().and_then(|number| number.parse::<u64>().ok()));
        }
        Ok(numbers)
    }

    fn commit(
        &self,
        number: u64,
        results: Bytes,
    ) -> impl Future<Output = Result<(), ClusterError>> + use<> {
        let (context, subject) = (self.context.clone(), self.result_subject(&number.to_string()));
        async move {
            let mut headers = HeaderMap::new();
            headers.insert("Nats-Expected-Last-Subject-Sequence", "0");
            let sent =
                async { context.publish_with_headers(subject, headers, results).await?.await };
            match sent.await {
                Ok(_) => Ok(()),
                // An earlier attempt has arrived, and only its answer was lost.
                Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => Ok(()),
                Err(error) => Err(not_stored("a commit of results", &error)),
            }
        }
    }

    fn fetch(&self, number: u64) -> impl Future<Output = Result<Bytes, ClusterError>> + use<> {
        let (context, name) = (self.context.clone(), self.names.results_stream());
        let subject = self.result_subject(&number.to_string());
        async move {
            let operation = "committed results";
            let stream = context.get_stream_no_info(name).await.map_err(refused(operation))?;
            let message = stream.get_last_raw_message_by_subject(&subject).await;
            Ok(message.map_err(refused(operation))?.payload)
        }
    }

    async fn close(&mut self, keep_results: bool) {
        if !self.owner || !self.connection.is_connected() {
            return;
        }
        let close = async {
            let Ok(locks) = self.context.get_stream_no_info(LOCKS).await else { return };
            let lock = self.lock();
            // The queue of a coordinator that has taken over has the same name.
            let Some(place) = lock.own(&locks).await else { return };
            let _ = self.context.delete_stream(self.names.stream()).await;
            if !keep_results && self.settings.resume {
                let _ = self.context.delete_stream(self.names.results_stream()).await;
            }
            lock.release(place).await;
            let _ = self.connection.client.flush().await;
        };
        let _ = tokio::time::timeout(super::REQUEST * 2, close).await;
    }
}
