//! Reference counting whose counts are charged.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::panic::Location;

use crate::kernel;
use crate::line::Access;

/// A `std::sync::Arc` whose clones and drops are charged as read-modify-writes of the line of the counts.
#[repr(transparent)]
pub struct Arc<T: ?Sized>(ManuallyDrop<std::sync::Arc<T>>);

/// A `std::sync::Weak` whose upgrades are charged.
#[repr(transparent)]
pub struct Weak<T: ?Sized>(std::sync::Weak<T>);

impl<T> Arc<T> {
    /// Moves a value to the heap.
    #[inline]
    pub fn new(value: T) -> Self {
        Self::from_std(std::sync::Arc::new(value))
    }

    /// Returns a pointer to the value, which keeps one count.
    pub fn into_raw(this: Self) -> *const T {
        std::sync::Arc::into_raw(Self::into_std(this))
    }

    /// Takes over the count that [`into_raw`](Self::into_raw) has kept.
    ///
    /// # Safety
    ///
    /// The pointer came from [`into_raw`](Self::into_raw), and its count is taken over once.
    pub unsafe fn from_raw(pointer: *const T) -> Self {
        // SAFETY: the pointer came from `std::sync::Arc::into_raw` in `into_raw`, once, by the caller's promise.
        Self::from_std(unsafe { std::sync::Arc::from_raw(pointer) })
    }

    /// Returns the value if this is the last pointer to it.
    #[track_caller]
    pub fn into_inner(this: Self) -> Option<T> {
        this.charge();
        std::sync::Arc::into_inner(Self::into_std(this))
    }
}

impl<T: ?Sized> Arc<T> {
    /// Wraps a pointer, whose type can have been coerced.
    #[inline]
    pub fn from_std(arc: std::sync::Arc<T>) -> Self {
        Self(ManuallyDrop::new(arc))
    }

    /// Unwraps the pointer, whose type can be coerced.
    #[inline]
    pub fn into_std(this: Self) -> std::sync::Arc<T> {
        let mut this = ManuallyDrop::new(this);
        // SAFETY: `this` is not used again, and its destructor does not run.
        unsafe { ManuallyDrop::take(&mut this.0) }
    }

    /// Returns whether both point to the same value.
    pub fn ptr_eq(this: &Self, other: &Self) -> bool {
        std::sync::Arc::ptr_eq(&this.0, &other.0)
    }

    /// Returns the number of pointers to the value.
    #[track_caller]
    pub fn strong_count(this: &Self) -> usize {
        this.charge();
        std::sync::Arc::strong_count(&this.0)
    }

    /// Returns a pointer that does not keep the value alive.
    #[track_caller]
    pub fn downgrade(this: &Self) -> Weak<T> {
        this.charge();
        Weak(std::sync::Arc::downgrade(&this.0))
    }

    /// Charges a change of the count, which is in front of the value.
    #[track_caller]
    fn charge(&self) {
        let value = std::sync::Arc::as_ptr(&self.0).cast::<u8>();
        let before = value.addr() - align_of_val::<T>(&self.0).max(2 * size_of::<usize>());
        kernel::access(before, size_of::<usize>(), Access::Update, Location::caller());
    }
}

impl<T: ?Sized> Weak<T> {
    /// Returns a pointer that keeps the value alive, if it still exists.
    #[track_caller]
    pub fn upgrade(&self) -> Option<Arc<T>> {
        let arc = Arc::from_std(self.0.upgrade()?);
        arc.charge();
        Some(arc)
    }

    /// Returns the number of pointers that keep the value alive. This is not charged.
    pub fn strong_count(&self) -> usize {
        self.0.strong_count()
    }
}

impl<T: ?Sized> Clone for Arc<T> {
    #[track_caller]
    fn clone(&self) -> Self {
        self.charge();
        Self(self.0.clone())
    }
}

impl<T: ?Sized> Drop for Arc<T> {
    fn drop(&mut self) {
        self.charge();
        // SAFETY: it is dropped once, here, and not used afterwards.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}

impl<T: ?Sized> Deref for Arc<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized> AsRef<T> for Arc<T> {
    fn as_ref(&self) -> &T {
        self
    }
}

impl<T: Default> Default for Arc<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Arc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized> Clone for Weak<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: ?Sized> fmt::Debug for Weak<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
