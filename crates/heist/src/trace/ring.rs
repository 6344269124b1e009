//! The last events of one thread, which other threads may read while it writes.

use crate::order;
use crate::sync::{AtomicU64, Ordering, Padded, zeroed};

/// The last events of one thread. It works like a sequence lock, with one count for the whole ring instead of one for
/// each slot: a reader that has read something newer than the event it looked for then finds a count that says so.
pub(crate) struct Ring {
    /// Two words for each event: its time and its kind. The number of events is a power of two.
    words: Box<[AtomicU64]>,
    /// The number of events that were ever written. The next one goes to the slot of this number, modulo the size.
    written: Padded<AtomicU64>,
}

/// What a reader has found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The time and kind of each event, the oldest first.
    pub(crate) events: Vec<(u64, u64)>,
    /// The number of older events: those that were overwritten, and those that the reader has not asked for.
    pub(crate) lost: u64,
}

impl Ring {
    /// Returns a ring of `size` slots, a power of two, which keeps one event less.
    pub(crate) fn new(size: usize) -> Self {
        assert!(size.is_power_of_two(), "a ring of {size} slots");
        Self { words: zeroed(2 * size), written: Padded::default() }
    }

    /// Returns the number of slots.
    fn size(&self) -> u64 {
        self.words.len() as u64 / 2
    }

    /// Returns the two words of the event with this number.
    fn slot(&self, index: u64) -> (&AtomicU64, &AtomicU64) {
        let place = 2 * (index & (self.size() - 1)) as usize;
        (&self.words[place], &self.words[place + 1])
    }

    /// Writes an event. Only for the thread that the ring belongs to.
    #[inline]
    pub(crate) fn write(&self, when: u64, what: u64) {
        // Ordering: relaxed. No other thread writes it.
        let index = self.written.load(Ordering::Relaxed);
        let slot = self.slot(index);
        slot.0.store(when, order::event_write());
        slot.1.store(what, order::event_write());
        self.written.store(index + 1, order::events_publish());
    }

    /// Reads the events. Any thread may call this.
    pub(crate) fn read(&self) -> Kept {
        self.read_last(self.size())
    }

    /// Reads the last events, at most so many. Any thread may call this.
    pub(crate) fn read_last(&self, most: u64) -> Kept {
        let size = self.size();
        let written = self.written.load(order::events_read());
        let first = written.saturating_sub(most.min(size));
        let look = |index| {
            let slot = self.slot(index);
            (slot.0.load(order::event_read()), slot.1.load(order::event_read()))
        };
        let mut events: Vec<_> = (first..written).map(look).collect();
        // Ordering: relaxed. If a word was read that belongs to event `n`, everything before that write has happened
        // (`event_read`), so the count is at least `n`.
        let now = self.written.load(Ordering::Relaxed);
        // Event `now` may be half written, in the slot of the oldest event.
        let overwritten = (now + 1).saturating_sub(size);
        let gone = overwritten.saturating_sub(first).min(written - first);
        events.drain(..gone as usize);
        Kept { lost: written - events.len() as u64, events }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_kept() {
        let ring = Ring::new(4);
        assert_eq!(ring.read(), Kept { events: vec![], lost: 0 });
        (0..3).for_each(|n| ring.write(n, 10 * n));
        assert_eq!(ring.read(), Kept { events: vec![(0, 0), (1, 10), (2, 20)], lost: 0 });
        (3..10).for_each(|n| ring.write(n, 10 * n));
        assert_eq!(ring.read(), Kept { events: vec![(7, 70), (8, 80), (9, 90)], lost: 7 });
        assert_eq!(ring.read_last(2), Kept { events: vec![(8, 80), (9, 90)], lost: 8 });
        assert_eq!(ring.read_last(5), ring.read());
    }
}
