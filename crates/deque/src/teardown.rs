//! Dropping what is left in a queue, each item once, also if some of their destructors panic.

/// Calls `drop_next` until it says that nothing is left. If a call panics, the rest still happens,
/// and the first panic goes on when all is done.
///
/// A second panic of the same teardown is told to the panic hook and goes no further (with `std`;
/// without, two panics at once end the program, as they do for a `Vec`).
#[cfg(feature = "std")]
pub(crate) fn drop_all(mut drop_next: impl FnMut() -> bool) {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    let mut first = None;
    // Unwind safety: `drop_next` moves past an item before it drops it, so a panic leaves it in a
    // state to go on from.
    loop {
        match catch_unwind(AssertUnwindSafe(&mut drop_next)) {
            Ok(true) => {}
            Ok(false) => break,
            Err(payload) if first.is_some() => discard(payload),
            Err(payload) => first = Some(payload),
        }
    }
    match first {
        // Two panics that unwind at once would abort.
        Some(payload) if !crate::sync::panicking() => resume_unwind(payload),
        Some(payload) => discard(payload),
        None => {}
    }
}

/// Drops what a panic carried. If that panics in turn, what *that* panic carried is leaked: there
/// must be an end somewhere.
#[cfg(feature = "std")]
fn discard(payload: alloc::boxed::Box<dyn core::any::Any + Send>) {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        core::mem::forget(another);
    }
}

/// Calls `drop_next` until it says that nothing is left, also if one call panics.
#[cfg(not(feature = "std"))]
pub(crate) fn drop_all(mut drop_next: impl FnMut() -> bool) {
    /// Goes on where a panic stopped.
    struct Rest<'a, F: FnMut() -> bool>(&'a mut F);
    impl<F: FnMut() -> bool> Drop for Rest<'_, F> {
        fn drop(&mut self) {
            while (self.0)() {}
        }
    }
    let rest = Rest(&mut drop_next);
    while (rest.0)() {}
}
