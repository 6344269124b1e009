//! The least that an engine on JetStream can do: messages are published, pulled by two processes and acknowledged.

use std::error::Error;
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::stream::{Config, RetentionPolicy, StorageType};
use async_nats::jetstream::{self, AckKind};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::runtime::Builder;
use tokio::time::sleep;

use crate::runs::LARGE;

const STREAM: &str = "BARE";
const SUBJECT: &str = "bare.q";
/// Messages on their way to the server, and messages of a request: as heist-cluster has them.
const SENDING: usize = 128;
const REQUEST: usize = 66;
const PAUSE: Duration = Duration::from_millis(1);

async fn context(url: &str) -> Result<jetstream::Context, Box<dyn Error>> {
    Ok(jetstream::new(async_nats::connect(url).await?))
}

async fn stream(context: &jetstream::Context) -> Result<jetstream::stream::Stream, Box<dyn Error>> {
    let config = Config {
        name: STREAM.to_owned(),
        subjects: vec![SUBJECT.to_owned()],
        storage: StorageType::Memory,
        retention: RetentionPolicy::WorkQueue,
        ..Config::default()
    };
    Ok(context.get_or_create_stream(config).await?)
}

/// Publishes messages, and waits until all are acknowledged.
pub(crate) fn publish(url: &str, messages: u64) -> Result<(), Box<dyn Error>> {
    Builder::new_current_thread().enable_all().build()?.block_on(async {
        let context = context(url).await?;
        let mut stream = stream(&context).await?;
        let text = "x".repeat(LARGE);
        let mut sending = FuturesUnordered::new();
        for _ in 0..messages {
            if sending.len() >= SENDING {
                let sent: Option<Result<_, jetstream::context::PublishError>> =
                    sending.next().await;
                sent.transpose()?;
            }
            // The source of a pipeline makes its items, too.
            let published = context.publish(SUBJECT, Bytes::from(text.clone())).await?;
            sending.push(async move { published.await });
        }
        while let Some(sent) = sending.next().await {
            sent?;
        }
        while stream.info().await?.state.messages > 0 {
            sleep(PAUSE).await;
        }
        Ok(())
    })
}

/// Pulls messages and acknowledges them, for ever.
pub(crate) fn consume(url: &str) -> Result<(), Box<dyn Error>> {
    Builder::new_current_thread().enable_all().build()?.block_on(async {
        let stream = stream(&context(url).await?).await?;
        let config = pull::Config {
            durable_name: Some("all".to_owned()),
            ack_policy: AckPolicy::Explicit,
            max_ack_pending: 10_000,
            ..pull::Config::default()
        };
        let consumer = stream.get_or_create_consumer("all", config).await?;
        let mut messages = consumer.stream().max_messages_per_batch(REQUEST).messages().await?;
        while let Some(message) = messages.next().await {
            let message = message?;
            assert_eq!(message.payload.len(), LARGE);
            message.ack_with(AckKind::Ack).await.map_err(|error| error.to_string())?;
        }
        Ok(())
    })
}
