//! Drops the items that are left in a queue, each exactly once, even if some of their destructors panic.

/// Calls `drop_next` until it returns false. If a call panics, the remaining calls are still made, and the
/// first panic is resumed afterwards.
///
/// Any further panic of the same teardown reaches the panic hook and is then discarded. (This needs `std`.
/// Without it, a second panic during the first one aborts the program, as it does for a `Vec`.)
#[cfg(feature = "std")]
pub(crate) fn drop_all(mut drop_next: impl FnMut() -> bool) {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    let mut first = None;
    // Unwind safety: `drop_next` advances past an item before it drops the item, so it can be called again
    // after a panic.
    loop {
        match catch_unwind(AssertUnwindSafe(&mut drop_next)) {
            Ok(true) => {}
            Ok(false) => break,
            Err(payload) if first.is_some() => discard(payload),
            Err(payload) => first = Some(payload),
        }
    }
    match first {
        // A second panic that unwinds at the same time would abort the program.
        Some(payload) if !crate::sync::panicking() => resume_unwind(payload),
        Some(payload) => discard(payload),
        None => {}
    }
}

/// Drops the payload of a panic. If that panics in turn, the payload of the second panic is leaked, because
/// its destructor could panic as well.
#[cfg(feature = "std")]
fn discard(payload: alloc::boxed::Box<dyn core::any::Any + Send>) {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        core::mem::forget(another);
    }
}

/// Calls `drop_next` until it returns false, even if one call panics.
#[cfg(not(feature = "std"))]
pub(crate) fn drop_all(mut drop_next: impl FnMut() -> bool) {
    /// Makes the remaining calls after a panic.
    struct Rest<'a, F: FnMut() -> bool>(&'a mut F);
    impl<F: FnMut() -> bool> Drop for Rest<'_, F> {
        fn drop(&mut self) {
            while (self.0)() {}
        }
    }
    let rest = Rest(&mut drop_next);
    while (rest.0)() {}
}
