//! A deque with a mutex around a `VecDeque`, which thieves only try to lock.
//!
//! It has the same handles, methods and guarantees as the lock-free flavours. It serves as a baseline for
//! measurements, and helps to find out whether a problem comes from a lock-free deque: a scheduler can switch
//! to it by changing the name of the module.
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

use crate::destination::{Destination, sealed};
use crate::shared::Shared;
use crate::sync::{Mutex, MutexGuard, TryLockError};
use crate::teardown::drop_all;
use crate::{BATCH_LIMIT, Steal};

/// What the handles share.
struct Body<T> {
    /// The oldest item is at the front, the newest at the back.
    queue: Mutex<VecDeque<T>>,
}

impl<T> Body<T> {
    /// Locks the queue, and waits for the lock if necessary.
    fn lock(&self) -> MutexGuard<'_, VecDeque<T>> {
        // No user code runs under the lock, so a panic there (a push that finds no memory) leaves the queue
        // intact, and a poisoned lock can be used.
        self.queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Locks the queue, or returns `None` if another thread has the lock.
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

/// The owner's end of a locked deque, which pops the newest item first. It can be sent to another thread,
/// but only one thread can use it at a time.
///
/// ```
/// let (worker, _stealer) = heist_deque::locked::new();
/// worker.push(1);
/// worker.push(2);
/// assert_eq!(worker.pop(), Some(2));
/// ```
pub struct Worker<T> {
    shared: Shared<Body<T>>,
    /// How often the owner has waited for the lock. Only the owner changes it. The cell also makes the worker
    /// `!Sync`, like the workers of the other flavours, which this one can replace.
    waits: Cell<usize>,
}

impl<T> Worker<T> {
    /// Pushes an item at the owner's end.
    ///
    /// ```
    /// let (worker, _stealer) = heist_deque::locked::new();
    /// worker.push('a');
    /// assert_eq!(worker.len(), 1);
    /// ```
    pub fn push(&self, item: T) {
        self.lock().push_back(item);
    }

    /// Takes the newest item. Returns `None` if the deque is empty, which is final until the next push.
    ///
    /// ```
    /// let (worker, _stealer) = heist_deque::locked::new();
    /// worker.push('a');
    /// assert_eq!((worker.pop(), worker.pop()), (Some('a'), None));
    /// ```
    pub fn pop(&self) -> Option<T> {
        self.lock().pop_back()
    }

    /// Returns the number of items.
    ///
    /// ```
    /// assert_eq!(heist_deque::locked::new::<u8>().0.len(), 0);
    /// ```
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Returns whether a pop would find nothing.
    ///
    /// ```
    /// assert!(heist_deque::locked::new::<u8>().0.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of items that fit before the queue allocates more memory.
    ///
    /// ```
    /// let (worker, _stealer) = heist_deque::locked::new();
    /// worker.push('a');
    /// assert!(worker.capacity() >= 1);
    /// ```
    pub fn capacity(&self) -> usize {
        self.lock().capacity()
    }

    /// Returns how often the owner had to wait for the lock, in any operation on this worker, including batch
    /// steals whose destination it was. Meant for a scheduler's counters.
    ///
    /// ```
    /// let (worker, _stealer) = heist_deque::locked::new();
    /// worker.push('a');
    /// assert_eq!(worker.lock_waits(), 0, "no other thread uses the deque");
    /// ```
    pub fn lock_waits(&self) -> usize {
        self.waits.get()
    }

    /// Returns a handle for a thief.
    ///
    /// ```
    /// let (worker, _stealer) = heist_deque::locked::new();
    /// worker.push('a');
    /// assert_eq!(worker.stealer().steal().success(), Some('a'));
    /// ```
    pub fn stealer(&self) -> Stealer<T> {
        Stealer { shared: self.shared.clone() }
    }

    /// Locks the queue for the owner, and counts if it had to wait.
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

/// A thief's end of a locked deque, which takes the oldest item first. It can be cloned, shared and sent to
/// other threads.
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
    /// Steals the oldest item. Returns `Retry` if another thread has the lock.
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

    /// Moves half of the items to `dest`, at most [`BATCH_LIMIT`]. The oldest item is moved first, so
    /// `dest` pops the newest of them first.
    ///
    /// ```
    /// let (worker, stealer) = heist_deque::locked::new();
    /// (1..=4).for_each(|n| worker.push(n));
    /// let (mine, _) = heist_deque::locked::new();
    /// assert!(stealer.steal_batch(&mine).is_success());
    /// assert_eq!((mine.pop(), mine.pop(), mine.pop()), (Some(2), Some(1), None));
    /// ```
    pub fn steal_batch(&self, dest: &Worker<T>) -> Steal<()> {
        if self.shared.ptr_eq(&dest.shared) {
            return if dest.is_empty() { Steal::Empty } else { Steal::Success(()) };
        }
        // A thief waits for the lock of its own deque, and then only tries the victim's lock. Two workers
        // that steal from each other can therefore not each hold one lock and wait for the other.
        let mut into = dest.lock();
        let Some(mut from) = self.shared.try_lock() else {
            return Steal::Retry;
        };
        let half = from.len().div_ceil(2).min(BATCH_LIMIT);
        into.extend(from.drain(..half));
        if half == 0 { Steal::Empty } else { Steal::Success(()) }
    }

    /// Like [`steal_batch`](Self::steal_batch), but returns the item that `dest` would pop first.
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
            // Another thief may have stolen the items from `dest`.
            Steal::Success(()) => dest.pop().map_or(Steal::Retry, Steal::Success),
            Steal::Empty => Steal::Empty,
            Steal::Retry => Steal::Retry,
        }
    }

    /// Returns the number of items.
    ///
    /// ```
    /// assert_eq!(heist_deque::locked::new::<u8>().1.len(), 0);
    /// ```
    pub fn len(&self) -> usize {
        self.shared.lock().len()
    }

    /// Returns whether there is nothing to steal.
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
