//! `CancelToken::run`: loops and scopes that end early when a token is cancelled.

use crate::api::task::current_priority;
use crate::cancel::CancelToken;
use crate::error::Cancelled;
use crate::fork::job;
use crate::panic::Stopped;
use crate::task::Control;
use std::panic::resume_unwind;

impl CancelToken {
    /// Calls a closure whose parallel loops, sorts and scopes end early when the token is cancelled.
    ///
    /// A [loop](crate::parallel) looks at the token between two blocks of some microseconds, a sort before it sorts a piece, and
    /// a [scope](crate::scope()) before it runs a part. When one of them finds the token cancelled, it unwinds to this call,
    /// after what was running has ended, as it would if a closure panicked. No panic hook is called. Then this returns
    /// [`Cancelled`]. Other code can ask [`is_cancelled`](crate::is_cancelled), or call [`stop_point`] to do what loops do.
    ///
    /// The data is left in this state:
    ///
    /// * Each item of a loop was processed once, or not at all. Items of a vector that was passed by value are dropped, and so
    ///   are results.
    /// * A slice that was to be sorted has the same elements in some order.
    /// * Each part of a scope has run to its end, or not at all; or it has itself unwound from a loop.
    ///
    /// What is [spawned](crate::Pool::spawn) meanwhile is not a part of the call, and goes on. A loop in a destructor that runs
    /// while the call unwinds goes on as well. If a panic and a cancellation meet in a scope, the panic is passed on; the panic
    /// of the second closure of a [`join`](crate::join()) whose first one has ended early is dropped, as it is after a panic.
    ///
    /// Since the call ends by unwinding, a mutex whose guard is dropped on the way is poisoned, a `catch_unwind` between the
    /// loop and this call keeps the call from ending, and a program that is built with `panic = "abort"` ends.
    ///
    /// ```
    /// use heist::{CancelToken, parallel};
    ///
    /// let token = CancelToken::new();
    /// let sum = token.run(|| parallel::reduce(0..1_000_u64, || 0, |sum, n| sum + n, |a, b| a + b));
    /// assert_eq!(sum, Ok(499_500));
    ///
    /// let endless = token.run(|| {
    ///     parallel::for_each(0..u64::MAX, |n| if n == 1_000 { token.cancel() });
    /// });
    /// assert_eq!(endless, Err(heist::Cancelled));
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Cancelled`] if the token was cancelled before, or if the closure has ended early. If the closure has returned,
    /// its result is returned, even if the token was cancelled meanwhile.
    ///
    /// # Panics
    ///
    /// Panics with the panic of the closure.
    pub fn run<R>(&self, f: impl FnOnce() -> R) -> Result<R, Cancelled> {
        if self.is_cancelled() {
            return Err(Cancelled);
        }
        let control = Control::of_run(current_priority(), self, job::root());
        match job::within(&control, f) {
            Ok(value) => Ok(value),
            Err(payload) => match payload.downcast::<Stopped>() {
                Ok(stopped) if stopped.run == job::root_of(&control) => Err(Cancelled),
                Ok(of_another) => resume_unwind(of_another),
                Err(panic) => resume_unwind(panic),
            },
        }
    }
}

/// Ends the closure of the innermost [`CancelToken::run`] around the calling code whose token was cancelled, by unwinding. Has no
/// effect if there is none.
///
/// ```
/// use heist::{CancelToken, Cancelled};
///
/// fn search(token: &CancelToken, depth: u32) -> u64 {
///     heist::stop_point();
///     if depth == 0 {
///         token.cancel();
///         return 1;
///     }
///     let (a, b) = heist::join(|| search(token, depth - 1), || search(token, depth - 1));
///     a + b
/// }
/// let token = CancelToken::new();
/// assert_eq!(token.run(|| search(&token, 10)), Err(Cancelled));
/// heist::stop_point();
/// ```
pub fn stop_point() {
    job::stop_point();
}
