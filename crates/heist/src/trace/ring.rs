//! The last events of one thread, which others may read while it writes.

use crate::order;
use crate::sync::{AtomicU64, Ordering, Padded, zeroed};

/// As a sequence lock has it, with a count for the whole ring instead of one for each slot: a reader that has come upon something newer
/// than what it looked for finds a count that says so.
pub(crate) struct Ring {
    /// Two words for each event, when and what; as many events as a power of two.
    words: Box<[AtomicU64]>,
    /// Events that have ever been written. The next one goes to the slot of this number, wrapped around.
    written: Padded<AtomicU64>,
}

/// What a reader has found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// When and what, the oldest first.
    pub(crate) events: Vec<(u64, u64)>,
    /// Older ones that are gone.
    pub(crate) lost: u64,
}

impl Ring {
    /// Keeps one less than `size`, a power of two.
    pub(crate) fn new(size: usize) -> Self {
        assert!(size.is_power_of_two(), "a ring of {size} slots");
        Self { words: zeroed(2 * size), written: Padded::default() }
    }

    /// How many there are.
    fn size(&self) -> u64 {
        self.words.len() as u64 / 2
    }

    /// When and what, of the event of this number.
    fn slot(&self, index: u64) -> (&AtomicU64, &AtomicU64) {
        let place = 2 * (index & (self.size() - 1)) as usize;
        (&self.words[place], &self.words[place + 1])
    }

    /// Only for the thread whose ring it is.
    #[inline]
    pub(crate) fn write(&self, when: u64, what: u64) {
        // Ordering: relaxed. Nobody else writes it.
        let index = self.written.load(Ordering::Relaxed);
        let slot = self.slot(index);
        slot.0.store(when, order::event_write());
        slot.1.store(what, order::event_write());
        self.written.store(index + 1, order::events_publish());
    }

    /// By any thread.
    pub(crate) fn read(&self) -> Kept {
        let size = self.size();
        let written = self.written.load(order::events_read());
        let first = written.saturating_sub(size);
        let look = |index| {
            let slot = self.slot(index);
            (slot.0.load(order::event_read()), slot.1.load(order::event_read()))
        };
        let mut events: Vec<_> = (first..written).map(look).collect();
        // Ordering: relaxed. If a word was read that belongs to event `n`, what was done before that was written has happened
        // (`event_read`), and so the count is `n` at least.
        let now = self.written.load(Ordering::Relaxed);
        // Event `now` may be half written, to the place of this one.
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
    }
}
