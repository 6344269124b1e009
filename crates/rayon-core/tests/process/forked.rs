//! A child of `fork()` has the pools of its parent, and none of their threads. Each use is refused by a panic, and new pools work.

use std::panic::{AssertUnwindSafe, catch_unwind};

use heist_testkit::test_path;
use rayon_core::{ThreadPool, ThreadPoolBuilder};

use crate::common::alone;

fn pool() -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(2).build().expect("a pool")
}

/// Calls `f` in a child of this process. Panics unless the child ends well. A child that hangs is ended by an alarm.
fn in_fork(f: impl FnOnce()) {
    // SAFETY: the child uses what is promised to work there, and nothing that another thread may have locked.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "no child");
    if child == 0 {
        // SAFETY: the call has no requirements.
        unsafe { libc::alarm(60) };
        let code = libc::c_int::from(catch_unwind(AssertUnwindSafe(f)).is_err());
        // SAFETY: nothing of this process is used afterwards.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: a child of this process, and a place for a number.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child has not ended well");
}

fn assert_refused<R>(f: impl FnOnce() -> R) {
    let payload = catch_unwind(AssertUnwindSafe(f)).err().expect("a panic");
    let text = payload.downcast_ref::<&str>().expect("a text");
    assert!(text.contains("forked"), "{text}");
}

#[test]
fn every_use_is_refused() {
    alone(test_path!("every_use_is_refused"), &[], || {
        let old = pool();
        assert_eq!(old.join(|| 1, || 2), (1, 2));
        assert_eq!(rayon_core::join(|| 1, || 2), (1, 2));
        let mut old = Some(old);
        in_fork(|| {
            let old = old.take().expect("once");
            assert_refused(|| old.install(|| 1));
            assert_refused(|| old.join(|| 1, || 2));
            assert_refused(|| old.scope(|_| ()));
            assert_refused(|| old.scope_fifo(|_| ()));
            assert_refused(|| old.in_place_scope(|scope| scope.spawn(|_| ())));
            assert_refused(|| old.in_place_scope_fifo(|scope| scope.spawn_fifo(|_| ())));
            assert_refused(|| old.spawn(|| ()));
            assert_refused(|| old.spawn_fifo(|| ()));
            assert_refused(|| old.broadcast(|_| ()));
            assert_refused(|| rayon_core::join(|| 1, || 2));
            assert_refused(|| rayon_core::in_place_scope(|_| ()));
            drop(old);
            assert_eq!(pool().join(|| 1, || 2), (1, 2));
        });
        assert_eq!(old.expect("the child has a copy").join(|| 1, || 2), (1, 2));
    });
}
