//! How the two closures of a join are called, and when the second one is offered to other workers.

use crate::task::JobKind;
use crate::worker::current::with_worker;

/// How the closures of a join are called, with or without the argument `migrated`, and how they are offered.
pub(crate) trait Call<B> {
    type Result;

    /// What the second closure is, if it is published.
    const KIND: JobKind = JobKind::Half;

    /// Calls the second closure. `migrated` says whether it runs on another thread than its join.
    fn call(closure: B, migrated: bool) -> Self::Result;

    /// Publishes jobs, because the second closure was just added to them and other workers want some.
    #[inline(always)]
    fn offer() {
        answer();
    }

    /// Publishes other jobs, because the first closure has ended and other workers want some.
    #[inline(always)]
    fn offer_others() {
        answer();
    }
}

/// Calls the closures without an argument.
pub(crate) struct WithoutMigrated;

impl<B: FnOnce() -> R, R> Call<B> for WithoutMigrated {
    type Result = R;

    #[inline(always)]
    fn call(closure: B, _: bool) -> R {
        closure()
    }
}

/// Calls the halves of a loop.
pub(crate) struct OfLoop;

impl<B: FnOnce() -> R, R> Call<B> for OfLoop {
    type Result = R;

    const KIND: JobKind = JobKind::Loop;

    #[inline(always)]
    fn call(closure: B, _: bool) -> R {
        closure()
    }
}

/// Calls the closures of a batch, which are counted one by one. Offers them at once only if a worker sleeps. Workers that
/// search get some when a closure has ended and one of them has come by meanwhile, or raid. So what takes less time than a
/// steal is not stolen.
pub(crate) struct OfferedLater;

impl<B: FnOnce() -> R, R> Call<B> for OfferedLater {
    type Result = R;

    const KIND: JobKind = JobKind::Batch;

    fn call(closure: B, _: bool) -> R {
        closure()
    }

    #[cold]
    #[inline(never)]
    fn offer() {
        with_worker(|worker| worker.answer_sleepers(false));
    }

    #[cold]
    #[inline(never)]
    fn offer_others() {
        with_worker(|worker| worker.answer_sleepers(true));
    }
}

/// Calls the closures with `migrated`, as rayon does.
pub(crate) struct WithMigrated;

impl<B: FnOnce(bool) -> R, R> Call<B> for WithMigrated {
    type Result = R;

    #[inline(always)]
    fn call(closure: B, migrated: bool) -> R {
        closure(migrated)
    }
}

/// Publishes jobs, because another worker wants them.
#[cold]
#[inline(never)]
pub(super) fn answer() {
    with_worker(|worker| worker.answer_demand());
}
