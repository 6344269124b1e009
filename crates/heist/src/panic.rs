//! What happens to panics of user code: how they are caught, kept, passed on and reported.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The panic of a task.
///
/// ```
/// let pool = heist::Pool::builder().workers(1).build()?;
/// let failed = pool.spawn(|| panic!("no such file")).join();
/// let Err(heist::JoinError::Panicked(panic)) = failed else { unreachable!() };
/// assert_eq!(panic.message(), "no such file");
/// # Ok::<(), heist::BuildError>(())
/// ```
pub struct Panic {
    message: Box<str>,
    payload: Exclusive<Box<dyn Any + Send>>,
}

/// The payload by which a loop or a scope unwinds to a call of `CancelToken::run` whose token was cancelled. It is no panic.
pub(crate) struct Stopped {
    /// The root of the call, which tells it from others.
    pub(crate) run: usize,
}

/// A value that can only be moved out. It may be shared between threads, because a shared reference gives access
/// to nothing.
struct Exclusive<T>(T);

// SAFETY: no method returns a reference to the value.
unsafe impl<T: Send> Sync for Exclusive<T> {}

impl Panic {
    pub(crate) fn new(payload: Box<dyn Any + Send>) -> Self {
        let message = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
            (Some(text), _) => (*text).into(),
            (None, Some(text)) => text.as_str().into(),
            (None, None) => "a panic whose payload is not a text".into(),
        };
        Self { message, payload: Exclusive(payload) }
    }

    /// Returns the payload, if this is no panic but the end of something that was cancelled.
    pub(crate) fn into_stopped(self) -> Result<Box<Stopped>, Self> {
        let Self { message, payload: Exclusive(payload) } = self;
        let panic = |payload| Self { message, payload: Exclusive(payload) };
        payload.downcast().map_err(panic)
    }

    /// Returns the message of the panic, if it has one.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(1).build()?;
    /// match pool.spawn(|| std::panic::panic_any(7)).join() {
    ///     Err(heist::JoinError::Panicked(panic)) => assert!(panic.message().contains("not a text")),
    ///     _ => unreachable!(),
    /// }
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the payload that the panic was raised with.
    ///
    /// ```
    /// let pool = heist::Pool::builder().workers(1).build()?;
    /// match pool.spawn(|| std::panic::panic_any(7_u8)).join() {
    ///     Err(heist::JoinError::Panicked(panic)) => assert_eq!(*panic.into_payload().downcast::<u8>().unwrap(), 7),
    ///     _ => unreachable!(),
    /// }
    /// # Ok::<(), heist::BuildError>(())
    /// ```
    pub fn into_payload(self) -> Box<dyn Any + Send> {
        self.payload.0
    }

    /// Continues the panic on this thread.
    ///
    /// ```should_panic
    /// let pool = heist::Pool::builder().workers(1).build().unwrap();
    /// match pool.spawn(|| panic!("passed on")).join() {
    ///     Err(heist::JoinError::Panicked(panic)) => panic.resume(),
    ///     _ => unreachable!(),
    /// }
    /// ```
    pub fn resume(self) -> ! {
        resume_unwind(self.payload.0)
    }
}

impl fmt::Debug for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Panic").field(&self.message).finish()
    }
}

impl fmt::Display for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// The hook for panics of tasks whose result is not taken.
pub(crate) struct PanicHook(Box<dyn Fn(Panic) + Send + Sync>);

impl PanicHook {
    pub(crate) fn new(hook: impl Fn(Panic) + Send + Sync + 'static) -> Self {
        Self(Box::new(hook))
    }

    pub(crate) fn call(&self, panic: Panic) {
        contain(|| (self.0)(panic));
    }
}

impl Default for PanicHook {
    fn default() -> Self {
        Self::new(|panic| eprintln!("heist: a task that nobody waits for panicked: {panic}"))
    }
}

/// Returns the result of user code, or `None` if it panics.
pub(crate) fn contained<R>(code: impl FnOnce() -> R) -> Option<R> {
    let mut result = None;
    contain(|| result = Some(code()));
    result
}

/// Runs user code whose panic cannot be passed to another thread. The panic ends here; the standard library's panic
/// hook has reported it.
pub(crate) fn contain(code: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(code)) {
        abandon(payload);
    }
}

/// Drops user values one by one. If several destructors panic, only the first panic is returned, and the other
/// ones end here. (If a collection is dropped as a whole, a second panic aborts the process.)
#[inline]
pub(crate) fn drop_each<T>(values: impl IntoIterator<Item = T>) -> Result<(), Box<dyn Any + Send>> {
    let mut outcome = Ok(());
    if std::mem::needs_drop::<T>() {
        for value in values {
            let dropped = catch_unwind(AssertUnwindSafe(|| drop(value)));
            match (dropped, &outcome) {
                (Ok(()), _) => {}
                (Err(first), Ok(())) => outcome = Err(first),
                (Err(payload), Err(_)) => abandon(payload),
            }
        }
    }
    outcome
}

/// Drops user values one by one. The panics of their destructors end here.
#[inline]
pub(crate) fn contain_each<T>(values: impl IntoIterator<Item = T>) {
    if let Err(payload) = drop_each(values) {
        abandon(payload);
    }
}

/// Aborts the process if it is dropped by a panic. It guards code in which unwinding would be unsound or would
/// leave other threads waiting for ever, and in which nothing is known to panic.
pub(crate) struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        eprintln!("heist: a panic in the pool itself; please report it");
        std::process::abort();
    }
}

/// Drops the payload of a panic. If that panics in turn, the new payload is leaked: otherwise payloads whose drop
/// panics could go on for ever.
pub(crate) fn abandon(payload: Box<dyn Any + Send>) {
    if let Err(next) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(next);
    }
}
