//! Values that enter their drop into a book, and panics that are part of the plan.

use std::any::Any;
use std::panic;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Once};

/// How often each value of a test was dropped.
pub(crate) struct Ledger {
    drops: Arc<[AtomicU32]>,
}

impl Ledger {
    pub(crate) fn new(values: usize) -> Self {
        Self { drops: (0..values).map(|_| AtomicU32::new(0)).collect() }
    }

    /// The value with this number; to be made once.
    pub(crate) fn value(&self, number: usize) -> Tracked {
        self.entry(number, false)
    }

    /// As `value`, but its drop panics.
    pub(crate) fn bomb(&self, number: usize) -> Tracked {
        self.entry(number, true)
    }

    fn entry(&self, number: usize, panics: bool) -> Tracked {
        Tracked { number, panics, drops: Arc::clone(&self.drops) }
    }

    /// How many values were dropped.
    pub(crate) fn dropped(&self) -> usize {
        let dropped = |count: &&AtomicU32| count.load(Ordering::Acquire) > 0;
        self.drops.iter().filter(dropped).count()
    }

    pub(crate) fn assert_each_once(&self) {
        for (number, count) in self.drops.iter().enumerate() {
            assert_eq!(count.load(Ordering::Acquire), 1, "drops of value {number}");
        }
    }
}

/// A value that enters its drop into a [`Ledger`].
#[derive(Debug)]
pub(crate) struct Tracked {
    pub(crate) number: usize,
    panics: bool,
    drops: Arc<[AtomicU32]>,
}

impl Tracked {
    /// A value whose drop does not panic, whatever this one would have done.
    pub(crate) fn defuse(mut self) -> Self {
        self.panics = false;
        self
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.drops[self.number].fetch_add(1, Ordering::Release);
        if self.panics {
            panic!("planned: value {}", self.number);
        }
    }
}

/// The text of a panic, if it has one.
pub(crate) fn text(payload: &(dyn Any + Send)) -> &str {
    let literal = payload.downcast_ref::<&str>().copied();
    literal.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("")
}

/// Keeps panics whose text begins with "planned" out of the output, and those of a stop in the wrong
/// place.
pub(crate) fn hush() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let loud = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let text = text(info.payload());
            if !["planned", "Pool::stop"].iter().any(|known| text.starts_with(known)) {
                loud(info);
            }
        }));
    });
}
