//! `RunOn`: a pipeline is taken apart, and its parts are given to the threads of a coordinator or a worker.

use std::any::type_name;
use std::convert::Infallible;
use std::error::Error;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, ScopedJoinHandle};

use heist::pipeline::{Parts, Pipeline, Source, Steps};
use heist::{CancelToken, Pool};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::coordinator::{
    Bounds, Coordinator, Delivery, Ends, Input, Job, Largest, Move, Watched, feed, fnv, unique,
};
use crate::error::{ClusterError, cancelled};
use crate::nats::{Names, NatsPull, NatsQueue};
use crate::network::Network;
use crate::page::Page;
use crate::report::ClusterReport;
use crate::settings::{Cluster, Role};
use crate::terminate::{self, Terminate};
use crate::trace::Trace;
use crate::worker::runner::{self, Jobs};
use crate::worker::{Service, Worker};

/// Batches in flight, if the user has not set that: the default of a pipeline on a small pool.
const IN_FLIGHT: usize = 256;

/// Runs a pipeline on a cluster instead of a pool.
pub trait RunOn<U> {
    /// Runs the pipeline as a job of the cluster.
    ///
    /// In a process whose [role](Role) is coordinator, the source is cut into batches, workers apply the stages to them, and each
    /// result is passed to the sink on the calling thread, exactly once. In a worker, source and sink are dropped, and the call
    /// applies the stages to batches until the run has ended.
    ///
    /// The items and the results must be types that serde can encode and decode.
    ///
    /// ```no_run
    /// use heist::pipeline::Pipeline;
    /// use heist_cluster::{Cluster, RunOn};
    ///
    /// let cluster = Cluster::from_env()?;
    /// let mut sum = 0;
    /// Pipeline::new(0..1_000_000_u64)
    ///     .batch(4096)
    ///     .map(|n| n * n % 7)
    ///     .ordered()
    ///     .run_on(&cluster, "squares", |n| sum += n)?;
    /// # Ok::<(), heist_cluster::ClusterError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns a [`ClusterError`], which says what to do.
    ///
    /// # Panics
    ///
    /// Passes on a panic of the sink.
    fn run_on(
        self,
        cluster: &Cluster,
        job: &str,
        mut sink: impl FnMut(U),
    ) -> Result<ClusterReport, ClusterError>
    where
        Self: Sized,
    {
        self.try_run_on(cluster, job, move |result| {
            sink(result);
            Ok::<(), Infallible>(())
        })
    }

    /// Like [`run_on`](Self::run_on), with a sink that may fail. Its error ends the run with [`ClusterError::Sink`].
    ///
    /// ```no_run
    /// use std::io::Write;
    ///
    /// use heist::pipeline::Pipeline;
    /// use heist_cluster::{Cluster, RunOn};
    ///
    /// let cluster = Cluster::from_env()?;
    /// let mut file = std::fs::File::create("squares.txt")?;
    /// Pipeline::new(0..1_000_u64)
    ///     .map(|n| n * n)
    ///     .ordered()
    ///     .try_run_on(&cluster, "squares", |n| writeln!(file, "{n}"))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns a [`ClusterError`], which says what to do.
    ///
    /// # Panics
    ///
    /// Passes on a panic of the sink.
    fn try_run_on<E>(
        self,
        cluster: &Cluster,
        job: &str,
        sink: impl FnMut(U) -> Result<(), E>,
    ) -> Result<ClusterReport, ClusterError>
    where
        E: Into<Box<dyn Error + Send + Sync>>;
}

impl<S, G, U> RunOn<U> for Pipeline<S, G>
where
    S: Source + Send,
    S::Item: Serialize + DeserializeOwned + Send,
    G: Steps<S::Item, Out = U>,
    U: Serialize + DeserializeOwned + Send,
{
    fn try_run_on<E>(
        self,
        cluster: &Cluster,
        job: &str,
        sink: impl FnMut(U) -> Result<(), E>,
    ) -> Result<ClusterReport, ClusterError>
    where
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let describes = format!(
            "items {}, stages {}, results {}, version {:?} of the program, heist-cluster {}",
            type_name::<S::Item>(),
            type_name::<G>(),
            type_name::<U>(),
            cluster.settings.version,
            env!("CARGO_PKG_VERSION"),
        );
        let fingerprint = format!("{:016x}", fnv(describes.as_bytes()));
        let names = Names::new(job, &fingerprint)?;
        let parts = self.into_parts()?;
        match cluster.role() {
            Role::Worker => {
                drop(sink);
                serve(cluster, names, parts, fingerprint, describes)
            }
            Role::Coordinator => {
                let (ordered, token) = (parts.ordered, parts.token.clone());
                let run = unique();
                let job = Job { name: job.to_owned(), fingerprint, describes, run, ordered, token };
                coordinate(cluster, names, parts, job, sink)
            }
        }
    }
}

/// Connects on a thread of its own: the caller's may belong to a runtime, in which no other one can wait.
fn connect<T: Send>(
    connecting: impl AsyncFnOnce() -> Result<T, ClusterError> + Send,
) -> Result<(Network, T), ClusterError> {
    thread::scope(|scope| {
        let connected = start(scope, "heist-cluster", || {
            let network = Network::new()?;
            let connection = network.block_on(connecting())?;
            Ok((network, connection))
        })?;
        join(connected)
    })
}

/// Starts a thread of the run.
fn start<'scope, T: Send + 'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, ClusterError> {
    Ok(thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, work)?)
}

/// Waits for a thread, and passes on its panic.
fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|payload| resume_unwind(payload))
}

/// Runs source and sink, and has workers apply the stages.
fn coordinate<S, G, U, E>(
    cluster: &Cluster,
    names: Names,
    parts: Parts<S, G>,
    job: Job,
    sink: impl FnMut(U) -> Result<(), E>,
) -> Result<ClusterReport, ClusterError>
where
    S: Source + Send,
    S::Item: Serialize + Send,
    U: DeserializeOwned,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    let settings = &cluster.settings;
    let bounds = Bounds { batches: parts.in_flight.unwrap_or(IN_FLIGHT), bytes: settings.bytes };
    let run = job.run;
    let watched = Watched { page: Page::new(settings)?, trace: Trace::new(settings)? };
    let (network, queue) =
        connect(async || NatsQueue::new(settings, names, run, bounds.batches).await)?;
    let (batches, token) = (parts.batches, job.token.clone());
    let (input_sender, input) = unbounded_channel();
    let (deliveries_sender, deliveries) = channel();
    let (moves_sender, moves) = channel();
    let stop = Arc::new(AtomicBool::new(false));
    let settings = settings.clone();
    thread::scope(|scope| {
        let network_stop = Arc::clone(&stop);
        let coordinator_moves = moves_sender.clone();
        let network = start(scope, "heist-cluster", move || {
            let ends = Ends {
                input,
                deliveries: deliveries_sender,
                moves: coordinator_moves,
                stop: network_stop,
            };
            let coordinator = Coordinator::new(queue, job, settings, ends, watched);
            network.run(coordinator.run())
        })?;
        let (source_input, source_stop) = (input_sender.clone(), Arc::clone(&stop));
        let source = start(scope, "heist-source", move || {
            feed(batches, run, bounds, &source_input, moves, &source_stop)
        });
        // Without a source, the network thread ends as soon as it hears that the sink is gone.
        let sunk = match &source {
            Ok(_) => deliver(&deliveries, moves_sender, &input_sender, token.as_ref(), sink),
            Err(_) => {
                let _ = input_sender.send(Input::SinkEnded { whole: false });
                Ok(0)
            }
        };
        drop(deliveries);
        let ended = join(network);
        stop.store(true, Ordering::SeqCst);
        let Largest { batches, bytes } = join(source?);
        let results = sunk?;
        let report = ended?;
        Ok(ClusterReport { results, largest_in_flight: batches, largest_bytes: bytes, ..report })
    })
}

/// Tells the coordinator that the sink has ended, however that comes.
struct SinkGuard<'i> {
    input: &'i UnboundedSender<Input>,
    whole: bool,
}

impl Drop for SinkGuard<'_> {
    fn drop(&mut self) {
        let _ = self.input.send(Input::SinkEnded { whole: self.whole });
    }
}

/// Passes results to the sink, until there are no more. Returns their number.
fn deliver<U, E>(
    deliveries: &Receiver<Delivery>,
    moves: Sender<Move>,
    input: &UnboundedSender<Input>,
    token: Option<&CancelToken>,
    mut sink: impl FnMut(U) -> Result<(), E>,
) -> Result<u64, ClusterError>
where
    U: DeserializeOwned,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    let mut guard = SinkGuard { input, whole: false };
    let mut count = 0;
    while let Ok(Delivery { number, results }) = deliveries.recv() {
        let size = results.len();
        let results: Vec<U> = postcard::from_bytes(&results).map_err(|error| {
            let action = "decoded by the coordinator";
            ClusterError::Codec { batch: number, action, reason: error.to_string() }
        })?;
        for result in results {
            if token.is_some_and(CancelToken::is_cancelled) {
                return Err(cancelled().into());
            }
            sink(result)
                .map_err(|error| ClusterError::Sink { batch: number, source: error.into() })?;
            count += 1;
        }
        // The source has ended otherwise.
        let _ = moves.send(Move::Delivered(size));
    }
    guard.whole = true;
    Ok(count)
}

/// Applies the stages to batches.
fn serve<S, G, U>(
    cluster: &Cluster,
    names: Names,
    parts: Parts<S, G>,
    fingerprint: String,
    describes: String,
) -> Result<ClusterReport, ClusterError>
where
    S: Source,
    S::Item: DeserializeOwned + Send,
    G: Steps<S::Item, Out = U>,
    U: Serialize + Send,
{
    let Parts { batches, stages, .. } = parts;
    drop(batches);
    let settings = &cluster.settings;
    if cluster.drained.load(Ordering::SeqCst) || terminate::requested() {
        return Ok(ClusterReport::new(Role::Worker));
    }
    let pool =
        settings.threads.map_or_else(heist::Builder::default_workers, |threads| Ok(threads.get()));
    let pool = pool.and_then(|threads| Pool::builder().workers(threads).build());
    let pool = pool.map_err(|error| ClusterError::Setting {
        name: "threads",
        value: settings.threads.map_or_else(|| "default".to_owned(), |threads| threads.to_string()),
        hint: error.to_string(),
    })?;
    let threads = pool.workers();
    let drained = Arc::clone(&cluster.drained);
    let service = Service { job: names.job.clone(), fingerprint, describes, threads, drained };
    let _terminate = Terminate::new()?;
    let (network, pull) = connect(async || NatsPull::new(settings, names).await)?;
    let (jobs, wake) = Jobs::new();
    let jobs = Arc::new(jobs);
    let (news, heard) = unbounded_channel();
    thread::scope(|scope| {
        let mut runners = Vec::new();
        for thread in 0..threads {
            let (jobs, news) = (Arc::clone(&jobs), news.clone());
            let (pool, stages) = (&pool, &stages);
            runners.push(start(scope, "heist-batch", move || {
                runner::run::<S::Item, G>(thread, &jobs, pool, stages, &news);
            })?);
        }
        let settings = settings.clone();
        let network = start(scope, "heist-cluster", move || {
            let (worker, answers) = Worker::new(pull, service, settings, jobs, wake);
            // The wake end is dropped with the worker, and then the threads end. With the tasks, the answers are dropped that
            // they wait for.
            network.run(worker.run(answers, heard))
        })?;
        let ended = join(network);
        runners.into_iter().for_each(join);
        ended
    })
}
