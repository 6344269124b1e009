//! `Observer`: sees what happens on a cluster, and has workers leave.

use std::panic::resume_unwind;
use std::thread;

use crate::error::ClusterError;
use crate::message::{Question, Reply};
use crate::nats::NatsAsk;
use crate::network::Network;
use crate::settings::Cluster;
use crate::status::{LeavingWorker, Status};

/// Sees what happens on a cluster, in all jobs, and asks workers to leave.
///
/// It may be used while a run goes on: in another process with the same server, or on another thread.
///
/// ```no_run
/// let mut observer = heist_cluster::Cluster::from_env()?.observe()?;
/// for job in observer.status()?.jobs {
///     println!("{} has {} workers", job.job, job.workers.len());
/// }
/// # Ok::<(), heist_cluster::ClusterError>(())
/// ```
pub struct Observer {
    network: Network,
    ask: NatsAsk,
}

impl Cluster {
    /// Connects to the server, to see what happens on the cluster. The role does not matter.
    ///
    /// ```no_run
    /// let cluster = heist_cluster::Cluster::from_env()?;
    /// println!("{:?}", cluster.observe()?.status()?);
    /// # Ok::<(), heist_cluster::ClusterError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns a [`ClusterError`] if there is no connection.
    pub fn observe(&self) -> Result<Observer, ClusterError> {
        let settings = &self.settings;
        apart(|| {
            let network = Network::new()?;
            let ask = network.block_on(NatsAsk::new(settings))?;
            Ok(Observer { network, ask })
        })
    }
}

impl Observer {
    /// Asks all coordinators and all workers that wait for one. This takes a third of a second, because it is not known how many
    /// there are. A process that is stopped does not answer, and is left out.
    ///
    /// ```no_run
    /// let mut observer = heist_cluster::Cluster::from_env()?.observe()?;
    /// let status = observer.status()?;
    /// println!("{} runs, {} waiting workers", status.jobs.len(), status.waiting.len());
    /// # Ok::<(), heist_cluster::ClusterError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns a [`ClusterError`] if the server does not answer or refuses the question.
    pub fn status(&mut self) -> Result<Status, ClusterError> {
        let mut status = Status::default();
        for reply in self.ask(&Question::Status)? {
            match reply {
                Reply::Running(job) => status.jobs.push(*job),
                Reply::Waiting(worker) => status.waiting.push(worker),
                Reply::Leaving(_) => {}
            }
        }
        status.jobs.sort_by(|left, right| left.job.cmp(&right.job));
        status.waiting.sort();
        Ok(status)
    }

    /// Asks the workers with this name, or all workers, to finish what they have started and to leave, as
    /// [`Cluster::drain`] does in their processes. Returns those that do so, in the order of their names. They may need some
    /// time for what they have started.
    ///
    /// ```no_run
    /// let mut observer = heist_cluster::Cluster::from_env()?.observe()?;
    /// if observer.drain(Some("right"))?.is_empty() {
    ///     println!("there is no worker with this name");
    /// }
    /// # Ok::<(), heist_cluster::ClusterError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns a [`ClusterError`] if the server does not answer or refuses the question.
    pub fn drain(&mut self, node: Option<&str>) -> Result<Vec<LeavingWorker>, ClusterError> {
        let replies = self.ask(&Question::Drain { node: node.map(str::to_owned) })?;
        let mut leaving: Vec<_> = replies
            .into_iter()
            .filter_map(|reply| match reply {
                Reply::Leaving(worker) => Some(worker),
                Reply::Running(_) | Reply::Waiting(_) => None,
            })
            .collect();
        leaving.sort();
        Ok(leaving)
    }

    fn ask(&mut self, question: &Question) -> Result<Vec<Reply>, ClusterError> {
        let Self { network, ask } = self;
        apart(|| network.block_on(ask.ask(question)))
    }
}

/// Works on a thread of its own: the caller's may belong to a runtime, in which no other one can wait.
fn apart<T: Send>(
    work: impl FnOnce() -> Result<T, ClusterError> + Send,
) -> Result<T, ClusterError> {
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("heist-cluster".to_owned());
        let thread = builder.spawn_scoped(scope, work)?;
        thread.join().unwrap_or_else(|payload| resume_unwind(payload))
    })
}
