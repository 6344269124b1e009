//! All that a pool keeps for its trace.

use std::time::Instant;

use super::event::{Event, EventKind, ThreadTrace, Trace};
use super::ring::{Kept, Ring};
use crate::sync::{Arc, Mutex, lock};

/// The most events of each thread: with the slot that is being written, a quarter of a gigabyte.
pub(crate) const MOST_EVENTS: usize = (1 << 24) - 1;

/// Fewer make no sense.
const FEWEST_EVENTS: usize = 16;

/// Threads that have ended and are still in the trace. A pool whose tasks wait for each other may start many.
const ENDED: usize = 64;

/// What one thread writes, and others read.
pub(super) struct Lane {
    pub(super) ring: Ring,
    /// Of the pool.
    start: Instant,
}

impl Lane {
    pub(super) fn write(&self, kind: EventKind) {
        let now = self.start.elapsed();
        self.ring.write(now.as_nanos() as u64, kind.pack());
    }
}

struct Thread {
    name: String,
    lane: Arc<Lane>,
    ended: bool,
}

/// The events of all threads of a pool.
pub(crate) struct Log {
    pool: String,
    workers: usize,
    /// Of the pool.
    pub(super) start: Instant,
    /// The size of each ring.
    size: usize,
    threads: Mutex<Vec<Thread>>,
}

impl Log {
    /// Keeps so many events of each thread, or up to twice as many.
    pub(crate) fn new(pool: &str, workers: usize, events: usize) -> Self {
        debug_assert!(events <= MOST_EVENTS, "the builder has looked");
        // One slot is lost to what is being written.
        let size = (events.max(FEWEST_EVENTS) + 1).next_power_of_two();
        Self {
            pool: pool.into(),
            workers,
            start: Instant::now(),
            size,
            threads: Mutex::new(Vec::new()),
        }
    }

    /// For a thread that begins.
    pub(super) fn open(&self, name: String) -> Arc<Lane> {
        let lane = Arc::new(Lane { ring: Ring::new(self.size), start: self.start });
        let mut threads = lock(&self.threads);
        if threads.iter().filter(|thread| thread.ended).count() >= ENDED {
            let oldest = threads.iter().position(|thread| thread.ended).expect("counted");
            threads.remove(oldest);
        }
        threads.push(Thread { name, lane: Arc::clone(&lane), ended: false });
        lane
    }

    /// For a thread that ends.
    pub(super) fn close(&self, lane: &Arc<Lane>) {
        let mut threads = lock(&self.threads);
        if let Some(thread) = threads.iter_mut().find(|thread| Arc::ptr_eq(&thread.lane, lane)) {
            thread.ended = true;
        }
    }

    /// What is there now.
    pub(crate) fn read(&self) -> Trace {
        let known = |thread: &Thread| (thread.name.clone(), Arc::clone(&thread.lane));
        // Read without the lock, so that no thread waits for it to begin or to end.
        let threads: Vec<_> = lock(&self.threads).iter().map(known).collect();
        let thread = |(name, lane): (String, Arc<Lane>)| {
            let Kept { events, lost } = lane.ring.read();
            let event = |(nanoseconds, what)| Event { nanoseconds, kind: EventKind::unpack(what) };
            let events = events.into_iter().map(event).collect();
            ThreadTrace { name, lost, events }
        };
        Trace {
            pool: self.pool.clone(),
            workers: self.workers,
            threads: threads.into_iter().map(thread).collect(),
            // Last, so that no event is later.
            nanoseconds: self.start.elapsed().as_nanos() as u64,
        }
    }
}
