//! What happens once: a cell that is written, and a closure that is called. Reads are charged.

use std::mem::MaybeUninit;

use crate::atomic::{AtomicU32, Ordering};

const EMPTY: u32 = 0;
const WRITING: u32 = 1;
const SET: u32 = 2;

/// A `std::sync::OnceLock` whose word is charged. It has the fields of that one, so that the word is on the same line.
#[expect(clippy::disallowed_types, reason = "the word says who may touch it")]
pub struct OnceLock<T> {
    word: AtomicU32,
    /// Written by the thread that changes the word from `EMPTY` to `WRITING`. Not changed once the word is `SET`.
    value: std::cell::UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: a shared cell gives `&T` to other threads (needs `T: Sync`), and takes a `T` from one thread that another drops
// (needs `T: Send`).
unsafe impl<T: Send + Sync> Sync for OnceLock<T> {}

impl<T> OnceLock<T> {
    /// Returns an empty cell.
    #[expect(clippy::disallowed_types, reason = "the word says who may touch it")]
    pub const fn new() -> Self {
        Self {
            word: AtomicU32::new(EMPTY),
            value: std::cell::UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Returns the value, if there is one.
    #[track_caller]
    #[inline]
    pub fn get(&self) -> Option<&T> {
        if self.word.load(Ordering::Acquire) != SET {
            return None;
        }
        // SAFETY: nothing writes to the value any more, because the word is `SET`.
        let value = unsafe { &*self.value.get() };
        // SAFETY: it was written before the word became `SET`, which this thread has seen.
        Some(unsafe { value.assume_init_ref() })
    }

    /// Sets the value.
    ///
    /// # Errors
    ///
    /// Returns the value if there was one.
    #[track_caller]
    pub fn set(&self, value: T) -> Result<(), T> {
        let exchanged =
            self.word.compare_exchange(EMPTY, WRITING, Ordering::Acquire, Ordering::Relaxed);
        if exchanged.is_err() {
            return Err(value);
        }
        // SAFETY: only this thread has changed the word to `WRITING`, and no other touches the value before it is `SET`.
        unsafe { (*self.value.get()).write(value) };
        self.word.store(SET, Ordering::Release);
        Ok(())
    }
}

impl<T> Drop for OnceLock<T> {
    fn drop(&mut self) {
        if *self.word.get_mut() == SET {
            // SAFETY: it was written, and is dropped once, because the cell is gone afterwards.
            unsafe { self.value.get_mut().assume_init_drop() };
        }
    }
}

impl<T> Default for OnceLock<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// A `std::sync::Once` whose word is charged.
#[derive(Debug, Default)]
pub struct Once {
    word: AtomicU32,
}

impl Once {
    /// Returns one for which no closure was called.
    pub const fn new() -> Self {
        Self { word: AtomicU32::new(EMPTY) }
    }

    /// Returns whether the closure has returned.
    #[track_caller]
    #[inline]
    pub fn is_completed(&self) -> bool {
        self.word.load(Ordering::Acquire) == SET
    }

    /// Calls the closure if none was called before, and waits for it if another thread calls it.
    ///
    /// A waiting thread looks again after each yield, and does not sleep. If the closure panics, other threads wait for ever.
    ///
    /// # Panics
    ///
    /// Panics if the closure does.
    #[track_caller]
    #[inline]
    pub fn call_once(&self, f: impl FnOnce()) {
        if !self.is_completed() {
            self.call_once_slow(f);
        }
    }

    #[cold]
    #[track_caller]
    fn call_once_slow(&self, f: impl FnOnce()) {
        let exchanged =
            self.word.compare_exchange(EMPTY, WRITING, Ordering::Acquire, Ordering::Acquire);
        if exchanged.is_ok() {
            f();
            self.word.store(SET, Ordering::Release);
            return;
        }
        while !self.is_completed() {
            crate::thread::yield_now();
        }
    }
}

impl<T> std::fmt::Debug for OnceLock<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OnceLock").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two lines, as what is padded against its neighbours.
    #[repr(align(128))]
    struct Padded([u8; 128]);

    #[test]
    fn it_has_the_size_of_the_real_one() {
        assert_eq!(size_of::<OnceLock<u64>>(), size_of::<std::sync::OnceLock<u64>>());
        assert_eq!(size_of::<OnceLock<Padded>>(), size_of::<std::sync::OnceLock<Padded>>());
        let cell = OnceLock::new();
        assert!(cell.set(Padded([7; 128])).is_ok());
        let value = cell.get().expect("it was set").0.as_ptr().addr();
        assert_ne!(value >> 6, std::ptr::from_ref(&cell.word).addr() >> 6, "on another line");
    }

    #[test]
    fn it_is_set_once_and_dropped_once() {
        let value = std::rc::Rc::new(());
        let cell = OnceLock::new();
        assert!(cell.get().is_none());
        assert!(cell.set(std::rc::Rc::clone(&value)).is_ok());
        assert!(cell.set(std::rc::Rc::clone(&value)).is_err());
        assert!(cell.get().is_some());
        drop(cell);
        assert_eq!(std::rc::Rc::strong_count(&value), 1);
    }
}
