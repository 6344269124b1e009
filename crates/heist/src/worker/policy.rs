//! How the threads of a pool wait inside tasks: by handing their core to another thread, or by running other tasks.
//!
//! The policy is a type, chosen by the kind of queues that a pool has. What follows from it for finding work and
//! for sharing it is decided here as well, so that no other code tests which policy it is in.

use crate::queues::{Global, Locked, Queues, Single, Stealing};
use crate::sync::AtomicUsize;
use crate::task::Awaited;
use crate::worker::core::Core;
use crate::worker::thread::WorkerThread;

/// Queues together with the way in which the threads that use them wait.
pub(crate) trait PoolQueues: Queues {
    type Waiting: WaitPolicy<Self>;
}

/// What a thread does while a task of its own waits.
pub(crate) trait WaitPolicy<Q: PoolQueues> {
    /// Do thieves raid the private jobs of a thread that does not look at its demand (`fork::raid`)? Without raids,
    /// a job stays private until its owner forks or joins again.
    const RAIDS: bool;

    /// Does a thread keep one of its jobs published at all times, where the system has no fence for raids?
    const OFFERS: bool;

    /// May all idle workers search at once, instead of half of them?
    const ALL_SEARCH: bool;

    /// Does a worker look into other queues than the nearest at times (`turn`)? Without it, it does so only when it
    /// has no task of its own, and [`after_search`](Self::after_search) may use the turns of a core
    /// ([`Core::is_turn`]).
    const TURNS: bool;

    /// Have the workers inboxes for tasks that are near them (`inbox`)?
    const NEAR: bool;

    /// Returns when `awaited`, which was spawned on `pool`, is done.
    fn wait(thread: &WorkerThread<Q>, awaited: &dyn Awaited, pool: usize);

    /// Returns when a published job is done, or all parts of a scope. The thread that runs the job stores its number
    /// in `thief`; a scope has none.
    fn wait_for_job(thread: &WorkerThread<Q>, awaited: &dyn Awaited, thief: Option<&AtomicUsize>);

    /// Is called before a task is pushed to the thread's own deque.
    fn before_push(thread: &WorkerThread<Q>);

    /// Is called before a thread answers the demand for its private jobs.
    fn before_answer();

    /// Is called after a look into all queues, with whether it found a task. A worker that found none may
    /// request work from the others.
    fn after_search(thread: &WorkerThread<Q>, core: &Core, found: bool);
}

/// The policy of pools: a thread runs the task that it waits for, and hands its core to another thread for everything
/// else (`wait`, `help`).
pub(crate) enum HandOffCore {}

/// The policy of engines: a thread keeps its core, and runs any other task on top of the one that waits (`nested`).
pub(crate) enum RunNested {}

impl PoolQueues for Stealing {
    type Waiting = HandOffCore;
}

impl PoolQueues for Locked {
    type Waiting = HandOffCore;
}

impl PoolQueues for Global {
    type Waiting = HandOffCore;
}

impl PoolQueues for Single {
    type Waiting = RunNested;
}
