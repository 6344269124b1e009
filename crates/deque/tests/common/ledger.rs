//! Items that enter their drop into a book.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// How often each item of a test was dropped.
pub(crate) struct Ledger {
    drops: Arc<[AtomicU32]>,
}

impl Ledger {
    pub(crate) fn new(items: usize) -> Self {
        Self { drops: (0..items).map(|_| AtomicU32::new(0)).collect() }
    }

    /// The item with this number; to be made once.
    pub(crate) fn item(&self, number: usize) -> Tracked {
        self.entry(number, false)
    }

    /// As `item`, but its drop panics with its number.
    pub(crate) fn bomb(&self, number: usize) -> Tracked {
        self.entry(number, true)
    }

    fn entry(&self, number: usize, panics: bool) -> Tracked {
        Tracked { number, panics, drops: Arc::clone(&self.drops) }
    }

    /// How many items were dropped.
    pub(crate) fn dropped(&self) -> usize {
        let dropped = |count: &&AtomicU32| count.load(Ordering::Acquire) > 0;
        self.drops.iter().filter(dropped).count()
    }

    pub(crate) fn assert_each_once(&self) {
        for (number, count) in self.drops.iter().enumerate() {
            assert_eq!(count.load(Ordering::Acquire), 1, "drops of item {number}");
        }
    }
}

/// An item that enters its drop into a [`Ledger`].
#[derive(Debug)]
pub(crate) struct Tracked {
    pub(crate) number: usize,
    panics: bool,
    drops: Arc<[AtomicU32]>,
}

impl Tracked {
    /// An item whose drop does not panic, whatever this one would have done.
    pub(crate) fn defuse(mut self) -> Self {
        self.panics = false;
        self
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.drops[self.number].fetch_add(1, Ordering::Release);
        if self.panics {
            std::panic::panic_any(self.number);
        }
    }
}
