//! The contract of the API surface: every function can be called and every type has its `Debug` output.

use std::error::Error;
use std::sync::mpsc;
use std::thread;

use heist_testkit::test_path;
use rayon_core::{ThreadPoolBuilder, Yield};

use crate::common::{alone, with_built, with_pool};

#[test]
fn methods_of_a_pool() {
    with_pool(2, |pool| {
        let (tell, told) = mpsc::channel();
        assert_eq!(pool.install(|| 1), 1);
        assert_eq!(pool.join(|| 1, || 2), (1, 2));
        assert_eq!(pool.broadcast(|context| context.index()), [0, 1]);
        assert_eq!(pool.scope(|_| 3), 3);
        assert_eq!(pool.scope_fifo(|_| 4), 4);
        assert_eq!(pool.in_place_scope(|_| 5), 5);
        assert_eq!(pool.in_place_scope_fifo(|_| 6), 6);
        assert_eq!(pool.current_num_threads(), 2);
        assert_eq!(pool.current_thread_index(), None);
        assert_eq!(pool.current_thread_has_pending_tasks(), None);
        assert_eq!(pool.yield_now(), None);
        assert_eq!(pool.yield_local(), None);
        let (spawned, fifo) = (tell.clone(), tell.clone());
        pool.spawn(move || spawned.send(7).unwrap());
        pool.spawn_fifo(move || fifo.send(7).unwrap());
        pool.spawn_broadcast(move |_| tell.send(7).unwrap());
        assert_eq!(told.iter().collect::<Vec<_>>(), [7; 4]);
    });
}

#[test]
fn functions_inside() {
    with_pool(2, |pool| {
        pool.install(|| {
            let (tell, told) = mpsc::channel();
            assert_eq!(rayon_core::join(|| 1, || 2), (1, 2));
            assert_eq!(rayon_core::join_context(|_| 1, |_| 2), (1, 2));
            assert_eq!(rayon_core::broadcast(|context| context.num_threads()), [2, 2]);
            assert_eq!(rayon_core::scope(|_| 3), 3);
            assert_eq!(rayon_core::scope_fifo(|_| 4), 4);
            assert_eq!(rayon_core::in_place_scope(|_| 5), 5);
            assert_eq!(rayon_core::in_place_scope_fifo(|_| 6), 6);
            assert_eq!(rayon_core::current_num_threads(), 2);
            assert_eq!(rayon_core::current_thread_index(), pool.current_thread_index());
            assert!(rayon_core::current_thread_index().is_some_and(|index| index < 2));
            assert!(rayon_core::current_thread_has_pending_tasks().is_some());
            assert!(matches!(rayon_core::yield_now(), Some(Yield::Executed | Yield::Idle)));
            assert!(rayon_core::yield_local().is_some());
            let (spawned, fifo) = (tell.clone(), tell.clone());
            rayon_core::spawn(move || spawned.send(7).unwrap());
            rayon_core::spawn_fifo(move || fifo.send(7).unwrap());
            rayon_core::spawn_broadcast(move |_| tell.send(7).unwrap());
            let mut seen = 0;
            while seen < 4 {
                seen += told.try_iter().count();
                if rayon_core::yield_now() == Some(Yield::Idle) {
                    thread::yield_now();
                }
            }
        });
    });
}

#[test]
fn functions_outside() {
    alone(test_path!("functions_outside"), &[("RAYON_NUM_THREADS", "2")], || {
        assert_eq!(rayon_core::current_thread_index(), None);
        assert_eq!(rayon_core::current_thread_has_pending_tasks(), None);
        assert_eq!(rayon_core::yield_now(), None);
        assert_eq!(rayon_core::yield_local(), None);
        assert_eq!(rayon_core::join_context(|a| a.migrated(), |b| b.migrated()), (true, true));
        assert_eq!(rayon_core::join(|| 1, || 2), (1, 2));
        assert_eq!(rayon_core::current_num_threads(), 2);
        assert_eq!(rayon_core::broadcast(|context| context.index()), [0, 1]);
        assert!(rayon_core::scope(|_| rayon_core::current_thread_index()).is_some());
        assert!(rayon_core::scope_fifo(|_| rayon_core::current_thread_index()).is_some());
        assert_eq!(rayon_core::in_place_scope(|_| rayon_core::current_thread_index()), None);
        assert_eq!(rayon_core::in_place_scope_fifo(|_| rayon_core::current_thread_index()), None);
        let (tell, told) = mpsc::channel();
        let (spawned, fifo) = (tell.clone(), tell.clone());
        rayon_core::spawn(move || spawned.send(7).unwrap());
        rayon_core::spawn_fifo(move || fifo.send(7).unwrap());
        rayon_core::spawn_broadcast(move |_| tell.send(7).unwrap());
        assert_eq!(told.iter().collect::<Vec<_>>(), [7; 4]);
        assert!(rayon_core::max_num_threads() >= 255);
    });
}

#[test]
#[expect(deprecated, reason = "they can still be called")]
fn deprecated() {
    let configuration = rayon_core::Configuration::new()
        .num_threads(1)
        .thread_name(|index| format!("old-{index}"))
        .stack_size(1 << 20)
        .start_handler(|_| ())
        .exit_handler(|_| ())
        .panic_handler(|_| ())
        .breadth_first();
    assert_eq!(
        format!("{configuration:?}"),
        "ThreadPoolBuilder { num_threads: 1, use_current_thread: false, get_thread_name: Some(<closure>), \
         panic_handler: Some(<closure>), stack_size: Some(1048576), start_handler: Some(<closure>), \
         exit_handler: Some(<closure>), breadth_first: true }"
    );
    let pool = configuration.build().expect("a pool");
    let name = pool.install(|| thread::current().name().map(str::to_owned));
    assert_eq!(name.as_deref(), Some("old-0"));
    let pool = rayon_core::ThreadPool::new(rayon_core::Configuration::default().num_threads(2))
        .expect("a pool");
    assert_eq!(pool.current_num_threads(), 2);
}

#[test]
#[expect(deprecated, reason = "it can still be called")]
fn deprecated_initialize() {
    alone(test_path!("deprecated_initialize"), &[], || {
        rayon_core::initialize(rayon_core::Configuration::new().num_threads(3)).expect("the first");
        assert_eq!(rayon_core::current_num_threads(), 3);
        let again: Box<dyn Error> =
            rayon_core::initialize(rayon_core::Configuration::new()).unwrap_err();
        assert_eq!(again.to_string(), "The global thread pool has already been initialized.");
    });
}

#[test]
fn debug_output() {
    let builder = format!("{:?}", ThreadPoolBuilder::new());
    assert!(
        builder.contains("num_threads: 0") && builder.contains("panic_handler: None"),
        "{builder}"
    );
    with_built(ThreadPoolBuilder::new().num_threads(1), |pool| {
        assert!(format!("{pool:?}").starts_with("ThreadPool { num_threads: 1, id: "));
        pool.scope(|scope| assert!(format!("{scope:?}").starts_with("Scope { pool_id: ")));
        pool.scope_fifo(|scope| {
            assert!(format!("{scope:?}").starts_with("ScopeFifo { num_fifos: 1, pool_id: "))
        });
        let context = pool.broadcast(|context| format!("{context:?}"));
        assert!(context[0].starts_with("BroadcastContext { index: 0, num_threads: 1, pool_id: "));
        let (context, _) =
            pool.install(|| rayon_core::join_context(|context| format!("{context:?}"), |_| ()));
        assert!(context.starts_with("FnContext { migrated: false"));
    });
    let mut seen = String::new();
    let builder = ThreadPoolBuilder::new().num_threads(1).thread_name(|_| "x".to_owned());
    builder
        .spawn_handler(|thread| {
            seen = format!("{thread:?}");
            Ok(())
        })
        .build()
        .expect("a pool");
    assert!(
        seen.starts_with("ThreadBuilder { pool: ") && seen.contains("name: Some(\"x\")"),
        "{seen}"
    );
}
