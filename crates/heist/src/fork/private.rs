//! Private tasks: what a worker has spawned, until another worker wants it.
//!
//! A worker pushes and pops its newest task here, with plain loads and stores. No other thread looks, except in a raid
//! ([`raid`](crate::fork::raid)), by the protocol of private jobs: the owner changes the stack and then looks at its
//! demand, with nothing but the compiler's order in between. A thief announces itself in that demand, passes a heavy fence,
//! and then looks at the stack. So either the owner sees the thief and waits for the lock, or the thief sees the stack as
//! the owner has left it.
//!
//! The oldest task is taken first, by the owner that publishes it or by a thief. Both hold the lock for that.

use std::mem::MaybeUninit;

use crate::fork::demand::Demand;
use crate::fork::raid::Guard;
use crate::order;
use crate::sync::{AtomicUsize, Ordering, UnsafeCell, light_fence};
use crate::task::Task;

/// The number of tasks for which a stack has room at first, and when it has been empty for a while. A power of two. A guess:
/// enough for a tree of tasks, and small enough to stay in the nearest cache.
#[cfg(not(any(loom, shuttle)))]
const CAPACITY: usize = 256;
/// Small, so that a checker sees a full stack.
#[cfg(any(loom, shuttle))]
const CAPACITY: usize = 2;

/// The number of tasks that are looked at to see whether there are many stale ones. If a quarter of them are, they are found in
/// all but one of a hundred cases.
const SAMPLES: usize = 16;

/// With more tasks than this, their slots no longer fit into the nearest cache: when one is popped, that of a later one is fetched.
/// A guess.
const LARGE: usize = if cfg!(any(loom, shuttle)) { 1 } else { 256 };
/// The slot that is fetched is that of the task which comes after so many others. A guess: to run them takes about as long as to
/// fetch it.
const AHEAD: usize = if cfg!(any(loom, shuttle)) { 1 } else { 8 };

/// The private tasks of one thread, by their kind.
pub(crate) struct PrivateTasks {
    /// Parts of a scope that the thread itself has opened.
    pub(crate) parts: Stack,
    /// Tasks that have not started.
    pub(crate) tasks: Stack,
}

impl PrivateTasks {
    pub(crate) fn new() -> Self {
        Self { parts: Stack::new(), tasks: Stack::new() }
    }

    /// For the owner: returns the number of tasks.
    pub(crate) fn len(&self) -> usize {
        self.parts.len() + self.tasks.len()
    }

    /// Returns whether there seems to be a task. For the owner and for threads that hold the lock; for others it is a hint.
    pub(crate) fn any(&self) -> bool {
        self.parts.any() || self.tasks.any()
    }
}

/// A stack whose oldest entry others can take. Aligned, because its owner writes to it for every task.
#[repr(align(128))]
pub(crate) struct Stack {
    /// The number of the oldest task. Changed under the lock.
    ///
    /// Ordering: relaxed. A thread that changes it holds the lock. If the owner reads an old number, a raid is announced
    /// that the owner has not seen yet, and it finds the announcement before it uses a task.
    oldest: AtomicUsize,
    /// The number of the next task to be pushed. Written by the owner.
    next: AtomicUsize,
    /// Where the owner must look again whether there is room. No thread uses the cells of smaller numbers from `next` on:
    /// the owner knows that from `oldest`, which it has read under the lock. Touched by the owner alone.
    end: AtomicUsize,
    /// The task with each number, modulo the size, which is a power of two. Those from `oldest` to `next`, exclusive, are
    /// initialized. The owner changes the array under the lock, and other threads look at it under the lock.
    cells: UnsafeCell<Cells>,
}

/// The places of tasks.
type Cells = Box<[UnsafeCell<MaybeUninit<Task>>]>;

/// Returns the number of tasks from `oldest` to `next`. While the owner is about to pop a task that is gone, and has yet to get
/// the lock, `next` is smaller by one.
fn count(oldest: usize, next: usize) -> usize {
    let count = next.wrapping_sub(oldest);
    if count == usize::MAX { 0 } else { count }
}

/// Returns that many empty places.
fn empty(count: usize) -> Cells {
    (0..count).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect()
}

// SAFETY: tasks are `Send`. A cell is written by the owner, before it counts the task, and is read by whoever takes the
// task: the owner that pops it, or a thread that holds the lock. `pop` and `take_oldest` say why only one of them does.
unsafe impl Sync for Stack {}

impl Stack {
    fn new() -> Self {
        Self {
            oldest: AtomicUsize::new(0),
            next: AtomicUsize::new(0),
            end: AtomicUsize::new(CAPACITY),
            cells: UnsafeCell::new(empty(CAPACITY)),
        }
    }

    /// Calls `f` with the place of the task with that number.
    ///
    /// # Safety
    ///
    /// The caller is the owner, or holds the lock.
    #[inline(always)]
    unsafe fn with_cell<R>(
        &self,
        number: usize,
        f: impl FnOnce(&UnsafeCell<MaybeUninit<Task>>) -> R,
    ) -> R {
        self.cells.with(|cells| {
            // SAFETY: only the owner changes the array, under the lock. So it does not change now.
            let cells = unsafe { &*cells };
            f(&cells[number & (cells.len() - 1)])
        })
    }

    /// Reads the task with that number, which belongs to the caller from then on.
    ///
    /// # Safety
    ///
    /// The caller is the owner, or holds the lock. The task is initialized, the caller sees what its owner has written, and
    /// nobody else reads it.
    #[inline(always)]
    unsafe fn read(&self, number: usize) -> Task {
        // SAFETY: a place of the array, which nobody writes to now.
        let read = |cell: *const MaybeUninit<Task>| unsafe { cell.read() };
        // SAFETY: the caller's promise.
        let task = unsafe { self.with_cell(number, |cell| cell.with(read)) };
        // SAFETY: initialized, and not used again, by the caller's promise.
        unsafe { task.assume_init() }
    }

    /// Calls `f` with the task with that number.
    ///
    /// # Safety
    ///
    /// The caller is the owner, and has written the task. `f` uses no more of it than its address, unless the caller holds the
    /// lock and the task is in the stack.
    unsafe fn look<R>(&self, number: usize, f: impl FnOnce(&Task) -> R) -> R {
        // SAFETY: a place of the array, which nobody writes to now.
        let task = |cell: *const MaybeUninit<Task>| unsafe { &*cell };
        // SAFETY: the owner.
        let task = unsafe { self.with_cell(number, |cell| cell.with(task)) };
        // SAFETY: initialized, by the caller's promise. The bytes stay there when another thread has taken the task.
        f(unsafe { task.assume_init_ref() })
    }

    /// Returns whether there seems to be a task. For the owner and for threads that hold the lock; for others it is a hint.
    #[inline(always)]
    pub(crate) fn any(&self) -> bool {
        // Ordering: relaxed. A hint, or read by the owner.
        self.next.load(Ordering::Relaxed) != self.oldest.load(Ordering::Relaxed)
    }

    /// For the owner, and for threads that hold the lock: returns the number of tasks. For others it may be wrong by one.
    pub(crate) fn len(&self) -> usize {
        count(self.oldest.load(Ordering::Relaxed), self.next.load(Ordering::Relaxed))
    }

    /// For the owner: adds a task as the newest, unless there may be no room. The owner then looks at its demand.
    ///
    /// # Safety
    ///
    /// Only the owner calls this.
    #[inline(always)]
    pub(crate) unsafe fn push(&self, task: Task) -> Result<(), Task> {
        // Ordering: relaxed. Both are written by this thread.
        let next = self.next.load(Ordering::Relaxed);
        if next == self.end.load(Ordering::Relaxed) {
            return Err(task);
        }
        let write = |cell: *mut MaybeUninit<Task>| {
            // SAFETY: the number is below `end`, so no other thread uses the place, and its last task was taken.
            unsafe { (*cell).write(task) };
        };
        // SAFETY: the owner.
        unsafe { self.with_cell(next, |cell| cell.with_mut(write)) };
        self.next.store(next.wrapping_add(1), order::newest_publish());
        light_fence(order::CHAIN);
        Ok(())
    }

    /// For the owner: removes the newest task. The owner then looks at its demand.
    ///
    /// # Safety
    ///
    /// Only the owner calls this. The demand is that of this stack.
    #[inline(always)]
    pub(crate) unsafe fn pop(&self, demand: &Demand) -> Option<Task> {
        if !self.any() {
            return None;
        }
        // Ordering: relaxed. Written by this thread.
        let newest = self.next.load(Ordering::Relaxed).wrapping_sub(1);
        self.next.store(newest, Ordering::Relaxed);
        light_fence(order::CHAIN);
        if demand.is_raided() && self.is_raided(newest, demand) {
            return None;
        }
        self.fetch_ahead(newest);
        // SAFETY: there was a task, and this thread has written it. A thread that takes the oldest one holds the lock. If
        // that is this thread, it is not here. Otherwise it has announced a raid. Either this thread has seen that, has held
        // the lock since, and knows that the task is still there; or that thread sees, after its heavy fence, that the task
        // is not in the stack any more.
        Some(unsafe { self.read(newest) })
    }

    /// For the owner, which has just taken out the task with that number: begins to fetch the slot of a later one, if the stack is
    /// large.
    #[inline(always)]
    fn fetch_ahead(&self, newest: usize) {
        // Ordering: relaxed. If a thief has moved it since, what is fetched is not needed.
        if newest.wrapping_sub(self.oldest.load(Ordering::Relaxed)) > LARGE {
            // SAFETY: the owner, which has written this task, and uses its address only.
            unsafe { self.look(newest.wrapping_sub(AHEAD), Task::prefetch) };
        }
    }

    /// Returns whether a thief has taken the newest task, which the owner is about to pop.
    #[cold]
    #[inline(never)]
    fn is_raided(&self, newest: usize, demand: &Demand) -> bool {
        let _guard = demand.guard_after_raid();
        let oldest = self.oldest.load(Ordering::Relaxed);
        let raided = oldest == newest.wrapping_add(1);
        if raided {
            // Nothing is left.
            self.next.store(oldest, Ordering::Relaxed);
        }
        raided
    }

    /// Removes the oldest task.
    ///
    /// # Safety
    ///
    /// The caller holds the lock of the demand of this stack, as that guard shows. It is the owner, or has announced a raid
    /// since.
    pub(crate) unsafe fn take_oldest(&self, _: &Guard<'_>) -> Option<Task> {
        let (oldest, next) =
            (self.oldest.load(Ordering::Relaxed), self.next.load(order::newest_read()));
        if count(oldest, next) == 0 {
            return None;
        }
        // SAFETY: initialized, and this thread sees what was written before it was counted. If this is a thief, the owner
        // will see the announcement before it pops this task, and wait for the lock; or it has popped another one.
        let task = unsafe { self.read(oldest) };
        self.oldest.store(oldest.wrapping_add(1), Ordering::Relaxed);
        Some(task)
    }

    /// For the owner: returns the size of the array.
    fn size(&self) -> usize {
        // SAFETY: this is the owner, so nobody changes the array.
        self.cells.with(|cells| unsafe { &*cells }.len())
    }

    /// For the owner: makes room for more tasks. Drops stale entries first, if there seem to be many.
    ///
    /// # Safety
    ///
    /// Only the owner calls this. It holds the lock of the demand of this stack, as that guard shows.
    pub(crate) unsafe fn make_room(&self, _: &Guard<'_>) {
        // SAFETY: the caller's promise.
        if unsafe { self.seems_stale() } {
            // SAFETY: the caller's promise.
            unsafe { self.drop_stale() };
        }
        // Thieves may also have taken some since the owner last looked.
        let (len, size) = (self.len(), self.size());
        // SAFETY: the caller's promise.
        unsafe { self.resize(if len > size / 2 { 2 * size } else { size }) };
    }

    /// For the owner: returns whether one of a few entries is stale. To look at all of them would be to fetch their slots from
    /// memory.
    ///
    /// # Safety
    ///
    /// As for [`make_room`](Self::make_room).
    unsafe fn seems_stale(&self) -> bool {
        let (oldest, len) = (self.oldest.load(Ordering::Relaxed), self.len());
        // SAFETY: the owner, which has the lock, and the task is in the stack.
        let look = |at: usize| unsafe { self.look(oldest.wrapping_add(at), Task::is_stale) };
        (0..len).step_by((len / SAMPLES).max(1)).any(look)
    }

    /// For the owner: drops the stale entries, and moves the others together.
    ///
    /// # Safety
    ///
    /// As for [`make_room`](Self::make_room).
    unsafe fn drop_stale(&self) {
        let (oldest, mut kept) = (self.oldest.load(Ordering::Relaxed), 0);
        for number in (0..self.len()).map(|more| oldest.wrapping_add(more)) {
            // SAFETY: the owner, which has the lock, so that nobody else reads the task.
            let task = unsafe { self.read(number) };
            if !task.is_stale() {
                let write = |cell: *mut MaybeUninit<Task>| {
                    // SAFETY: nobody else uses the place under the lock, and its task was read above.
                    unsafe { (*cell).write(task) };
                };
                // SAFETY: the owner.
                unsafe { self.with_cell(oldest.wrapping_add(kept), |cell| cell.with_mut(write)) };
                kept += 1;
            }
        }
        self.next.store(oldest.wrapping_add(kept), Ordering::Relaxed);
    }

    /// For the owner: gives back memory, if the stack is empty and was large.
    ///
    /// # Safety
    ///
    /// As for [`make_room`](Self::make_room).
    pub(crate) unsafe fn shrink(&self, _: &Guard<'_>) {
        if !self.any() {
            // SAFETY: the caller's promise.
            unsafe { self.resize(CAPACITY) };
        }
    }

    /// Moves the tasks to an array of that size, unless it has that size, and notes how much room there is.
    ///
    /// # Safety
    ///
    /// The owner calls this, under the lock. The size is a power of two, and there is room for all tasks.
    unsafe fn resize(&self, size: usize) {
        let oldest = self.oldest.load(Ordering::Relaxed);
        if self.size() != size {
            let cells = empty(size);
            for number in (0..self.len()).map(|more| oldest.wrapping_add(more)) {
                // SAFETY: the owner. The task is in the stack, and is moved: the old array is dropped below.
                let task = unsafe { self.read(number) };
                // SAFETY: this array is not shared yet.
                cells[number & (size - 1)].with_mut(|cell| _ = unsafe { (*cell).write(task) });
            }
            // SAFETY: the owner has the lock, so nobody else looks at the array.
            self.cells.with_mut(|old| unsafe { *old = cells });
        }
        self.end.store(oldest.wrapping_add(size), Ordering::Relaxed);
    }

    /// For the owner: returns whether the stack has taken more memory than it had at first.
    pub(crate) fn is_large(&self) -> bool {
        self.size() > CAPACITY
    }

    /// For the owner: returns the number of the newest task, as [`Task::id`] does.
    #[inline(always)]
    pub(crate) fn newest(&self) -> Option<usize> {
        if !self.any() {
            return None;
        }
        let newest = self.next.load(Ordering::Relaxed).wrapping_sub(1);
        // SAFETY: the owner, which has written it and looks at its address only.
        Some(unsafe { self.look(newest, Task::id) })
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        let (oldest, next) =
            (self.oldest.load(Ordering::Relaxed), self.next.load(Ordering::Relaxed));
        for number in 0..next.wrapping_sub(oldest) {
            // SAFETY: it is in the stack, which nobody else can use any more.
            drop(unsafe { self.read(oldest.wrapping_add(number)) });
        }
    }
}
