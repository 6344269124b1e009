//! Loom models of the protocols between threads, and their negative twins.
//!
//! Run with `ci/models.sh`. See the models of `heist-deque` for how they work: loom explores every interleaving
//! and every value that a load may return, and a floor is asserted on the number of executions. With any one
//! ordering weakened, or any one fence removed, some model must fail.

/// How a model is explored. The orderings to weaken are those of `heist-deque` and of this crate alike.
mod explore {
    pub(crate) use heist_testkit::explore::{
        DEADLOCK, Model, RACE, fails, models, must_begin_in_child,
    };

    pub(crate) fn explore_as_child(
        models: impl Iterator<Item = &'static Model>,
        sites: &[&'static str],
    ) {
        heist_testkit::explore::explore_as_child(models, sites, heist_deque::twin::weaken);
    }
}

/// The methods for forks of a worker whose tasks do not fork.
macro_rules! no_forks {
    () => {
        fn push_job(&self, _: Task) {
            unreachable!("no forks")
        }

        fn push_part(&self, _: Task) {
            unreachable!("no forks")
        }

        fn any_pool(&self) -> std::ptr::NonNull<dyn crate::worker::current::AnyPool> {
            unreachable!("no forks")
        }

        fn owned_pool(&self) -> crate::sync::Arc<dyn crate::worker::current::AnyPool> {
            unreachable!("no pipelines")
        }

        fn workers(&self) -> usize {
            1
        }

        fn worker_index(&self) -> Option<usize> {
            Some(0)
        }

        fn has_searcher(&self) -> bool {
            false
        }

        fn may_keep_private(&self, _: u32) -> bool {
            false
        }

        fn is_cancelling(&self) -> bool {
            false
        }

        fn count(&self, _: crate::task::End) {}

        fn answer_demand(&self) {
            unreachable!("no forks")
        }

        fn answer_before_batch(&self) {}

        fn answer_sleepers(&self, _: bool) {
            unreachable!("no forks")
        }

        fn wait_for_job(&self, _: &dyn Awaited, _: Option<&crate::sync::AtomicUsize>) {
            unreachable!("no forks")
        }
    };
}
use no_forks;

mod cancel;
mod credit;
mod fork;
mod guest;
mod handoff;
mod helping;
mod idle;
mod injectors;
mod latest;
mod near;
mod pipeline;
mod private;
mod raid;
mod resize;
mod retire;
mod stats;
mod task;
mod trace;
mod waiting;
mod twins;
