//! The contract of a handle: it yields the result once, however the caller waits. The task does not depend
//! on its handle.

use std::cell::RefCell;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use heist::{JoinError, JoinHandle, Pool};

use crate::common::{
    Gate, Kind, Ledger, Rng, WORKERS, WakeCounter, assert_counts, block_on, eventually,
    for_every_strategy, in_child, poll_once,
};

for_every_strategy! {
    join,
    is_finished,
    drop_detaches,
    forget,
    debug,
    sent,
    shared,
    outlives_the_pool,
    every_operation_at_every_moment,
    joined_on_exit,
    spawned_on_exit,
}

fn join(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        // Once the caller waits before the task has run, and once after.
        let gate = Gate::close(&pool);
        let handle = pool.spawn(|| 1);
        thread::scope(|scope| {
            let waiter = scope.spawn(|| handle.join());
            gate.open();
            assert_eq!(waiter.join().expect("no panic").expect("a result"), 1);
        });
        let handle = pool.spawn(|| 2);
        eventually("the task has ended", || handle.is_finished());
        assert_eq!(handle.join().expect("a result"), 2);
    }
}

/// `is_finished` returns true when a join would not wait.
fn is_finished(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let gate = Gate::close(&pool);
        let (go, gone) = mpsc::channel();
        let (start, started) = mpsc::channel();
        let handle = pool.spawn(move || {
            start.send(()).expect("a test that waits");
            gone.recv().expect("a test that lets go")
        });
        assert!(!handle.is_finished(), "not started");
        gate.open();
        started.recv().expect("a start");
        assert!(!handle.is_finished(), "running");
        go.send(7).expect("a task that waits");
        eventually("the task has ended", || handle.is_finished());
        assert!(handle.is_finished());
        assert_eq!(handle.join().expect("a result"), 7);
        let panicking = pool.spawn(|| panic!("planned"));
        eventually("the task has ended", || panicking.is_finished());
        assert!(panicking.join().is_err());
    }
}

/// The task runs whether its handle is dropped before, during or after.
fn drop_detaches(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let ledger = Arc::new(Ledger::new(3));
        let task = |n| {
            let ledger = Arc::clone(&ledger);
            move || ledger.item(n)
        };
        let gate = Gate::close(&pool);
        drop(pool.spawn(task(0)));
        gate.open();
        eventually("the result is dropped without a handle", || ledger.dropped() == 1);

        let (start, started) = mpsc::channel();
        let (go, gone) = mpsc::channel::<()>();
        let during = task(1);
        let handle = pool.spawn(move || {
            start.send(()).expect("a test that waits");
            gone.recv().expect("a test that lets go");
            during()
        });
        started.recv().expect("a start");
        drop(handle);
        go.send(()).expect("a task that waits");
        eventually("the result is dropped without a handle", || ledger.dropped() == 2);

        let handle = pool.spawn(task(2));
        eventually("the task has ended", || handle.is_finished());
        assert_eq!(ledger.dropped(), 2);
        drop(handle);
        assert_eq!(ledger.dropped(), 3);
        assert_counts(&pool, workers as u64 + 3, 0, 0);
        ledger.assert_each_once();
    }
}

/// A stop does not wait for a handle that is leaked.
fn forget(kind: Kind) {
    let pool = kind.pool(2);
    (0..100).for_each(|n| std::mem::forget(pool.spawn(move || n)));
    assert_counts(&pool, 100, 0, 0);
}

fn debug(kind: Kind) {
    let pool = kind.pool(1);
    let handle: JoinHandle<fn()> = pool.spawn(|| (|| ()) as fn());
    assert!(format!("{handle:?}").starts_with("JoinHandle"));
    assert_eq!(JoinError::Cancelled.to_string(), format!("{}", JoinError::Cancelled));
    assert!(!JoinError::Stopped.to_string().is_empty());
}

fn sent(kind: Kind) {
    let pool = kind.pool(2);
    let (send, receive) = mpsc::channel::<JoinHandle<usize>>();
    let sum = thread::spawn(move || {
        receive.iter().map(|handle| handle.join().expect("a result")).sum::<usize>()
    });
    for n in 0..2000 {
        send.send(pool.spawn(move || n)).expect("a thread that waits");
    }
    drop(send);
    assert_eq!(sum.join().expect("no panic"), 1999 * 1000);
}

fn shared(kind: Kind) {
    let pool = kind.pool(2);
    let gate = Gate::close(&pool);
    let handle = pool.spawn(|| 1);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| eventually("the task has ended", || handle.is_finished()));
        }
        gate.open();
    });
    assert_eq!(handle.join().expect("a result"), 1);
}

fn outlives_the_pool(kind: Kind) {
    for workers in WORKERS {
        let pool = kind.pool(workers);
        let ledger = Arc::new(Ledger::new(100));
        let mut handles: Vec<_> = (0..100)
            .map(|n| {
                let ledger = Arc::clone(&ledger);
                pool.spawn(move || ledger.item(n))
            })
            .collect();
        let panicked = pool.spawn(|| panic!("planned"));
        drop(pool);
        assert!(handles.iter().all(JoinHandle::is_finished));
        let half = handles.split_off(50);
        drop(half);
        assert_eq!(ledger.dropped(), 50);
        for (n, handle) in handles.into_iter().enumerate() {
            let result = if n % 2 == 0 { handle.join() } else { block_on(handle) };
            assert_eq!(result.expect("a result").number, n);
        }
        assert!(matches!(panicked.join(), Err(JoinError::Panicked(_))));
        ledger.assert_each_once();
    }
}

/// Every operation on a handle, at every moment of its task.
fn every_operation_at_every_moment(kind: Kind) {
    for workers in [1, 2] {
        let pool = kind.pool(workers);
        let mut rng = Rng::new(workers as u64);
        let counter = WakeCounter::new();
        for n in 0..5000_usize {
            let mut handle = pool.spawn(move || n);
            (0..rng.below(200)).for_each(|_| std::hint::spin_loop());
            match rng.below(5) {
                0 => drop(handle),
                1 => assert_eq!(handle.join().expect("a result"), n),
                2 => assert_eq!(block_on(handle).expect("a result"), n),
                3 => _ = poll_once(&mut handle, &counter.waker()),
                _ if poll_once(&mut handle, &counter.waker()).is_pending() => {
                    assert_eq!(handle.join().expect("a result"), n);
                }
                _ => {}
            }
        }
        assert_counts(&pool, 5000, 0, 0);
        eventually("no waker is kept", || counter.wakers() == 0);
    }
}

/// A thread that exits joins handles in a thread-local destructor. This runs in a child process, because
/// a panic there aborts.
fn joined_on_exit(kind: Kind) {
    #[derive(Default)]
    struct Exit(Vec<JoinHandle<usize>>, Option<Arc<Pool>>, Option<mpsc::Sender<usize>>);
    impl Drop for Exit {
        fn drop(&mut self) {
            let sum =
                self.0.drain(..).map(|handle| handle.join().expect("a result")).sum::<usize>();
            let pool = self.1.take().expect("a pool");
            let installed = pool.install(|| sum + 1);
            let sent = self.2.take().expect("a channel").send(installed);
            sent.expect("a test that listens");
        }
    }
    thread_local! {
        static EXIT: RefCell<Exit> = RefCell::default();
    }
    in_child("exit", &[], || {
        let pool = Arc::new(kind.pool(1));
        let (tell, told) = mpsc::channel();
        let gate = Gate::close(&pool);
        let inner = Arc::clone(&pool);
        let thread = thread::spawn(move || {
            let handles = (0..10).map(|n| inner.spawn(move || n)).collect();
            EXIT.set(Exit(handles, Some(Arc::clone(&inner)), Some(tell)));
            // The thread-local that waiting uses is created here, and is therefore destroyed earlier.
            drop(gate);
            (0..10).for_each(|_| inner.install(|| thread::sleep(Duration::from_millis(1))));
        });
        thread.join().expect("no panic");
        assert_eq!(told.recv().expect("a sum"), 46);
    });
}

/// A thread that exits, an ordinary one or a worker of another pool, submits a task in a thread-local
/// destructor.
fn spawned_on_exit(kind: Kind) {
    struct Exit(Arc<Pool>, mpsc::Sender<u32>);
    impl Drop for Exit {
        fn drop(&mut self) {
            let spawned = self.0.spawn(|| 20).join().expect("a result");
            let batch = self.0.spawn_batch([|| 10, || 11]).join().expect("results");
            let installed = self.0.install(|| spawned + batch.len() as u32 + 20);
            self.1.send(installed).expect("a test that listens");
        }
    }
    thread_local! {
        static EXIT: RefCell<Option<Exit>> = const { RefCell::new(None) };
    }
    fn wait_once(pool: &Pool) {
        pool.spawn(|| thread::sleep(Duration::from_millis(1))).join().expect("a result");
    }
    in_child("exit", &[], || {
        for workers in WORKERS {
            let pool = Arc::new(kind.pool(workers));
            let (tell, told) = mpsc::channel();
            // The thread-local that waiting uses is destroyed before the value, after it, or was never
            // created.
            for wait in [&[true, false], &[false, true], &[false, false]] {
                let [before, after] = *wait;
                let (inner, tell) = (Arc::clone(&pool), tell.clone());
                let exit = move || {
                    before.then(|| wait_once(&inner));
                    EXIT.set(Some(Exit(Arc::clone(&inner), tell)));
                    after.then(|| wait_once(&inner));
                };
                thread::spawn(exit.clone()).join().expect("no panic");
                let other = kind.pool(1);
                other.spawn(exit);
                other.stop();
            }
            drop(tell);
            assert_eq!(told.iter().collect::<Vec<_>>(), [42; 6]);
            assert_counts(&pool, 6 * 4 + 4, 0, 0);
        }
    });
}
