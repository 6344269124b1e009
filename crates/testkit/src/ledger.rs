//! Values that record how often they were dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// How often each item of a test was dropped.
#[derive(Debug)]
pub struct Ledger {
    drops: Arc<[AtomicU32]>,
}

impl Ledger {
    /// Creates a ledger for the items `0..items`.
    #[must_use]
    pub fn new(items: usize) -> Self {
        Self { drops: (0..items).map(|_| AtomicU32::new(0)).collect() }
    }

    /// Creates the item with this number. A test creates each item once.
    #[must_use]
    pub fn item(&self, number: usize) -> Tracked {
        self.entry(number, false)
    }

    /// Creates the item with this number. Its drop panics with the number as the payload.
    #[must_use]
    pub fn bomb(&self, number: usize) -> Tracked {
        self.entry(number, true)
    }

    fn entry(&self, number: usize, panics: bool) -> Tracked {
        Tracked { number, panics, drops: Arc::clone(&self.drops) }
    }

    /// Returns how many items were dropped.
    #[must_use]
    pub fn dropped(&self) -> usize {
        let dropped = |count: &&AtomicU32| count.load(Ordering::Acquire) > 0;
        self.drops.iter().filter(dropped).count()
    }

    /// Checks that every item was dropped exactly once.
    ///
    /// # Panics
    ///
    /// Panics if an item was dropped more than once, or never.
    pub fn assert_each_once(&self) {
        for (number, count) in self.drops.iter().enumerate() {
            assert_eq!(count.load(Ordering::Acquire), 1, "drops of item {number}");
        }
    }
}

/// An item that records its drop in a [`Ledger`].
#[derive(Debug)]
pub struct Tracked {
    /// The number of the item in its ledger.
    pub number: usize,
    panics: bool,
    drops: Arc<[AtomicU32]>,
}

impl Tracked {
    /// Returns the item such that its drop does not panic.
    #[must_use]
    pub fn defuse(mut self) -> Self {
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
