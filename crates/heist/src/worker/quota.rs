//! A thread that follows the CPU limit of the process's control groups, and resizes the pool by it.
//!
//! The system announces no change of a limit in a way that all of its versions have. So the thread reads the files again, once in
//! a period, and sleeps in between. It exists only in pools that were asked to follow the limit.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::cancel::Follower;
use crate::sync::{Arc, ThreadBuilder, parallelism};
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

    /// Returns how many processors the limit leaves to the process: a very large number if there is no limit, `None` if a file
    /// cannot be read.
    fn processors(&self) -> Option<usize> {
        match topology::quota_at(&self.root) {
            Ok(limit) => Some(limit.unwrap_or(usize::MAX)),
            // There are no control groups.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Some(usize::MAX),
            Err(_) => None,
        }
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
    let Quota { period, .. } = quota;
    // If the limit cannot be read, the standard library may know of one.
    shared.grant_workers(quota.processors().unwrap_or_else(parallelism));
    let grant = move |pool: &Shared<Q>| {
        // A process that cannot read the limit any more keeps the last one.
        if let Some(processors) = quota.processors() {
            pool.grant_workers(processors);
        }
    };
    let pool = Arc::clone(shared);
    let look = move || {
        let listener = Arc::new(Listener::thread());
        let stop = Arc::new(Stop(Arc::clone(&listener)));
        pool.stopped.follow(&crate::sync::unsize_arc!(Arc::clone(&stop)));
        while !pool.stopped.is_cancelled() {
            listener.sleeper().park_for(period);
            if !pool.stopped.is_cancelled() {
                grant(&pool);
            }
        }
    };
    let thread = ThreadBuilder::new().name("heist-quota".to_owned()).spawn(look)?;
    shared.keep_thread(thread);
    Ok(())
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use heist_testkit::machine::Root;

    use super::*;

    fn processors(root: &Root) -> Option<usize> {
        Quota { root: root.path().to_owned(), period: PERIOD }.processors()
    }

    #[test]
    fn a_limit_that_cannot_be_read_is_not_no_limit() {
        let group = || Root::new().file("proc/self/cgroup", "0::/box\n");
        assert_eq!(processors(&Root::new()), Some(usize::MAX), "no groups");
        assert_eq!(processors(&group()), Some(usize::MAX), "no limit");
        let limited = group().file("sys/fs/cgroup/box/cpu.max", "300000 100000\n");
        assert_eq!(processors(&limited), Some(3));
        // A directory cannot be read as a file.
        let unreadable = group().file("sys/fs/cgroup/box/cpu.max/file", "");
        assert_eq!(processors(&unreadable), None);
    }
}
