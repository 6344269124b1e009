//! The baseline: a mutex around a `VecDeque`. Thieves only try the lock.
//!
//! Same handles, same verbs, same promises as the lock-free flavours, so that a scheduler can be
//! measured against it, or a doubt about them settled, by changing one word.
//!
//! ```
//! use heist_deque::{Steal, locked};
//!
//! let (worker, stealer) = locked::new();
//! worker.push(1);
//! worker.push(2);
//! assert_eq!(stealer.steal(), Steal::Success(1));
//! assert_eq!(worker.pop(), Some(2));
//! ```

use alloc::collections::VecDeque;
use core::cell::Cell;
use core::fmt;

use crate::dest::{Destination, sealed};
use crate::shared::Shared;
use crate::sync::{Mutex, MutexGuard, TryLockError};
use crate::teardown::drop_all;
use crate::{BATCH_LIMIT, Steal};

/// Oldest at the front, newest at the back.
struct Body<T> {
    queue: Mutex<VecDeque<T>>,
}

impl<T> Body<T> {
    fn lock(&self) -> MutexGuard<'_, VecDeque<T>> {
        // No user code runs under the lock, so a panic there (no memory for a push) leaves the
        // queue whole.
        self.queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// `None` if somebody has the lock.
    fn try_lock(&self) -> Option<MutexGuard<'_, VecDeque<T>>> {
        match self.queue.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl<T> Drop for Body<T> {
    fn drop(&mut self) {
        let queue = self.queue.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        drop_all(|| queue.pop_front().map(drop).is_some());
    }
}

/// Makes an empty deque.
///
/// ```
/// let (worker, stealer) = heist_deque::locked::new();
/// worker.push("work");
/// assert!(!stealer.is_empty());
/// ```
pub fn new<T>() -> (Worker<T>, Stealer<T>) {
    let Ok(shared) = Shared::try_new(Body { queue: Mutex::new(VecDeque::new()) }) else {
        alloc::alloc::handle_alloc_error(core::alloc::Layout::new::<Body<T>>())
    };
    let stealer = Stealer { shared: shared.clone() };
    (Worker { shared, waits: Cell::new(0) }, stealer)
}

/// The owner's end of a locked deque: newest first. It moves between threads, but is used by one
/// at a time.
///
/// ```
/// let (worker, _stealer) = heist_deque::locked::new();
/// worker.push(1);
/// worker.push(2);
/// assert_eq!(worker.pop(), Some(2));
/// ```
pub struct Worker<T> {
    shared: Shared<Body<T>>,
    /// How often the owner has waited for the lock. A cell, because the owner alone counts. It also
    /// keeps the worker to one thread, as those of the other flavours are, for which this one stands in.
    waits: Cell<usize>,
}

impl<T> Worker<T> {
    /// Adds an item at the owner's end.
    ///
    /// ```
    /// let (worker, _stealer) = heist_deque::locked::new();
    /// worker.push('a');
    /// assert_eq!(worker.len(), 1);
    /// ```
    pub fn push(&self, item: T) {
        self.lock().push_back(item);
    }

    /// Takes the newest item. `None` is final until the next push.
    ///
    /// ```
    /// let (worker, _stealer) = heist_deque::locked::new();
    /// worker.push('a');
    /// assert_eq!((worker.pop(), worker.pop()), (Some('a'), None));
    /// ```
    pub fn pop(&self) -> Option<T> {
        self.lock().pop_back()
    }

    /// How many items there are.
    ///
    /// ```
    /// assert_eq!(heist_deque::locked::new::<u8>().0.len(), 0);
    /// ```
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Would a pop find nothing?
    ///
    /// ```
    /// assert!(heist_deque::locked::new::<u8>().0.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many items fit before more memory is needed.
    ///
    /// ```
    /// let (worker, _stealer) = heist_deque::locked::new();
    /// worker.push('a');
    /// assert!(worker.capacity() >= 1);
    /// ```
    pub fn capacity(&self) -> usize {
        self.lock().capacity()
    }

    /// How often the owner has found the lock taken and had to wait for it, in whatever it did with
    /// this worker, being the destination of a batch included. For a scheduler's counters.
    ///
    /// ```
    /// let (worker, _stealer) = heist_deque::locked::new();
    /// worker.push('a');
    /// assert_eq!(worker.lock_waits(), 0, "nobody else was there");
    /// ```
    pub fn lock_waits(&self) -> usize {
        self.waits.get()
    }

    /// A handle for a thief.
    ///
    /// ```
    /// let (worker, _stealer) = heist_deque::locked::new();
    /// worker.push('a');
    /// assert_eq!(worker.stealer().steal().success(), Some('a'));
    /// ```
    pub fn stealer(&self) -> Stealer<T> {
        Stealer { shared: self.shared.clone() }
    }

    /// As the thieves do at first; waits only if that fails, and counts it.
    fn lock(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.shared.try_lock().unwrap_or_else(|| {
            self.waits.set(self.waits.get().wrapping_add(1));
            self.shared.lock()
        })
    }
}

impl<T> sealed::Sealed for Worker<T> {}

impl<T> Destination<T> for Worker<T> {
    fn has_room(&self, _ahead: usize) -> bool {
        true
    }

    fn put(&self, item: T) {
        self.push(item);
    }
}

impl<T> fmt::Debug for Worker<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// A thief's end of a locked deque: oldest first. Clone it, share it, send it anywhere.
///
/// ```
/// let (worker, stealer) = heist_deque::locked::new();
/// worker.push("loot");
/// let thief = std::thread::spawn(move || stealer.steal().success());
/// assert_eq!(thief.join().unwrap(), Some("loot"));
/// ```
pub struct Stealer<T> {
    shared: Shared<Body<T>>,
}

impl<T> Stealer<T> {
    /// Takes the oldest item. `Retry`: somebody has the lock.
    ///
    /// ```
    /// use heist_deque::{Steal, locked};
    ///
    /// let (worker, stealer) = locked::new();
    /// worker.push("loot");
    /// assert_eq!(stealer.steal(), Steal::Success("loot"));
    /// ```
    pub fn steal(&self) -> Steal<T> {
        match self.shared.try_lock() {
            Some(mut queue) => queue.pop_front().map_or(Steal::Empty, Steal::Success),
            None => Steal::Retry,
        }
    }

    /// Moves half of the items to `dest`, at most [`BATCH_LIMIT`]. The oldest go first, so `dest`
    /// pops the newest of them first.
    ///
    /// ```
    /// let (worker, stealer) = heist_deque::locked::new();
    /// (1..=4).for_each(|n| worker.push(n));
    /// let (mine, _) = heist_deque::locked::new();
    /// assert!(stealer.steal_batch(&mine).is_success());
    /// assert_eq!((mine.pop(), mine.pop(), mine.pop()), (Some(2), Some(1), None));
    /// ```
    pub fn steal_batch(&self, dest: &Worker<T>) -> Steal<()> {
        if self.shared.same(&dest.shared) {
            return if dest.is_empty() { Steal::Empty } else { Steal::Success(()) };
        }
        // The lock of the thief's own deque first, waiting for it; then the victim's, without. Two
        // workers that rob each other cannot each hold one lock and wait for the other.
        let mut into = dest.lock();
        let Some(mut from) = self.shared.try_lock() else {
            return Steal::Retry;
        };
        let half = from.len().div_ceil(2).min(BATCH_LIMIT);
        into.extend(from.drain(..half));
        if half == 0 { Steal::Empty } else { Steal::Success(()) }
    }

    /// As [`steal_batch`](Self::steal_batch), but returns the item that `dest` would pop first.
    ///
    /// ```
    /// use heist_deque::{Steal, locked};
    ///
    /// let (worker, stealer) = locked::new();
    /// (1..=4).for_each(|n| worker.push(n));
    /// let (mine, _) = locked::new();
    /// assert_eq!(stealer.steal_batch_and_pop(&mine), Steal::Success(2));
    /// assert_eq!(mine.pop(), Some(1));
    /// ```
    pub fn steal_batch_and_pop(&self, dest: &Worker<T>) -> Steal<T> {
        match self.steal_batch(dest) {
            // A thief of ours may have been faster.
            Steal::Success(()) => dest.pop().map_or(Steal::Retry, Steal::Success),
            Steal::Empty => Steal::Empty,
            Steal::Retry => Steal::Retry,
        }
    }

    /// How many items there are.
    ///
    /// ```
    /// assert_eq!(heist_deque::locked::new::<u8>().1.len(), 0);
    /// ```
    pub fn len(&self) -> usize {
        self.shared.lock().len()
    }

    /// Is there nothing to steal?
    ///
    /// ```
    /// assert!(heist_deque::locked::new::<u8>().1.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> Clone for Stealer<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<T> fmt::Debug for Stealer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stealer").finish_non_exhaustive()
    }
}
