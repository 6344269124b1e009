//! How a task lets queued tasks start first: it waits for a marker behind them.

use crate::panic::PanicHook;
use crate::sync::Arc;
use crate::task::{DetachedTask, End, Promise, Refusal, Task};
use crate::worker::policy::PoolQueues;
use crate::worker::private::Wanted;
use crate::worker::thread::WorkerThread;
use crate::worker::wait::{NO_POOL, wait};

impl<Q: PoolQueues> WorkerThread<Q> {
    /// Waits until a worker has come to the end of the injector as it is now. Returns `false` at once if nothing is queued,
    /// or if what runs here is no task.
    pub(crate) fn yield_to_queued(&self) -> bool {
        let shared = &*self.shared;
        let is_task = !self.is_guest && self.in_service.get();
        if !is_task || !(self.has_private_tasks() || shared.any()) {
            return false;
        }
        // The marker comes after the thread's own tasks, too: a worker looks into the injector last, but at times first.
        self.publish_tasks(Wanted::All);
        self.with_tally(|tally| shared.queues.leave(&self.place.own, tally));
        let (passed, handle) = Promise::new();
        // This announces the thread's own tasks as well: no worker has seen them while they were moved.
        shared.push_remote(shared.queues.cluster(&self.place.own), marker(passed), 0);
        wait(&handle, NO_POOL);
        true
    }
}

/// Returns a task that does nothing, is not counted, and fulfils the promise when a worker has come to it.
fn marker(passed: Promise<()>) -> Task {
    Task::detached(Marker(passed))
}

struct Marker(Promise<()>);

impl DetachedTask for Marker {
    fn run(&mut self, _: &Arc<PanicHook>) -> End {
        End::Counted
    }

    fn refuse(&mut self, _: Refusal) -> u64 {
        0
    }

    fn finish(self) {
        self.0.fulfil(Ok(Vec::new()), None);
    }
}
