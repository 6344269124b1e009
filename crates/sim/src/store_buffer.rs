//! When the stores of a core reach its cache: one after the other, while the core goes on.

use crate::costs::Picos;

/// The stores that a core has issued and that its cache does not have yet, as the time at which the last of them gets there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StoreBuffer {
    drained: Picos,
}

impl StoreBuffer {
    /// Returns when a store that is issued now can ask for its line: after the stores before it.
    pub(crate) fn next(&self, now: Picos) -> Picos {
        now.max(self.drained)
    }

    /// Notes that the last store is done at `end`. Returns when the core can go on: at once, unless the buffer is full.
    pub(crate) fn push(&mut self, now: Picos, end: Picos, capacity: Picos) -> Picos {
        self.drained = self.drained.max(end);
        now.max(self.drained.saturating_sub(capacity))
    }

    /// Returns when all stores are done, for which fences and read-modify-writes wait.
    pub(crate) fn flush(&self, now: Picos) -> Picos {
        now.max(self.drained)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_drain_one_after_the_other_while_the_core_goes_on() {
        let mut buffer = StoreBuffer::default();
        assert_eq!(buffer.next(10), 10);
        assert_eq!(buffer.push(10, 50, 100), 10);
        assert_eq!(buffer.next(11), 50);
        assert_eq!(buffer.flush(11), 50);
        assert_eq!(buffer.flush(60), 60);
    }

    #[test]
    fn a_full_buffer_makes_the_core_wait() {
        let mut buffer = StoreBuffer::default();
        assert_eq!(buffer.push(10, 500, 100), 400);
    }
}
