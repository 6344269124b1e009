//! Thread-locals of virtual threads.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

use crate::kernel::{Kernel, enter};

/// A value for each virtual thread, declared by [`thread_local!`](crate::thread_local). It is dropped when the thread
/// ends.
pub struct LocalKey<T: 'static> {
    init: fn() -> T,
}

/// The value was destroyed, because the thread ends, or there is no virtual thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessError;

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the thread-local of a virtual thread was used after its destruction or outside of a simulation")
    }
}

impl std::error::Error for AccessError {}

impl<T: 'static> LocalKey<T> {
    #[doc(hidden)]
    pub const fn new(init: fn() -> T) -> Self {
        Self { init }
    }

    /// Calls `f` with the value of the calling thread.
    ///
    /// # Panics
    ///
    /// Panics if the value was destroyed, and outside of a simulation.
    #[inline]
    pub fn with<R>(&'static self, f: impl FnOnce(&T) -> R) -> R {
        self.try_with(f).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Calls `f` with the value of the calling thread.
    ///
    /// # Errors
    ///
    /// Returns an error if the value was destroyed, and outside of a simulation.
    #[inline]
    pub fn try_with<R>(&'static self, f: impl FnOnce(&T) -> R) -> Result<R, AccessError> {
        let value = match enter(|kernel| kernel.local(self.key())).ok_or(AccessError)? {
            Some(Some(value)) => value,
            Some(None) => return Err(AccessError),
            None => {
                let value: Rc<dyn Any> = Rc::new((self.init)());
                let entry = (self.key(), Some(Rc::clone(&value)));
                enter(|kernel| kernel.thread().locals.push(entry));
                value
            }
        };
        Ok(f(value.downcast_ref().expect("a key has one type")))
    }

    /// Returns the address of the key, which identifies it: no two statics that are not zero-sized have the same.
    fn key(&'static self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

impl<T: Copy> LocalKey<Cell<T>> {
    /// Returns a copy of the value of the calling thread.
    ///
    /// # Panics
    ///
    /// Panics if the value was destroyed, and outside of a simulation.
    #[inline]
    pub fn get(&'static self) -> T {
        self.with(Cell::get)
    }

    /// Sets the value of the calling thread.
    ///
    /// # Panics
    ///
    /// Panics if the value was destroyed, and outside of a simulation.
    #[inline]
    pub fn set(&'static self, value: T) {
        self.with(|cell| cell.set(value));
    }
}

impl Kernel {
    #[inline]
    fn local(&mut self, key: usize) -> Option<Option<Rc<dyn Any>>> {
        let locals = &self.thread().locals;
        locals.iter().find(|(known, _)| *known == key).map(|(_, value)| value.clone())
    }
}

/// Drops the thread-locals of the calling thread in the order of their first use, also those that a destructor has used
/// for the first time.
pub(crate) fn destroy_all() {
    let take = |index: usize| {
        enter(|kernel| kernel.thread().locals.get_mut(index).map(|(_, value)| value.take()))
    };
    let mut index = 0;
    while let Some(Some(value)) = take(index) {
        drop(value);
        index += 1;
    }
}

/// Declares thread-locals of virtual threads, as `std::thread_local!` does for real ones.
///
/// ```
/// use std::cell::Cell;
///
/// heist_sim::thread_local! {
///     static COUNT: Cell<u32> = const { Cell::new(7) };
/// }
///
/// heist_sim::run(heist_sim::Config::new(heist_sim::Machine::generic(1)), || {
///     COUNT.with(|count| assert_eq!(count.get(), 7));
///     COUNT.set(8);
///     assert_eq!(COUNT.get(), 8);
/// })?;
/// # Ok::<(), heist_sim::RunError>(())
/// ```
#[macro_export]
macro_rules! thread_local {
    ($($(#[$attribute:meta])* $visibility:vis static $name:ident: $type:ty = $init:expr);* $(;)?) => {
        $($(#[$attribute])* $visibility static $name: $crate::local::LocalKey<$type> = {
            fn init() -> $type {
                $init
            }
            $crate::local::LocalKey::new(init)
        };)*
    };
}
