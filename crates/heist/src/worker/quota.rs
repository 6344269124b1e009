//! A thread that follows the CPU limit of the process's control groups, and resizes the pool by it.
//!
//! The system announces no change of a limit in a way that all of its versions have. So the thread reads the files again, once in
//! a period, and sleeps in between. It exists only in pools that were asked to follow the limit.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::cancel::Follower;
use crate::sync::{Arc, ThreadBuilder};
use crate::task::listener::Listener;
use crate::topology;
use crate::worker::policy::PoolQueues;
use crate::worker::shared::Shared;

/// The time between two looks.
const PERIOD: Duration = Duration::from_secs(1);

/// Where the limits are, and how often to look.
#[derive(Debug, Clone)]
pub(crate) struct Quota {
    /// The directory that contains `proc` and `sys`.
    pub(crate) root: PathBuf,
    pub(crate) period: Duration,
}

impl Quota {
    /// Returns the limit of this process.
    pub(crate) fn of_process() -> Self {
        Self { root: "/".into(), period: PERIOD }
    }

    /// Returns how many processors the limit leaves to the process, or a very large number if there is none.
    fn processors(&self) -> usize {
        topology::quota_at(&self.root).unwrap_or(usize::MAX)
    }
}

/// Wakes the thread when the pool is stopped.
struct Stop(Arc<Listener>);

impl Follower for Stop {
    fn cancel(&self) {
        self.0.notify();
    }
}

/// Resizes the pool by the limit now, and whenever the limit changes, until the pool is stopped.
pub(crate) fn follow<Q: PoolQueues>(shared: &Arc<Shared<Q>>, quota: Quota) -> io::Result<()> {
    shared.grant_workers(quota.processors());
    let pool = Arc::clone(shared);
    let look = move || {
        let listener = Arc::new(Listener::thread());
        let stop = Arc::new(Stop(Arc::clone(&listener)));
        pool.stopped.follow(&crate::sync::unsize_arc!(Arc::clone(&stop)));
        while !pool.stopped.is_cancelled() {
            listener.sleeper().park_for(quota.period);
            if !pool.stopped.is_cancelled() {
                pool.grant_workers(quota.processors());
            }
        }
    };
    let thread = ThreadBuilder::new().name("heist-quota".to_owned()).spawn(look)?;
    shared.keep_thread(thread);
    Ok(())
}
