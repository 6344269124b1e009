//! Where the threads of a pool run whose workers are pinned.
//!
//! What is pinned is the core, not the thread: a thread that acquires a core goes to the processor of that core, unless it
//! is there already. A thread that has given its core to another one may run on every processor again. Otherwise it would
//! be bound to the one processor of the pool where another thread is certain to run: when its wait is over it could not
//! even wake up before that thread is preempted, although it may hold a lock that others wait for, and although other
//! processors may be idle. It is unpinned when the core is gone and not when its wait is over, because a thread that sleeps
//! cannot unpin itself.
//!
//! Pools that do not pin make no system call for this. Others make one for each core that a thread acquires and one for
//! each that it gives away, after the other thread has it.

use crate::sync::Mask;
use crate::worker::policy::PoolQueues;
use crate::worker::thread::WorkerThread;

/// The processors of the workers.
#[derive(Debug)]
pub(crate) struct Pins {
    /// The mask of a thread without a core.
    everywhere: Mask,
    /// The processor of each worker; the workers beyond the end start at the beginning again.
    processors: Box<[(usize, Mask)]>,
}

impl Pins {
    /// Pins worker `i` to processor `list[i % list.len()]`. Threads without a core run on `everywhere`.
    pub(crate) fn new(everywhere: Mask, list: &[usize]) -> Self {
        let processors = list.iter().map(|&processor| (processor, Mask::only(processor))).collect();
        Self { everywhere, processors }
    }

    /// Returns the processor of that worker.
    pub(crate) fn processor_of(&self, worker: usize) -> Option<usize> {
        Some(self.of_worker(worker)?.0)
    }

    fn of_worker(&self, worker: usize) -> Option<&(usize, Mask)> {
        self.processors.get(worker % self.processors.len().max(1))
    }
}

impl<Q: PoolQueues> WorkerThread<Q> {
    /// Pins this thread to the processor of that worker, whose core it has acquired.
    #[inline]
    pub(crate) fn pin_to(&self, worker: usize) {
        if let Some(pins) = &self.shared.config.pins {
            self.pin_among(pins, worker);
        }
    }

    #[cold]
    fn pin_among(&self, pins: &Pins, worker: usize) {
        let Some((processor, mask)) = pins.of_worker(worker) else { return };
        // The system refuses a processor that it has taken away since the pool was built. The worker then runs wherever
        // the system lets it.
        if self.pinned.get() != Some(*processor) && mask.apply().is_ok() {
            self.pinned.set(Some(*processor));
        }
    }

    /// Lets this thread run on every processor again, because its core has gone to another thread.
    #[inline]
    pub(crate) fn unpin(&self) {
        if let Some(pins) = &self.shared.config.pins {
            if self.pinned.take().is_some() {
                // The same holds as for a processor: if the system has taken all of these away, it has chosen others.
                let _ = pins.everywhere.apply();
            }
        }
    }
}
