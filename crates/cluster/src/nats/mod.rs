//! The engine on NATS JetStream: how a connection is made and what its errors mean. `queue` is the coordinator's end, with its
//! `lock`, `pull` a worker's, and `ask` that of an observer.

mod ask;
mod lock;
mod pull;
mod queue;

use std::collections::VecDeque;
use std::str::FromStr;
use std::time::{Duration, Instant};

use async_nats::connection::State;
use async_nats::subject::ToSubject;
use async_nats::{
    Client, ConnectErrorKind, ConnectOptions, Event, ServerAddr, ServerError, jetstream,
};
use bytes::Bytes;
use percent_encoding::percent_decode_str;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::time::timeout;

use crate::error::ClusterError;
use crate::settings::Settings;
pub(crate) use ask::NatsAsk;
pub(crate) use pull::NatsPull;
pub(crate) use queue::NatsQueue;

/// How long the list of committed results may take to begin. A file system may be slow.
const LIST: Duration = Duration::from_secs(10);
/// How long any other request may take. It is tried again.
const REQUEST: Duration = Duration::from_millis(2_000);
/// How long a message may wait in this process. It does so only if the server takes nothing.
const SEND: Duration = Duration::from_millis(200);
/// The longest time between two attempts to connect again. A guess.
const RECONNECT: Duration = Duration::from_millis(500);
/// How often a silent server is asked whether it is still there. A guess.
const PING: Duration = Duration::from_secs(2);

/// Observers ask all nodes of all jobs here. No name of a job contains the sign.
const QUESTIONS: &str = "heist.$ask";

/// What a worker may be forbidden to ask: whether there is JetStream.
const MAY_ASK: &str = "\"$JS.API.INFO\"";

/// The names of a job's streams and subjects.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    pub(crate) job: String,
    fingerprint: String,
}

impl Names {
    /// Returns an error if the name of the job cannot be a part of subjects.
    pub(crate) fn new(job: &str, fingerprint: &str) -> Result<Self, ClusterError> {
        let valid = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if job.is_empty() || job.len() > 64 || !job.chars().all(valid) {
            let hint = "use 1 to 64 ASCII letters, digits, '-' and '_'".to_owned();
            return Err(ClusterError::Setting { name: "job", value: job.to_owned(), hint });
        }
        Ok(Self { job: job.to_owned(), fingerprint: fingerprint.to_owned() })
    }

    // The kind of a stream is the prefix: no job has a name with which its streams are those of another one, or the locks.
    fn stream(&self) -> String {
        format!("HEIST-Q_{}", self.job)
    }

    fn results_stream(&self) -> String {
        format!("HEIST-R_{}", self.job)
    }

    /// The name of the consumer from which workers pull.
    fn queue(run: u64, epoch: u64) -> String {
        format!("w-{run:016x}-{epoch}")
    }

    /// A subject that only nodes with the same fingerprint use.
    fn own(&self, last: &str) -> String {
        format!("heist.{}.{}.{last}", self.job, self.fingerprint)
    }

    /// A subject that all nodes of the job use, whatever they run.
    fn shared(&self, last: &str) -> String {
        format!("heist.{}.{last}", self.job)
    }
}

/// What happens to a connection.
#[derive(Debug)]
pub(crate) enum Change {
    Connected,
    Disconnected,
    Fatal(ClusterError),
}

/// A connection, and what happens to it.
pub(crate) struct Connection {
    pub(crate) client: Client,
    changes: UnboundedReceiver<Change>,
    /// What has happened during an operation, and was not handed out yet.
    missed: VecDeque<Change>,
    /// When the start of the run has begun, and how long it may take.
    began: Instant,
    limit: Duration,
    /// The address without the password.
    pub(crate) url: String,
}

impl Connection {
    /// Connects once. A connection that breaks later is made again by itself.
    pub(crate) async fn new(settings: &Settings) -> Result<Self, ClusterError> {
        let began = Instant::now();
        let servers = addresses(&settings.url)?;
        let url = without_password(&servers);
        let (sender, changes) = mpsc::unbounded_channel();
        let connecting = options(settings, sender).await?.connect(servers);
        let limit = settings.start;
        let client = match timeout(limit, connecting).await {
            Err(_) => return Err(silent(url, limit)),
            Ok(Err(error)) => return Err(refused(&error, &url)),
            Ok(Ok(client)) => client,
        };
        Ok(Self { client, changes, missed: VecDeque::new(), began, limit, url })
    }

    /// Returns what happens next to the connection.
    pub(crate) async fn change(&mut self) -> Change {
        if let Some(change) = self.missed.pop_front() {
            return change;
        }
        match self.changes.recv().await {
            Some(change) => change,
            // The client keeps the sender for as long as it exists.
            None => std::future::pending().await,
        }
    }

    /// Waits for an operation on the server, and prefers the reason why the server does not answer.
    pub(crate) async fn or_violation<T>(
        &mut self,
        operation: impl Future<Output = Result<T, ClusterError>>,
    ) -> Result<T, ClusterError> {
        let mut operation = std::pin::pin!(operation);
        loop {
            tokio::select! {
                biased;
                Some(change) = self.changes.recv() => match change {
                    Change::Fatal(error) => return Err(error),
                    change => self.missed.push_back(change),
                },
                result = &mut operation => return result,
            }
        }
    }

    /// The same, for what belongs to the start of a run.
    pub(crate) async fn before_start<T>(
        &mut self,
        operation: impl Future<Output = Result<T, ClusterError>>,
    ) -> Result<T, ClusterError> {
        let (url, limit) = (self.url.clone(), self.limit);
        let left = limit.saturating_sub(self.began.elapsed());
        let limited =
            async { timeout(left, operation).await.unwrap_or_else(|_| Err(silent(url, limit))) };
        self.or_violation(limited).await
    }

    /// Sends a message. The client keeps it for the next connection if there is none, and makes the caller wait when it has too
    /// many: then the message is lost. The caller has more to do than to wait, such as to notice that the time is up.
    pub(crate) async fn publish(&self, subject: impl ToSubject, message: Bytes) {
        let _ = timeout(SEND, self.client.publish(subject, message)).await;
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// Returns how large a message may be.
    pub(crate) fn limit(&self) -> usize {
        self.client.server_info().max_payload
    }

    /// Returns a context with the timeout of this crate.
    pub(crate) fn jetstream(&self) -> jetstream::Context {
        let mut context = jetstream::new(self.client.clone());
        context.set_timeout(REQUEST);
        context
    }
}

/// Returns the options of a connection, whose events go to the sender.
async fn options(
    settings: &Settings,
    sender: mpsc::UnboundedSender<Change>,
) -> Result<ConnectOptions, ClusterError> {
    let mut options = ConnectOptions::new();
    // The client does not use those of an address by itself.
    for server in addresses(&settings.url)? {
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        options = match (server.username(), server.password()) {
            (Some(user), Some(password)) => {
                options.user_and_password(decoded(user), decoded(password))
            }
            (Some(token), None) => options.token(decoded(token)),
            (None, _) => options,
        };
    }
    if let Some(file) = &settings.credentials {
        options = options.credentials_file(file).await.map_err(|error| ClusterError::Setting {
            name: "credentials",
            value: file.display().to_string(),
            hint: format!("it is no credentials file as `nsc` writes it ({error})"),
        })?;
    }
    if let Some(ca) = &settings.ca {
        options = options.add_root_certificates(ca.clone()).require_tls(true);
    }
    if let Some((certificate, key)) = &settings.certificate {
        options =
            options.add_client_certificate(certificate.clone(), key.clone()).require_tls(true);
    }
    let options = options
        .name(&settings.node)
        .ping_interval(PING)
        .connection_timeout(settings.start / 2)
        .reconnect_delay_callback(|attempts| {
            RECONNECT.min(Duration::from_millis(50).saturating_mul(attempts.min(1_000) as u32))
        })
        .event_callback(move |event| {
            if let Some(change) = meaning(event) {
                // Nobody listens any more if the run has ended.
                let _ = sender.send(change);
            }
            std::future::ready(())
        });
    Ok(options)
}

/// Returns what an event of the client means for the run, if anything.
fn meaning(event: Event) -> Option<Change> {
    match event {
        Event::Connected => Some(Change::Connected),
        Event::Disconnected => Some(Change::Disconnected),
        // Otherwise the operation would only time out.
        Event::ServerError(ServerError::Other(text))
            if text.to_ascii_lowercase().contains("permissions violation")
                && !text.contains(MAY_ASK) =>
        {
            Some(Change::Fatal(ClusterError::Permission { violation: text }))
        }
        _ => None,
    }
}

/// Returns the error of a server that does not answer.
fn silent(url: String, limit: Duration) -> ClusterError {
    ClusterError::Unreachable { url, reason: format!("no answer within {limit:?}") }
}

/// Returns why there is no connection.
fn refused(error: &async_nats::ConnectError, url: &str) -> ClusterError {
    let url = url.to_owned();
    let reason = full_text(error);
    match error.kind() {
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
            ClusterError::Credentials { url }
        }
        ConnectErrorKind::Tls => ClusterError::Tls { url, reason },
        _ if is_of_tls(&reason) => ClusterError::Tls { url, reason },
        _ => ClusterError::Unreachable { url, reason },
    }
}

/// Returns whether a reason is one of TLS: a server that misses the certificate of a client, or that does not accept it, says so
/// after the handshake, and one without TLS answers with something else.
fn is_of_tls(reason: &str) -> bool {
    let reason = reason.to_ascii_lowercase();
    ["certificate", "fatal alert", "corrupt message"].iter().any(|sign| reason.contains(sign))
}

/// Returns the message of an error with those of its sources.
pub(crate) fn full_text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let message = error.to_string();
        if !text.contains(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
        source = error.source();
    }
    text
}

/// Returns an error if these are not the addresses of servers.
pub(crate) fn check_url(url: &str) -> Result<(), ClusterError> {
    addresses(url).map(drop)
}

/// Returns addresses without passwords.
pub(crate) fn shown_url(url: &str) -> String {
    addresses(url).map_or_else(|_| String::new(), |servers| without_password(&servers))
}

fn addresses(url: &str) -> Result<Vec<ServerAddr>, ClusterError> {
    // The rest of a password with such a sign would be shown as a host.
    let is_whole = |server: &ServerAddr| {
        let url = server.clone().into_inner();
        matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none()
    };
    url.split(',')
        .map(|address| {
            let server = ServerAddr::from_str(address.trim()).ok().filter(is_whole);
            server.ok_or_else(|| ClusterError::Setting {
                name: "url",
                // Of the rest, anything may belong to a password: the address could not be taken apart.
                value: address.split_once("://").map_or("...".to_owned(), |(scheme, _)| {
                    format!("{}://...", scheme.trim())
                }),
                hint: "use nats://host:port, with user:password@ or token@ before the host if need be, and with commas \
                       between several of them; write @, :, /, ?, #, % and commas in a password as %40, %3A, %2F, %3F, %23, %25 and %2C"
                    .to_owned(),
            })
        })
        .collect()
}

fn without_password(servers: &[ServerAddr]) -> String {
    let one = |server: &ServerAddr| format!("{}:{}", server.host(), server.port());
    servers.iter().map(one).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn jobs_share_no_stream() {
        let mut streams = BTreeSet::from([lock::LOCKS.to_owned()]);
        for job in ["a", "a_R", "R_a", "Q_a", "LOCKS", "-LOCKS"] {
            let names = Names::new(job, "0").expect("a name");
            for stream in [names.stream(), names.results_stream()] {
                assert!(streams.insert(stream.clone()), "{stream} of job {job}");
            }
        }
    }
}
