//! `join`: two closures that potentially run in parallel.

use std::marker::PhantomData;

use heist::engine;

use crate::global::global;

/// Calls both closures, potentially in parallel, and returns their results.
///
/// The calling thread calls the first closure. If another thread of the pool is idle, it may take the
/// second one in the meantime. Otherwise the calling thread calls that one as well, which costs about as
/// much as two function calls. If the calling thread belongs to no pool, both closures run in the global
/// pool.
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
/// The closures do not necessarily run in parallel. A closure that blocks until the other one has done
/// something may deadlock.
///
/// # Panics
///
/// Propagates the panic of a closure after both have ended. If both panic, the panic of the first closure is
/// propagated.
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

/// Like [`join`], but tells each closure whether it has migrated to another thread.
///
/// ```
/// fn chunks(context: rayon_core::FnContext, splits: u32) -> u32 {
///     // A thread that took this closure from another one was idle. Others may be idle too: split more.
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
/// Propagates panics like [`join`].
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

/// Tells a closure of [`join_context`] how it came to be called.
///
/// ```
/// // Called from a thread outside of any pool: both closures run in the global pool.
/// let (a, b) = rayon_core::join_context(|context| context.migrated(), |context| context.migrated());
/// assert!(a && b);
/// ```
#[derive(Debug)]
pub struct FnContext {
    migrated: bool,
    /// Makes the context `!Send` and `!Sync`.
    _marker: PhantomData<*mut ()>,
}

impl FnContext {
    #[inline]
    fn new(migrated: bool) -> Self {
        Self { migrated, _marker: PhantomData }
    }

    /// Returns whether this thread is another one than the thread that called [`join_context`].
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
