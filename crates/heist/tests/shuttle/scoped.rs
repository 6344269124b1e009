//! Parts of scopes with handles.

use heist::{JoinError, Strategy};
use shuttle::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use shuttle::sync::mpsc;

use crate::scenarios::{exact, pool, scenarios};

scenarios! { handles_of_parts dropped_handles_of_parts a_part_awaits_one_that_forks parts_against_a_token }

/// Handles are joined by the closure of the scope, by another part, and after the scope.
fn handles_of_parts(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let kept = pool.scope(|scope| {
        let first = scope.spawn_handle(|_| 1);
        let second = scope.spawn_handle(move |scope| {
            let inner = scope.spawn_handle(|_| 10);
            first.join().unwrap() + inner.join().unwrap()
        });
        scope.spawn(|_| ());
        let failed = scope.spawn_handle(|_| std::panic::resume_unwind(Box::new(7)));
        let kept = scope.spawn_handle(|_| 100);
        assert_eq!(second.join().unwrap(), 11);
        let failed: Result<(), _> = failed.join();
        assert!(matches!(failed, Err(JoinError::Panicked(_))));
        kept
    });
    assert_eq!(kept.join().unwrap(), 100);
    pool.stop();
    exact(&pool);
}

/// The results of parts without handles are dropped before the scope returns.
fn dropped_handles_of_parts(strategy: Strategy) {
    struct Counts<'a>(&'a AtomicUsize);
    impl Drop for Counts<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    let pool = pool(strategy, 2);
    let drops = AtomicUsize::new(0);
    pool.scope(|scope| {
        for _ in 0..3 {
            drop(scope.spawn_handle(|_| Counts(&drops)));
        }
        let last = scope.spawn_handle(|_| Counts(&drops));
        scope.spawn(move |_| drop(last));
    });
    assert_eq!(drops.into_inner(), 4);
    pool.stop();
    exact(&pool);
}

/// A part waits for its own fork, and another part waits for that part.
fn a_part_awaits_one_that_forks(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let (send, receive) = mpsc::channel();
    let sum = pool.scope(move |scope| {
        let first = scope.spawn_handle(|_| {
            let (a, b) = heist::join(|| 1, || heist::scope(|inner| inner.spawn_handle(|_| 2)));
            a + b.join().unwrap()
        });
        scope.spawn(move |_| send.send(first.join().unwrap()).unwrap());
        scope.spawn_handle(|_| ()).join().unwrap();
        receive
    });
    assert_eq!(sum.recv().unwrap(), 3);
    pool.stop();
    exact(&pool);
}

/// A token is cancelled while its parts start.
fn parts_against_a_token(strategy: Strategy) {
    let pool = pool(strategy, 2);
    let (token, ran) = (heist::CancelToken::new(), AtomicUsize::new(0));
    pool.scope(|scope| {
        let parts = [(); 2]
            .map(|()| scope.task().cancel_on(&token).spawn_in(scope, |_| ran.fetch_add(1, SeqCst)));
        scope.spawn(|_| token.cancel());
        let ended = parts.map(|part| match part.join() {
            Ok(_) => 1,
            Err(JoinError::Cancelled) => 0,
            Err(error) => panic!("{error}"),
        });
        assert_eq!(ended.iter().sum::<usize>(), ran.load(SeqCst));
    });
    pool.stop();
    exact(&pool);
}
