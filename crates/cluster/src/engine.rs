//! What a run needs of the engine that carries its messages. `nats` implements it.

use bytes::Bytes;

use crate::error::ClusterError;
use crate::message::{Down, Hello, Welcome};
use crate::window::Dispatch;

/// Where an answer is expected.
pub(crate) type Address = String;

/// What the coordinator hears.
#[derive(Debug)]
pub(crate) enum QueueEvent {
    /// A message of a worker, and where it expects an answer.
    Up(Bytes, Option<Address>),
    /// A node asks for the coordinator, and expects the answer here.
    Hello(Bytes, Address),
    /// An observer asks all nodes, and expects the answer here.
    Question(Bytes, Address),
    Connected,
    Disconnected,
    Fatal(ClusterError),
}

/// The coordinator's end: a queue of batches that the workers share.
pub(crate) trait Queue {
    /// Takes the lock of the job and makes the queue, unless it exists. It is empty for the `first` time. Later calls keep
    /// what the server still has.
    async fn open(&mut self, first: bool) -> Result<(), ClusterError>;

    /// Returns the name of the queue for [`Pull::attach`]. A queue that was made again has another one.
    fn name(&self) -> String;

    /// Returns how many batches are in the queue or were delivered without an acknowledgement.
    fn waiting(&self) -> impl Future<Output = Option<u64>> + use<Self> + Send + 'static;

    /// Returns how large a message may be.
    fn limit(&self) -> usize;

    /// Puts a batch into the queue. A batch with a known number and attempt is discarded.
    fn send(
        &self,
        batch: Dispatch,
    ) -> impl Future<Output = Result<(), ClusterError>> + use<Self> + Send + 'static;

    /// Returns the next event.
    async fn event(&mut self) -> QueueEvent;

    /// Removes a delivered batch from the queue.
    async fn acknowledge(&self, batch: Address);

    async fn answer(&self, to: Address, message: Bytes);

    async fn tell(&self, message: Down);

    /// Returns the numbers of the batches whose results are committed.
    async fn committed(&mut self) -> Result<Vec<u64>, ClusterError>;

    /// Commits the results of a batch, for a run that resumes this one.
    fn commit(
        &self,
        number: u64,
        results: Bytes,
    ) -> impl Future<Output = Result<(), ClusterError>> + use<Self> + Send + 'static;

    /// Returns the committed results of a batch.
    fn fetch(
        &self,
        number: u64,
    ) -> impl Future<Output = Result<Bytes, ClusterError>> + use<Self> + Send + 'static;

    /// Removes the queue and the lock, and the committed results unless they are to be kept.
    async fn close(&mut self, keep_results: bool);
}

/// What a worker hears.
#[derive(Debug)]
pub(crate) enum PullEvent {
    Batch {
        payload: Bytes,
        /// Where it is acknowledged.
        ack: Address,
        /// Whether another node may have started it.
        again: bool,
    },
    /// This many requested batches will not come, or none of them.
    Ended(Option<usize>),
    /// The server is there, and has no batches at the moment.
    Alive,
    Down(Bytes),
    /// Another node has nothing to do.
    Hungry(u64),
    /// An observer asks all nodes, and expects the answer here.
    Question(Bytes, Address),
    Connected,
    Disconnected,
    Fatal(ClusterError),
}

/// What a worker learns of the coordinator.
#[derive(Debug)]
pub(crate) enum Greeting {
    Welcome(Welcome),
    /// It follows another protocol, or one that cannot be told.
    Foreign(Option<u32>),
    /// There is none at the moment.
    Nobody,
    /// There is none, and the run that is served has ended.
    Over,
    /// There is none, and there cannot be one.
    Refused(ClusterError),
    /// The server or the coordinator is busy.
    NoAnswer,
}

/// A worker's end.
pub(crate) trait Pull {
    /// Asks for the coordinator of the job, and if there is none, whether the run that is served has ended.
    fn hello(&self, hello: &Hello) -> impl Future<Output = Greeting> + use<Self> + Send + 'static;

    /// Names the queue of the following requests.
    fn attach(&mut self, queue: &str);

    /// Requests more batches.
    async fn request(&self, batches: usize);

    async fn event(&mut self) -> PullEvent;

    /// Renews the lease of a batch.
    async fn renew(&self, batch: &str);

    /// Returns a batch to the queue, at once or after a moment.
    async fn give_back(&self, batch: &str, at_once: bool);

    /// Removes a batch that nobody wants.
    async fn refuse(&self, batch: &str);

    /// Sends a message to the coordinator.
    async fn up(&self, message: Bytes);

    /// Sends a message to the coordinator, and returns the answer.
    fn ask(
        &self,
        message: Bytes,
    ) -> impl Future<Output = Option<Bytes>> + use<Self> + Send + 'static;

    /// Sends a message to whoever has asked.
    async fn answer(&self, to: Address, message: Bytes);

    /// Tells the other nodes that this one has nothing to do.
    async fn hungry(&self, id: u64);

    /// Waits until everything sent has left the process.
    async fn flush(&self);

    /// Returns how large a message may be.
    fn limit(&self) -> usize;
}
