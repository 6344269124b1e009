//! The threads of one pool, told from all others of the process by their names.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use heist::Builder;

use super::{Kind, eventually};

/// A name that no other pool of this process has.
pub(crate) struct Crew {
    name: String,
}

impl Crew {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        // The system keeps 15 bytes of a thread's name: no more here than can be told apart.
        Self { name: format!("crew{}-", NEXT.fetch_add(1, Ordering::Relaxed)) }
    }

    /// What its threads are called, less the number.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn builder<S: Kind>(&self, workers: usize) -> Builder {
        let name = self.name.clone();
        S::builder(workers).thread_name(move |index| format!("{name}{index}"))
    }

    /// Whether the current thread is one of them.
    pub(crate) fn is_here(&self) -> bool {
        thread::current().name().is_some_and(|name| name.starts_with(&self.name))
    }

    /// How many of them there are, as the system sees it.
    pub(crate) fn threads(&self) -> usize {
        let Ok(tasks) = fs::read_dir("/proc/self/task") else { return 0 };
        let names =
            tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.filter(|name| name.starts_with(&self.name)).count()
    }

    /// Do all of them sleep, as the system sees it? Who waits for a core does not.
    pub(crate) fn sleeps(&self) -> bool {
        let Ok(tasks) = fs::read_dir("/proc/self/task") else { return true };
        let stats =
            tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("stat")).ok());
        let ours = format!("({}", self.name);
        stats
            .filter(|stat| stat.contains(&ours))
            .all(|stat| stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('S')))
    }

    /// A thread that was joined may be in the system's list for a moment longer.
    pub(crate) fn assert_gone(&self) {
        eventually("no thread is left of the pool", || self.threads() == 0);
    }
}
