//! Atomics whose accesses are charged. They have the layout of those of `std`, and can be made in constants.

use std::panic::Location;
use std::sync::atomic as real;

pub use std::sync::atomic::Ordering;

use crate::kernel::{self, enter, take_turn};
use crate::line::Access;

/// Methods that all atomics have.
macro_rules! common {
    ($type:ty) => {
        #[track_caller]
        #[inline]
        fn charge(&self, access: Access) {
            let address = std::ptr::from_ref(self).addr();
            kernel::access(address, size_of::<$type>(), access, Location::caller());
        }

        /// Loads the value.
        #[track_caller]
        #[inline]
        pub fn load(&self, order: Ordering) -> $type {
            self.charge(Access::Load);
            self.0.load(order)
        }

        /// Stores a value. A sequentially consistent store is an exchange, as on x86-64.
        #[track_caller]
        #[inline]
        pub fn store(&self, value: $type, order: Ordering) {
            self.charge(if order == Ordering::SeqCst { Access::Update } else { Access::Store });
            self.0.store(value, order);
        }

        /// Stores a value and returns the old one.
        #[track_caller]
        #[inline]
        pub fn swap(&self, value: $type, order: Ordering) -> $type {
            self.charge(Access::Update);
            self.0.swap(value, order)
        }

        /// Stores a value if the present one is `current`. A failure costs the same.
        ///
        /// # Errors
        ///
        /// Returns the present value if it is another.
        #[track_caller]
        #[inline]
        pub fn compare_exchange(
            &self,
            current: $type,
            new: $type,
            success: Ordering,
            failure: Ordering,
        ) -> Result<$type, $type> {
            self.charge(Access::Update);
            self.0.compare_exchange(current, new, success, failure)
        }

        /// Like [`compare_exchange`](Self::compare_exchange): it does not fail for no reason.
        ///
        /// # Errors
        ///
        /// Returns the present value if it is another.
        #[track_caller]
        #[inline]
        pub fn compare_exchange_weak(
            &self,
            current: $type,
            new: $type,
            success: Ordering,
            failure: Ordering,
        ) -> Result<$type, $type> {
            self.compare_exchange(current, new, success, failure)
        }

        /// Returns the value, which no other thread can access now. This is not charged.
        #[inline]
        pub fn get_mut(&mut self) -> &mut $type {
            self.0.get_mut()
        }

        /// Returns the value. This is not charged.
        #[inline]
        pub fn into_inner(self) -> $type {
            self.0.into_inner()
        }
    };
}

/// Read-modify-writes that return the old value.
macro_rules! updates {
    ($type:ty: $($name:ident)*) => {
        $(
            #[doc = concat!("Performs `", stringify!($name), "` and returns the old value.")]
            #[track_caller]
            #[inline]
            pub fn $name(&self, value: $type, order: Ordering) -> $type {
                self.charge(Access::Update);
                self.0.$name(value, order)
            }
        )*
    };
}

macro_rules! atomic {
    ($name:ident, $type:ty: $($update:ident)*) => {
        #[doc = concat!("A charged `", stringify!($name), "`.")]
        #[repr(transparent)]
        #[derive(Debug, Default)]
        pub struct $name(pub(crate) real::$name);

        impl $name {
            /// Returns an atomic with this value.
            #[inline]
            pub const fn new(value: $type) -> Self {
                Self(real::$name::new(value))
            }

            common!($type);
            updates!($type: $($update)*);
        }
    };
}

atomic!(AtomicBool, bool: fetch_and fetch_or fetch_xor);
/// Atomic integers, which all have the same operations.
macro_rules! integers {
    ($($name:ident: $type:ty,)*) => {
        $(atomic!($name, $type: fetch_add fetch_sub fetch_and fetch_or fetch_xor fetch_max fetch_min);)*
    };
}

integers! {
    AtomicU8: u8,
    AtomicU16: u16,
    AtomicU32: u32,
    AtomicU64: u64,
    AtomicUsize: usize,
    AtomicI8: i8,
    AtomicI16: i16,
    AtomicI32: i32,
    AtomicI64: i64,
    AtomicIsize: isize,
}

/// A charged `AtomicPtr`.
#[repr(transparent)]
#[derive(Debug)]
pub struct AtomicPtr<T>(real::AtomicPtr<T>);

impl<T> AtomicPtr<T> {
    /// Returns an atomic with this value.
    #[inline]
    pub const fn new(value: *mut T) -> Self {
        Self(real::AtomicPtr::new(value))
    }

    common!(*mut T);
}

impl<T> Default for AtomicPtr<T> {
    fn default() -> Self {
        Self::new(std::ptr::null_mut())
    }
}

/// Charges a fence. Only a sequentially consistent one costs time: it waits for the store buffer.
pub fn fence(order: Ordering) {
    if order == Ordering::SeqCst {
        take_turn();
        enter(|kernel| kernel.fence());
    }
}

/// Charges the system call that makes all running threads pass a fence.
pub fn membarrier() {
    take_turn();
    enter(|kernel| kernel.membarrier());
}
