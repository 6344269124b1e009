//! A mutex with the algorithm that `std` has on Linux, whose word and data are charged.

use std::cell::Cell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::Location;

pub use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

use crate::atomic::{AtomicU32, Ordering};
use crate::error::WaitsFor;
use crate::line::Access;
use crate::{futex, kernel};

const UNLOCKED: u32 = 0;
const LOCKED: u32 = 1;
/// Locked, and threads may sleep.
const CONTENDED: u32 = 2;

/// How often a thread looks before it sleeps, as in `std`.
const SPINS: u32 = 100;

/// How much of the data an access is charged for, in bytes. Code that holds a lock rarely touches more. Assumed.
const TOUCHED: usize = 128;

/// A mutual exclusion lock for virtual threads. It is never poisoned: the result of `lock` is always `Ok`.
#[expect(clippy::disallowed_types, reason = "the lock guards it")]
#[derive(Default)]
pub struct Mutex<T: ?Sized> {
    word: AtomicU32,
    data: std::cell::UnsafeCell<T>,
}

// SAFETY: a thread that has the mutex has the data, which may be sent.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: through a shared reference, one thread at a time gets at the data, which may be sent.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    /// Returns an unlocked mutex.
    #[expect(clippy::disallowed_types, reason = "the lock guards it")]
    pub const fn new(value: T) -> Self {
        Self { word: AtomicU32::new(UNLOCKED), data: std::cell::UnsafeCell::new(value) }
    }

    /// Returns the data.
    ///
    /// # Errors
    ///
    /// Never returns an error.
    pub fn into_inner(self) -> LockResult<T> {
        Ok(self.data.into_inner())
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Returns the data, which no other thread can access now.
    ///
    /// # Errors
    ///
    /// Never returns an error.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        Ok(self.data.get_mut())
    }

    /// Locks the mutex, and waits for that.
    ///
    /// # Errors
    ///
    /// Never returns an error.
    #[track_caller]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        if !self.acquire() {
            self.lock_contended();
        }
        Ok(MutexGuard { mutex: self, charged: Cell::new(None), site: Location::caller() })
    }

    /// Locks the mutex if it is not locked.
    ///
    /// # Errors
    ///
    /// Returns `WouldBlock` if it is locked.
    #[track_caller]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        if self.acquire() {
            Ok(MutexGuard { mutex: self, charged: Cell::new(None), site: Location::caller() })
        } else {
            Err(TryLockError::WouldBlock)
        }
    }

    #[track_caller]
    fn acquire(&self) -> bool {
        let exchanged =
            self.word.compare_exchange(UNLOCKED, LOCKED, Ordering::Acquire, Ordering::Relaxed);
        exchanged.is_ok()
    }

    #[cold]
    #[track_caller]
    fn lock_contended(&self) {
        let mut state = self.spin();
        if state == UNLOCKED {
            if self.acquire() {
                return;
            }
            state = LOCKED;
        }
        loop {
            if state != CONTENDED && self.word.swap(CONTENDED, Ordering::Acquire) == UNLOCKED {
                return;
            }
            futex::wait(&self.word, CONTENDED, WaitsFor::Lock, |_| None);
            state = self.spin();
        }
    }

    /// Looks until the lock is free, for a while. Returns the last state.
    #[track_caller]
    fn spin(&self) -> u32 {
        for _ in 0..SPINS {
            let state = self.word.load(Ordering::Relaxed);
            if state != LOCKED {
                return state;
            }
            crate::pause();
        }
        self.word.load(Ordering::Relaxed)
    }

    /// Unlocks the mutex, and charges the place where it was locked: a destructor does not know its caller.
    fn unlock(&self, site: &'static Location<'static>) {
        kernel::access(self.address(), size_of::<u32>(), Access::Update, site);
        if self.word.0.swap(UNLOCKED, Ordering::Release) == CONTENDED {
            futex::wake(&self.word, 1);
        }
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(&self.word).addr()
    }
}

impl<T: ?Sized> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex").finish_non_exhaustive()
    }
}

/// The right to access the data of a locked mutex. It is unlocked when this is dropped.
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    /// The most expensive access that was charged.
    charged: Cell<Option<Access>>,
    /// Where the mutex was locked.
    site: &'static Location<'static>,
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// Returns the mutex, which it keeps locked.
    pub(crate) fn mutex(&self) -> &'a Mutex<T> {
        self.mutex
    }

    /// Charges the first read and the first write of the data: what comes later finds the line in the cache.
    fn charge(&self, access: Access) {
        let charged = self.charged.get();
        if charged.is_some_and(|charged| charged == Access::Store || charged == access) {
            return;
        }
        self.charged.set(Some(access));
        let data = self.mutex.data.get();
        // SAFETY: the pointer comes from a reference to the mutex, and the guard is the only access to the data.
        let size = size_of_val(unsafe { &*data }).min(TOUCHED);
        kernel::access(data.cast::<u8>().addr(), size, access, self.site);
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.charge(Access::Load);
        // SAFETY: the mutex is locked, so that no other thread has a reference.
        unsafe { &*self.mutex.data.get() }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.charge(Access::Store);
        // SAFETY: the mutex is locked, so that no other thread has a reference, and this guard is borrowed mutably.
        unsafe { &mut *self.mutex.data.get() }
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        self.mutex.unlock(self.site);
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
