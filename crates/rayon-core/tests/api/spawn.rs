//! The contract of detached tasks: they run even if the pool is dropped, and their panics reach the panic
//! handler.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use heist_testkit::panics::panic_message;
use heist_testkit::test_path;
use rayon_core::{ThreadPoolBuilder, spawn, spawn_broadcast, spawn_fifo};

use crate::common::{add, child, is_child, with_built, with_pool};

/// Returns a builder whose panic handler sends the messages of panics.
fn telling(threads: usize) -> (ThreadPoolBuilder, mpsc::Receiver<String>) {
    let (tell, told) = mpsc::channel();
    let builder = ThreadPoolBuilder::new().num_threads(threads);
    (
        builder
            .panic_handler(move |payload| tell.send(panic_message(&*payload).to_owned()).unwrap()),
        told,
    )
}

#[test]
fn all_of_many() {
    for threads in [1, 2, 4] {
        let count = Arc::new(AtomicUsize::new(0));
        with_pool(threads, |pool| {
            for n in 0..1000 {
                let count = Arc::clone(&count);
                let nested = move || {
                    let again = Arc::clone(&count);
                    spawn(move || add(&again, 1));
                    spawn_fifo(move || add(&count, 1));
                };
                if n % 2 == 0 { pool.spawn(nested) } else { pool.spawn_fifo(nested) }
            }
        });
        assert_eq!(count.load(Ordering::Relaxed), 2000, "the pool ends when all have run");
    }
}

/// Tasks of a dropped pool may spawn further tasks.
#[test]
fn a_dropped_pool() {
    let (tell, told) = mpsc::channel();
    let (go, gate) = mpsc::channel::<()>();
    let pool = ThreadPoolBuilder::new().num_threads(2).build().expect("a pool");
    pool.spawn(move || {
        gate.recv().expect_err("dropped");
        let everywhere = tell.clone();
        spawn(move || {
            let (a, b) = rayon_core::join(|| 1, || 2);
            tell.send(a + b).unwrap();
        });
        spawn_broadcast(move |context| everywhere.send(10 * context.num_threads()).unwrap());
    });
    drop(pool);
    drop(go);
    let mut sums: Vec<_> = told.iter().collect();
    sums.sort_unstable();
    assert_eq!(sums, [3, 20, 20]);
}

/// A thread that holds a scope of a dropped pool still spawns tasks.
#[test]
fn a_dropped_pool_and_a_scope() {
    let (tell, told) = mpsc::channel();
    let (go, gate) = mpsc::channel::<()>();
    let pool = ThreadPoolBuilder::new().num_threads(2).build().expect("a pool");
    pool.spawn(move || {
        gate.recv().expect_err("dropped");
        rayon_core::scope(|scope| {
            let tell = &tell;
            std::thread::scope(|threads| {
                threads.spawn(move || {
                    scope.spawn(move |_| tell.send(rayon_core::current_num_threads()).unwrap())
                });
            });
        });
    });
    drop(pool);
    drop(go);
    assert_eq!(told.iter().collect::<Vec<_>>(), [2]);
}

/// A task of the pool drops the last reference to it.
#[test]
fn a_pool_that_drops_itself() {
    let (tell, ended) = mpsc::channel::<usize>();
    let builder = ThreadPoolBuilder::new()
        .num_threads(2)
        .exit_handler(move |index| tell.send(index).unwrap());
    let pool = Arc::new(builder.build().expect("a pool"));
    let last = Arc::clone(&pool);
    pool.spawn(move || drop(last));
    drop(pool);
    let mut ended: Vec<_> = ended.iter().collect();
    ended.sort_unstable();
    assert_eq!(ended, [0, 1]);
}

#[test]
fn panics_reach_the_handler() {
    for threads in [1, 2] {
        let (builder, told) = telling(threads);
        with_built(builder, |pool| {
            pool.spawn(|| panic!("spawn"));
            assert_eq!(told.recv().as_deref(), Ok("spawn"));
            pool.spawn_fifo(|| panic!("outside"));
            assert_eq!(told.recv().as_deref(), Ok("outside"));
            pool.install(|| spawn_fifo(|| panic!("fifo")));
            assert_eq!(told.recv().as_deref(), Ok("fifo"));
            pool.spawn_broadcast(|_| panic!("broadcast"));
            for _ in 0..threads {
                assert_eq!(told.recv().as_deref(), Ok("broadcast"));
            }
            assert_eq!(pool.install(|| 1), 1, "the pool lives on");
        });
        assert!(told.recv().is_err(), "nothing else, and the handler is gone with the pool");
    }
}

/// Panics of captured values reach the handler, too.
#[test]
fn panics_of_captured_values_reach_the_handler() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("bomb");
        }
    }
    let (builder, told) = telling(1);
    with_built(builder, |pool| {
        let bomb = Bomb;
        pool.spawn(move || {
            let _moved = bomb;
        });
        assert_eq!(told.recv().as_deref(), Ok("bomb"));
    });
}

#[test]
fn no_handler_aborts() {
    if is_child() {
        let pool = ThreadPoolBuilder::new().num_threads(1).build().expect("a pool");
        pool.spawn(|| panic!("unseen"));
        loop {
            std::thread::park();
        }
    } else {
        aborted(test_path!("no_handler_aborts"), "no panic handler");
    }
}

#[test]
fn a_handler_that_panics_aborts() {
    if is_child() {
        let builder = ThreadPoolBuilder::new().num_threads(1).panic_handler(|_| panic!("in turn"));
        let pool = builder.build().expect("a pool");
        pool.spawn(|| panic!("unseen"));
        loop {
            std::thread::park();
        }
    } else {
        aborted(test_path!("a_handler_that_panics_aborts"), "the panic handler panicked");
    }
}

#[test]
fn a_start_handler_that_panics_aborts() {
    if is_child() {
        let builder =
            ThreadPoolBuilder::new().num_threads(1).start_handler(|_| panic!("at the start"));
        let _pool = builder.build().expect("a pool");
        loop {
            std::thread::park();
        }
    } else {
        aborted(test_path!("a_start_handler_that_panics_aborts"), "no panic handler");
    }
}

fn aborted(test: &str, why: &str) {
    let output = child(test, &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(why) && said.contains("aborting"), "{said}");
    #[cfg(unix)]
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&output.status), Some(6));
}
