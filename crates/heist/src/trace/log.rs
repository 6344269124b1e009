//! The trace of one pool: a ring of events for each of its threads.

use super::event::{ThreadTrace, Trace, unpack};
use super::last::{LastEvents, ThreadEnd};
use super::names::{Names, name_of};
use super::ring::{Kept, Ring};
use crate::sync::{Arc, Instant, Mutex, lock};

/// The largest number of events for each thread. With the slot that is being written, they take a quarter of a
/// gigabyte.
pub(crate) const MOST_EVENTS: usize = (1 << 24) - 1;

/// The smallest useful number of events.
const FEWEST_EVENTS: usize = 16;

/// The number of threads that are kept in the trace after their end. A pool whose tasks wait for each other may
/// start many.
const ENDED: usize = 64;

/// The number of words of a thread that are read for its last events. Some may be the names of tasks, which are no events of
/// their own.
const WORDS_FOR_LAST: u64 = 16;

/// The events of one thread, which it writes and others read.
pub(super) struct ThreadEvents {
    pub(super) ring: Ring,
    /// The start of the pool.
    start: Instant,
}

impl ThreadEvents {
    pub(super) fn write(&self, word: u64) {
        let now = self.start.elapsed();
        self.ring.write(now.as_nanos() as u64, word);
    }
}

struct Thread {
    name: String,
    place: usize,
    thread_events: Arc<ThreadEvents>,
    ended: bool,
}

/// The events of all threads of a pool.
pub(crate) struct Log {
    pool: String,
    workers: usize,
    /// The start of the pool.
    pub(super) start: Instant,
    /// The size of each ring.
    size: usize,
    threads: Mutex<Vec<Thread>>,
    /// The names of the tasks.
    pub(super) names: Names,
}

impl Log {
    /// Returns a log that keeps this many events of each thread, or up to twice as many.
    pub(crate) fn new(pool: &str, workers: usize, events: usize) -> Self {
        debug_assert!(events <= MOST_EVENTS, "the builder has looked");
        // One slot is not available, because it may be half written.
        let size = (events.max(FEWEST_EVENTS) + 1).next_power_of_two();
        Self {
            pool: pool.into(),
            workers,
            start: Instant::now(),
            size,
            threads: Mutex::new(Vec::new()),
            names: Names::default(),
        }
    }

    /// Adds a ring for a thread that starts.
    pub(super) fn open(&self, name: String, place: usize) -> Arc<ThreadEvents> {
        let thread_events =
            Arc::new(ThreadEvents { ring: Ring::new(self.size), start: self.start });
        let mut threads = lock(&self.threads);
        if threads.iter().filter(|thread| thread.ended).count() >= ENDED {
            let oldest = threads.iter().position(|thread| thread.ended).expect("counted");
            threads.remove(oldest);
        }
        threads.push(Thread {
            name,
            place,
            thread_events: Arc::clone(&thread_events),
            ended: false,
        });
        thread_events
    }

    /// Notes that a thread ends.
    pub(super) fn close(&self, thread_events: &Arc<ThreadEvents>) {
        let mut threads = lock(&self.threads);
        if let Some(thread) =
            threads.iter_mut().find(|thread| Arc::ptr_eq(&thread.thread_events, thread_events))
        {
            thread.ended = true;
        }
    }

    /// Returns what the log holds now.
    pub(crate) fn read(&self) -> Trace {
        let known = |thread: &Thread| (thread.name.clone(), Arc::clone(&thread.thread_events));
        // Read without the lock, so that no thread waits for it when it starts or ends.
        let threads: Vec<_> = lock(&self.threads).iter().map(known).collect();
        let thread = |(name, thread_events): (String, Arc<ThreadEvents>)| {
            let Kept { events, lost } = thread_events.ring.read();
            // Read after the events, so that each name is there.
            let names = self.names.read();
            ThreadTrace { name, lost, events: unpack(events, |number| name_of(&names, number)) }
        };
        Trace {
            pool: self.pool.clone(),
            workers: self.workers,
            threads: threads.into_iter().map(thread).collect(),
            // Taken last, so that no event is later.
            nanoseconds: self.start.elapsed().as_nanos() as u64,
        }
    }

    /// Returns the last events of every thread, at most `most` of each.
    pub(crate) fn read_last(&self, most: usize) -> LastEvents {
        let known = |thread: &Thread| (thread.place, Arc::clone(&thread.thread_events));
        // Read without the lock, as in `read`.
        let threads: Vec<_> = lock(&self.threads).iter().map(known).collect();
        let words = |(place, thread_events): (usize, Arc<ThreadEvents>)| {
            (place, thread_events.ring.read_last(WORDS_FOR_LAST).events)
        };
        let threads: Vec<_> = threads.into_iter().map(words).collect();
        // Read after the events, so that each name is there.
        let names = self.names.read();
        let thread = |(place, words)| {
            let mut events = unpack(words, |number| name_of(&names, number));
            events.drain(..events.len().saturating_sub(most));
            ThreadEnd { place, events }
        };
        LastEvents {
            threads: threads.into_iter().map(thread).collect(),
            nanoseconds: self.start.elapsed().as_nanos() as u64,
        }
    }
}
