//! The contract of the global pool and of the environment.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use heist_testkit::{temp_dir, test_path};
use rayon_core::ThreadPoolBuilder;

use crate::common::{alone, child, is_child, panic_of};

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

#[test]
fn default_size() {
    alone(test_path!("default_size"), &[], || {
        assert_eq!(
            ThreadPoolBuilder::new().build().expect("a pool").current_num_threads(),
            cores()
        );
        assert_eq!(rayon_core::current_num_threads(), cores());
    });
}

#[test]
fn size_of_the_environment() {
    alone(
        test_path!("size_of_the_environment"),
        &[("RAYON_NUM_THREADS", "3"), ("RAYON_RS_NUM_CPUS", "5")],
        || {
            assert_eq!(rayon_core::current_num_threads(), 3);
            assert_eq!(
                ThreadPoolBuilder::new()
                    .num_threads(0)
                    .build()
                    .expect("a pool")
                    .current_num_threads(),
                3
            );
            assert_eq!(
                ThreadPoolBuilder::new()
                    .num_threads(2)
                    .build()
                    .expect("a pool")
                    .current_num_threads(),
                2
            );
        },
    );
}

#[test]
fn size_of_the_old_environment() {
    alone(test_path!("size_of_the_old_environment"), &[("RAYON_RS_NUM_CPUS", "3")], || {
        assert_eq!(rayon_core::current_num_threads(), 3);
    });
}

#[test]
fn not_a_number_in_the_environment() {
    alone(
        test_path!("not_a_number_in_the_environment"),
        &[("RAYON_NUM_THREADS", "many"), ("RAYON_RS_NUM_CPUS", "3")],
        || {
            assert_eq!(rayon_core::current_num_threads(), 3);
        },
    );
}

#[test]
fn zero_in_the_environment() {
    alone(
        test_path!("zero_in_the_environment"),
        &[("RAYON_NUM_THREADS", "0"), ("RAYON_RS_NUM_CPUS", "77")],
        || {
            assert_eq!(rayon_core::current_num_threads(), cores());
        },
    );
}

#[test]
fn zero_in_the_old_environment() {
    alone(test_path!("zero_in_the_old_environment"), &[("RAYON_RS_NUM_CPUS", "0")], || {
        assert_eq!(rayon_core::current_num_threads(), cores());
    });
}

#[test]
fn built_once() {
    alone(test_path!("built_once"), &[], || {
        let started = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&started);
        let build = |threads| ThreadPoolBuilder::new().num_threads(threads);
        let spawn = move |thread: rayon_core::ThreadBuilder| {
            count.fetch_add(1, Ordering::Relaxed);
            thread::spawn(|| thread.run());
            Ok(())
        };
        build(3).spawn_handler(spawn).build_global().expect("the first");
        assert_eq!(started.load(Ordering::Relaxed), 3);
        assert_eq!(rayon_core::current_num_threads(), 3);
        let error = build(2).build_global().expect_err("the second");
        assert_eq!(error.to_string(), "The global thread pool has already been initialized.");
        assert_eq!(
            format!("{error:?}"),
            "ThreadPoolBuildError { kind: GlobalPoolAlreadyInitialized }"
        );
        assert!(std::error::Error::source(&error).is_none());
        assert_eq!(rayon_core::current_num_threads(), 3);
    });
}

#[test]
fn used_before() {
    alone(test_path!("used_before"), &[], || {
        assert_eq!(rayon_core::join(|| 1, || 2), (1, 2));
        assert!(ThreadPoolBuilder::new().build_global().is_err());
    });
}

/// After a failed build there is no second attempt.
#[test]
fn failed_build() {
    alone(test_path!("failed_build"), &[], || {
        let refuse = |_| Err(std::io::Error::other("no"));
        let error =
            ThreadPoolBuilder::new().spawn_handler(refuse).build_global().expect_err("refused");
        assert_eq!(error.to_string(), "no");
        let error = ThreadPoolBuilder::new().build_global().expect_err("too late");
        assert_eq!(error.to_string(), "The global thread pool has already been initialized.");
        assert!(panic_of(rayon_core::current_num_threads).contains("global thread pool"));
    });
}

/// `build_global` waits for the threads to start, but not for those whose builders were dropped.
#[test]
fn dropped_thread_builders() {
    alone(test_path!("dropped_thread_builders"), &[], || {
        let spawn = |thread: rayon_core::ThreadBuilder| {
            if thread.index() > 0 {
                thread::spawn(|| thread.run());
            }
            Ok(())
        };
        ThreadPoolBuilder::new()
            .num_threads(2)
            .spawn_handler(spawn)
            .build_global()
            .expect("a pool");
        assert_eq!(rayon_core::join(|| 1, || 2), (1, 2));
    });
}

#[test]
fn with_the_current_thread() {
    alone(test_path!("with_the_current_thread"), &[], || {
        ThreadPoolBuilder::new()
            .num_threads(2)
            .use_current_thread()
            .build_global()
            .expect("a pool");
        assert_eq!(rayon_core::current_thread_index(), Some(0));
        assert!(!rayon_core::join_context(|a| a.migrated(), |_| ()).0);
        assert_eq!(rayon_core::broadcast(|context| context.index()), [0, 1]);
    });
}

/// The log has one line for each pool.
#[test]
fn log() {
    if is_child() {
        // The first thread writes the line, and it need not be the one that runs an `install`.
        let two = ThreadPoolBuilder::new().num_threads(2);
        two.build().expect("a pool").broadcast(|_| ());
        let one = ThreadPoolBuilder::new().num_threads(3).use_current_thread();
        one.build().expect("a pool").broadcast(|_| ());
        return;
    }
    let directory = temp_dir();
    let path = directory.path().join("log");
    let output =
        child(test_path!("log"), &[("HEIST_RAYON_LOG", path.to_str().expect("a plain name"))]);
    let lines = fs::read_to_string(&path);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = lines.expect("a log");
    let start = format!("rayon-core {} on heist ", env!("CARGO_PKG_VERSION"));
    for (line, threads) in lines.lines().zip([2, 3]) {
        assert!(
            line.starts_with(&start)
                && line.contains(&format!(": pool of {threads} threads, process ")),
            "{line}"
        );
    }
    assert_eq!(lines.lines().count(), 2, "{lines}");
}

#[test]
fn log_that_cannot_be_written() {
    alone(
        test_path!("log_that_cannot_be_written"),
        &[("HEIST_RAYON_LOG", "/no/such/directory/log")],
        || {
            assert_eq!(
                ThreadPoolBuilder::new().num_threads(1).build().expect("a pool").install(|| 1),
                1
            );
        },
    );
}
