//! Two closures, perhaps at once.

use std::marker::PhantomData;

use heist::engine;

use crate::global::global;

/// Calls both closures, perhaps at once, and returns what they return.
///
/// The calling thread calls the first. If another thread of the pool has nothing to do, it may take the second
/// meanwhile; otherwise the calling thread calls that one as well, which costs about as much as two calls. On a thread
/// that belongs to no pool, both run in the global one.
///
/// ```
/// fn sum(numbers: &[u64]) -> u64 {
///     match numbers {
///         [] => 0,
///         [one] => *one,
///         many => {
///             let (left, right) = many.split_at(many.len() / 2);
///             let (left, right) = rayon_core::join(|| sum(left), || sum(right));
///             left + right
///         }
///     }
/// }
/// assert_eq!(sum(&[1, 2, 3, 4, 5]), 15);
/// ```
///
/// They need not run at once: a closure that waits for the other by other means may wait for ever.
///
/// # Panics
///
/// With the panic of a closure, after both have ended. If both panic, the first closure's is passed on.
#[inline]
pub fn join<A, B, RA, RB>(oper_a: A, oper_b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    join_context(|_| oper_a(), |_| oper_b())
}

/// [`join`] for closures that want to know whether they have come to another thread.
///
/// ```
/// fn chunks(context: rayon_core::FnContext, splits: u32) -> u32 {
///     // Whoever takes a half that was stolen has nothing else to do, nor have others, perhaps: split more.
///     let splits = if context.migrated() { 3 } else { splits };
///     if splits == 0 {
///         return 1;
///     }
///     let (a, b) = rayon_core::join_context(|c| chunks(c, splits / 2), |c| chunks(c, splits / 2));
///     a + b
/// }
/// let (some, _) = rayon_core::join_context(|context| chunks(context, 3), |_| ());
/// assert!(some >= 4);
/// ```
///
/// # Panics
///
/// As [`join`].
#[inline]
pub fn join_context<A, B, RA, RB>(oper_a: A, oper_b: B) -> (RA, RB)
where
    A: FnOnce(FnContext) -> RA + Send,
    B: FnOnce(FnContext) -> RB + Send,
    RA: Send,
    RB: Send,
{
    engine::join(
        |migrated| oper_a(FnContext::new(migrated)),
        |migrated| oper_b(FnContext::new(migrated)),
        || &global().engine,
    )
}

/// How a closure of [`join_context`] has come to be called.
///
/// ```
/// // Called from outside of any pool: both go to the global one.
/// let (a, b) = rayon_core::join_context(|context| context.migrated(), |context| context.migrated());
/// assert!(a && b);
/// ```
#[derive(Debug)]
pub struct FnContext {
    migrated: bool,
    /// Of one thread.
    _marker: PhantomData<*mut ()>,
}

impl FnContext {
    #[inline]
    fn new(migrated: bool) -> Self {
        Self { migrated, _marker: PhantomData }
    }

    /// Is this another thread than the one that has called [`join_context`]?
    ///
    /// ```
    /// let pool = rayon_core::ThreadPoolBuilder::new().num_threads(1).build()?;
    /// let migrated = pool.install(|| rayon_core::join_context(|a| a.migrated(), |b| b.migrated()));
    /// assert_eq!(migrated, (false, false));
    /// # Ok::<(), rayon_core::ThreadPoolBuildError>(())
    /// ```
    #[inline]
    pub fn migrated(&self) -> bool {
        self.migrated
    }
}
