//! Which virtual thread runs on which virtual core, and which wait for one.

use std::collections::VecDeque;

use crate::core_set::{Core, CoreSet};
use crate::topology::Topology;

/// The number of a virtual thread.
pub(crate) type ThreadId = u32;

#[derive(Debug)]
pub(crate) struct Cores {
    running: Vec<Option<ThreadId>>,
    /// Cores to which threads are pinned. Other threads use them only if no other core is free.
    reserved: CoreSet,
    /// Threads that wait for a core, each with the core that it is pinned to.
    waiting: VecDeque<(ThreadId, Option<Core>)>,
}

impl Cores {
    pub(crate) fn new(count: usize) -> Self {
        Self { running: vec![None; count], reserved: CoreSet::EMPTY, waiting: VecDeque::new() }
    }

    /// Keeps threads that are not pinned away from this core, as far as possible.
    pub(crate) fn reserve(&mut self, core: Core) {
        self.reserved.insert(core);
    }

    pub(crate) fn count(&self) -> usize {
        self.running.len()
    }

    pub(crate) fn running(&self, core: Core) -> Option<ThreadId> {
        self.running[usize::from(core)]
    }

    fn is_free(&self, core: Core) -> bool {
        self.running(core).is_none()
    }

    /// Returns the threads that run.
    pub(crate) fn all_running(&self) -> impl Iterator<Item = ThreadId> {
        self.running.iter().flatten().copied()
    }

    /// Returns a free core for a thread: the one on which it ran last, or else a near one.
    pub(crate) fn choose(&self, last: Core, topology: &Topology) -> Option<Core> {
        if self.is_free(last) {
            return Some(last);
        }
        let near = topology.neighbourhoods(last);
        let free = |reserved: bool| {
            near.iter().find_map(|near| {
                (0..self.count() as Core).find(|&core| {
                    near.contains(core)
                        && self.is_free(core)
                        && self.reserved.contains(core) == reserved
                })
            })
        };
        free(false).or_else(|| free(true))
    }

    pub(crate) fn occupy(&mut self, core: Core, thread: ThreadId) {
        debug_assert!(self.is_free(core), "a core runs one thread");
        self.running[usize::from(core)] = Some(thread);
    }

    pub(crate) fn vacate(&mut self, core: Core) {
        self.running[usize::from(core)] = None;
    }

    pub(crate) fn wait(&mut self, thread: ThreadId, pinned: Option<Core>) {
        self.waiting.push_back((thread, pinned));
    }

    /// Returns the thread that has waited longest for this core.
    pub(crate) fn next_for(&mut self, core: Core) -> Option<ThreadId> {
        let may_run = |(_, pinned): &(ThreadId, Option<Core>)| pinned.is_none_or(|pin| pin == core);
        let position = self.waiting.iter().position(may_run)?;
        self.waiting.remove(position).map(|(thread, _)| thread)
    }

    /// Returns whether a thread waits that could run on this core.
    #[inline]
    pub(crate) fn is_wanted(&self, core: Core) -> bool {
        !self.waiting.is_empty()
            && self.waiting.iter().any(|(_, pinned)| pinned.is_none_or(|pin| pin == core))
    }
}
