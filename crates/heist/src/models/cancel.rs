//! Models of `CancelToken`: what a cancellation makes visible, and which followers are notified.

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;

use super::explore::{Model, models};
use crate::cancel::{CancelToken, Follower};
use crate::sync::Arc;

/// A thread that sees the cancellation sees what was done before it.
fn seen() {
    struct Note(UnsafeCell<u32>);
    // SAFETY: this access is what the model is about; loom checks it.
    unsafe impl Sync for Note {}
    // SAFETY: this access is what the model is about; loom checks it.
    unsafe impl Send for Note {}

    let (note, token) = (Arc::new(Note(UnsafeCell::new(0))), CancelToken::new());
    let looker = {
        let (note, token) = (Arc::clone(&note), token.child());
        thread::spawn(move || {
            if token.is_cancelled() {
                // SAFETY: written before the cancellation.
                note.0.with(|note| assert_eq!(unsafe { *note }, 1));
            }
        })
    };
    // SAFETY: no thread reads it before the cancellation.
    note.0.with_mut(|note| unsafe { *note = 1 });
    token.cancel();
    looker.join().unwrap();
}

/// A follower that is added during a cancellation is notified.
fn notified() {
    struct Counted(AtomicUsize);
    impl Follower for Counted {
        fn cancel(&self) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    let token = CancelToken::new();
    let canceller = {
        let token = token.clone();
        thread::spawn(move || token.cancel())
    };
    let notified = Arc::new(Counted(AtomicUsize::new(0)));
    let follower: Arc<dyn Follower> = Arc::clone(&notified) as _;
    token.follow(&follower);
    canceller.join().unwrap();
    assert_eq!(notified.0.load(Relaxed), 1, "notified once");
}

/// A cancellation gets past a token that is dropped during it.
fn passed_on() {
    let token = CancelToken::new();
    let between = token.child();
    let canceller = {
        let token = token.clone();
        thread::spawn(move || token.cancel())
    };
    let last = between.child();
    drop(between);
    canceller.join().unwrap();
    assert!(last.is_cancelled(), "the token between was dropped");
}

models! {
    cancel_seen: seen, None, 6;
    cancel_notified: notified, None, 5;
    cancel_passed_on: passed_on, None, 5;
}
