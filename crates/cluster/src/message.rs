//! What nodes send each other.
//!
//! The encoding is postcard. A batch and a result are a head, followed by bytes that only the source, the stages and the sink
//! interpret.

use bytes::Bytes;
use heist::pipeline::{PipelineError, Stage};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::ClusterError;
use crate::status::{JobStatus, LeavingWorker, WaitingWorker};

/// The number of what is described here. It is the first thing in a [`Hello`] and in a [`Welcome`], for nodes of any other version.
const PROTOCOL: u32 = 4;

/// Encodes a message for nodes of any version.
pub(crate) fn encode_for_all<T: Serialize>(message: &T) -> Bytes {
    encode_with(&PROTOCOL, &encode(message))
}

/// Decodes a message of a node of any version, or returns which protocol it follows, if that can be told.
pub(crate) fn decode_of_any<T: DeserializeOwned>(message: &Bytes) -> Result<T, Option<u32>> {
    let (protocol, rest) = decode::<u32>(message).ok_or(None)?;
    if protocol != PROTOCOL {
        return Err(Some(protocol));
    }
    decode::<T>(&rest).map(|(message, _)| message).ok_or(None)
}

/// Before the items of a batch.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct BatchHead {
    pub(crate) run: u64,
    pub(crate) number: u64,
    /// The index in the source of the first item.
    pub(crate) first: u64,
}

/// From a worker to the coordinator.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Up {
    /// A batch is started now, perhaps `again`. These are the nodes that a batch can have killed.
    Started { run: u64, number: u64, node: String, again: bool },
    /// A batch has ended. Its results follow, if there are any.
    Ended(Ended),
    /// May this batch be started? It was delivered before. The answer is a [`Permit`].
    Ask { run: u64, number: u64 },
    /// The node has nothing to do.
    Hungry { id: u64 },
    /// Batches that were given back to the server before they were started.
    GivenBack { run: u64, batches: u64 },
    /// The node has left the run.
    Left { id: u64 },
}

/// How a batch has ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Ended {
    pub(crate) run: u64,
    pub(crate) number: u64,
    pub(crate) node: String,
    /// When the stages began, in microseconds of the coordinator's run, if the worker knows.
    pub(crate) began: Option<u64>,
    /// How long the stages took.
    pub(crate) micros: u64,
    /// Which of the worker's threads it was.
    pub(crate) thread: usize,
    /// Items that have failed and were left out.
    pub(crate) skipped: u64,
    /// Calls that were repeated because they had failed.
    pub(crate) retried: u64,
    /// Where the server expects the acknowledgement of the batch.
    pub(crate) ack: String,
    pub(crate) failure: Option<Failure>,
    /// The batch of the run that the thread starts now, as [`Up::Started`] says it of one that does not follow another.
    pub(crate) next: Option<u64>,
}

/// Why a batch has no results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Failure {
    Stage { stage: String, item: Option<u64>, panicked: bool, message: String },
    ResultTooLarge { bytes: usize, limit: usize },
    Codec { decoding: bool, reason: String },
}

impl Failure {
    /// Describes the error of a stage.
    pub(crate) fn of_stage(error: &PipelineError) -> Self {
        let stage = error.stage().unwrap_or(Stage::Step(1)).to_string();
        let (panicked, message) = match error {
            PipelineError::Failed { source, .. } => (false, source.to_string()),
            PipelineError::Panicked { panic, .. } => (true, panic.to_string()),
            other => (false, other.to_string()),
        };
        Self::Stage { stage, item: error.item(), panicked, message }
    }

    /// Returns the error that the coordinator reports.
    pub(crate) fn into_error(self, batch: u64, node: String) -> ClusterError {
        match self {
            Self::Stage { stage, item, panicked, message } => {
                ClusterError::Stage { stage, batch, item, node, panicked, message }
            }
            Self::ResultTooLarge { bytes, limit } => {
                ClusterError::ResultTooLarge { batch, node, bytes, limit }
            }
            Self::Codec { decoding, reason } => ClusterError::Codec {
                batch,
                action: if decoding { "decoded by a worker" } else { "encoded by a worker" },
                reason,
            },
        }
    }
}

/// The answer to [`Up::Ask`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Permit {
    /// Start it.
    Go,
    /// It is not wanted any more: forget it.
    Drop,
}

/// From the coordinator to all workers.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Down {
    /// The queue was made, or made again: ask for its name, and pull from it.
    Open,
    /// The run has ended: what it has left is not wanted any more.
    End { run: u64 },
}

/// What a worker asks the coordinator of its job regularly, with what it has done.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) node: String,
    pub(crate) id: u64,
    /// The run that it serves.
    pub(crate) run: Option<u64>,
    pub(crate) threads: usize,
    /// Batches that it has and that have no result.
    pub(crate) held: usize,
}

/// The coordinator's answer to [`Hello`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Welcome {
    pub(crate) run: u64,
    /// The queue of the run.
    pub(crate) queue: String,
    /// Where the coordinator runs.
    pub(crate) node: String,
    pub(crate) fingerprint: String,
    pub(crate) describes: String,
    pub(crate) lease_millis: u64,
    /// How long the run has lasted.
    pub(crate) now_micros: u64,
}

/// The content of a job's lock.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Owner {
    pub(crate) run: u64,
    /// Where its coordinator runs.
    pub(crate) node: String,
    /// The run has ended: the job has no coordinator, and workers that have missed [`Down::End`] learn it here.
    pub(crate) ended: bool,
}

/// What an [`Observer`](crate::Observer) asks all nodes of all jobs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Question {
    /// What happens?
    Status,
    /// Workers with this name, or all workers, are to finish what they have and leave.
    Drain { node: Option<String> },
}

/// The answer of one node to a [`Question`]. Who has nothing to say does not answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// Of a coordinator to [`Question::Status`].
    Running(Box<JobStatus>),
    /// Of a worker that serves no run to [`Question::Status`].
    Waiting(WaitingWorker),
    /// Of a worker to [`Question::Drain`].
    Leaving(LeavingWorker),
}

/// Encodes a message.
pub(crate) fn encode<T: Serialize>(message: &T) -> Bytes {
    encode_with(message, &[])
}

/// Encodes a head with bytes after it.
pub(crate) fn encode_with<T: Serialize>(head: &T, tail: &[u8]) -> Bytes {
    let mut bytes = postcard::to_stdvec(head).expect("heads consist of numbers and strings");
    bytes.extend_from_slice(tail);
    bytes.into()
}

/// Decodes a head, and returns the bytes after it. Returns `None` if it is not one: whoever can publish on the subject can send
/// anything.
pub(crate) fn decode<T: DeserializeOwned>(message: &Bytes) -> Option<(T, Bytes)> {
    let (head, tail) = postcard::take_from_bytes(message).ok()?;
    Some((head, message.slice_ref(tail)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_and_its_tail_come_back() {
        let head = BatchHead { run: 7, number: u64::MAX, first: 3 };
        let (back, tail) = decode::<BatchHead>(&encode_with(&head, b"items")).expect("a head");
        assert_eq!((back.run, back.number, &tail[..]), (7, u64::MAX, &b"items"[..]));
        assert!(decode::<BatchHead>(&Bytes::from_static(&[0xff])).is_none());
    }

    #[test]
    fn another_protocol_is_told_from_no_answer() {
        let hello = Hello { node: "a".to_owned(), ..Hello::default() };
        let back = decode_of_any::<Hello>(&encode_for_all(&hello)).expect("a hello");
        assert_eq!(back.node, "a");
        let other = encode_with(&(PROTOCOL + 1), b"whatever it is");
        assert_eq!(decode_of_any::<Hello>(&other).err(), Some(Some(PROTOCOL + 1)));
        assert_eq!(decode_of_any::<Hello>(&Bytes::new()).err(), Some(None));
        assert_eq!(decode_of_any::<Hello>(&encode(&PROTOCOL)).err(), Some(None));
    }
}
