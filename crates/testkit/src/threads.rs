//! Counts threads of the process by name, or by the hooks that a pool calls on them.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::watchdog::eventually;

/// Threads whose names begin with a prefix that no other group of this process has.
#[derive(Debug)]
pub struct ThreadGroup {
    prefix: String,
}

impl ThreadGroup {
    /// Creates a group with a prefix of its own.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "two groups are never equal")]
    pub fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        // The system keeps 15 bytes of a thread's name, so the prefix is short.
        Self { prefix: format!("test{}-", NEXT.fetch_add(1, Ordering::Relaxed)) }
    }

    /// Returns the prefix of the names.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns whether the current thread belongs to the group.
    #[must_use]
    pub fn has_current(&self) -> bool {
        thread::current().name().is_some_and(|name| name.starts_with(&self.prefix))
    }

    /// Returns how many threads of the group exist, as the system sees it.
    #[must_use]
    pub fn count(&self) -> usize {
        files_of_threads("comm").filter(|name| name.starts_with(&self.prefix)).count()
    }

    /// Returns whether all threads of the group sleep, as the system sees it. A thread that waits for a
    /// processor does not sleep.
    #[must_use]
    pub fn all_sleep(&self) -> bool {
        let ours = format!("({}", self.prefix);
        files_of_threads("stat")
            .filter(|stat| stat.contains(&ours))
            .all(|stat| stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('S')))
    }

    /// Waits until no thread of the group is left. A thread that was joined may be in the system's list for a
    /// moment longer.
    ///
    /// # Panics
    ///
    /// Panics if a thread stays.
    pub fn assert_gone(&self) {
        eventually("no thread is left of the pool", || self.count() == 0);
    }
}

/// Counts the threads of a pool that calls [`started`](Self::started) and [`stopped`](Self::stopped) on each.
/// Unlike a look at the system's list, it misses no thread.
#[derive(Debug, Default)]
pub struct LiveThreads {
    live: AtomicUsize,
    most: AtomicUsize,
    ever: AtomicUsize,
}

impl LiveThreads {
    /// Counts a thread that starts.
    pub fn started(&self) {
        self.ever.fetch_add(1, Ordering::SeqCst);
        self.most.fetch_max(self.live.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
    }

    /// Counts a thread that ends.
    pub fn stopped(&self) {
        self.live.fetch_sub(1, Ordering::SeqCst);
    }

    /// Returns how many threads there were at most at the same time.
    #[must_use]
    pub fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }

    /// Returns how many threads have started.
    #[must_use]
    pub fn ever(&self) -> usize {
        self.ever.load(Ordering::SeqCst)
    }
}

/// Returns this file of every thread, as far as the system has such files.
fn files_of_threads(name: &'static str) -> impl Iterator<Item = String> {
    let tasks = fs::read_dir(Path::new("/proc/self/task")).into_iter().flatten();
    tasks.filter_map(move |task| fs::read_to_string(task.ok()?.path().join(name)).ok())
}
