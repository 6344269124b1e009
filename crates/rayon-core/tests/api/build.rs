//! The contract of building: names, stacks, handlers and spawn handlers. A failed build leaves no thread
//! behind.

use std::error::Error;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use heist_testkit::panics::panic_message;
use rayon_core::{ThreadBuilder, ThreadPoolBuilder};

use crate::common::{add, panic_of, with_built, with_pool};

#[test]
fn names() {
    let builder =
        ThreadPoolBuilder::new().num_threads(3).thread_name(|index| format!("named-{index}"));
    with_built(builder, |pool| {
        let names = pool.broadcast(|_| thread::current().name().map(str::to_owned));
        let expected: Vec<_> = (0..3).map(|index| Some(format!("named-{index}"))).collect();
        assert_eq!(names, expected);
    });
    // The handler is called in order, and may have a state.
    let mut letters = 'a'..;
    let builder = ThreadPoolBuilder::new()
        .num_threads(3)
        .thread_name(move |_| letters.next().unwrap().to_string());
    with_built(builder, |pool| {
        let names = pool.broadcast(|_| thread::current().name().map(str::to_owned));
        assert_eq!(names.into_iter().flatten().collect::<String>(), "abc");
    });
    let unnamed = ThreadPoolBuilder::new().num_threads(1).build().expect("a pool");
    assert_eq!(unnamed.install(|| thread::current().name().map(str::to_owned)), None);
}

#[test]
fn stack_size() {
    /// Uses a kilobyte of stack or more for each level.
    fn dive(depth: usize) -> u8 {
        let room = std::hint::black_box([depth as u8; 1024]);
        if depth == 0 { room[0] } else { dive(depth - 1).wrapping_add(room[depth % 1024]) }
    }
    let builder = ThreadPoolBuilder::new().num_threads(1).stack_size(64 << 20);
    let end = with_built(builder, |pool| pool.install(|| dive(8 << 10)));
    assert_eq!(end, (0..=8_u32 << 10).fold(0, |sum: u8, depth| sum.wrapping_add(depth as u8)));
}

#[test]
fn too_many_threads_are_fewer() {
    let mut asked = 0;
    let builder = ThreadPoolBuilder::new().num_threads(usize::MAX);
    let pool = builder
        .spawn_handler(|_| {
            asked += 1;
            Ok(())
        })
        .build()
        .expect("a pool");
    assert_eq!(pool.current_num_threads(), rayon_core::max_num_threads());
    assert_eq!(asked, rayon_core::max_num_threads());
}

/// Each thread calls both handlers with its index, inside the pool.
#[test]
fn handlers() {
    let (tell, told) = mpsc::channel();
    let ended = tell.clone();
    let builder = ThreadPoolBuilder::new()
        .num_threads(3)
        .start_handler(move |index| {
            assert_eq!(rayon_core::current_thread_index(), Some(index));
            tell.send((index, "start")).unwrap();
        })
        .exit_handler(move |index| {
            assert_eq!(rayon_core::current_thread_index(), Some(index));
            ended.send((index, "exit")).unwrap();
        });
    with_built(builder, |pool| pool.broadcast(|_| ()).clear());
    for thread in 0..3 {
        assert_eq!(told.recv().map(|(_, what)| what), Ok("start"), "{thread}");
    }
    let mut exits: Vec<_> = told.iter().collect();
    exits.sort_unstable();
    assert_eq!(exits, [(0, "exit"), (1, "exit"), (2, "exit")]);
}

#[test]
fn handlers_that_panic() {
    let (tell, told) = mpsc::channel();
    let builder = ThreadPoolBuilder::new()
        .num_threads(1)
        .start_handler(|_| panic!("start"))
        .exit_handler(|_| panic!("exit"))
        .panic_handler(move |payload| tell.send(panic_message(&*payload).to_owned()).unwrap());
    with_built(builder, |pool| assert_eq!(pool.install(|| 1), 1));
    assert_eq!(told.iter().collect::<Vec<_>>(), ["start", "exit"]);
}

/// The spawn handler is called once for each thread, and not again after an error.
#[test]
fn refused() {
    for refused in 0..3 {
        let (started, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (start, end) = (Arc::clone(&started), Arc::clone(&ended));
        let mut threads: Vec<JoinHandle<()>> = Vec::new();
        let mut asked = 0;
        let error = ThreadPoolBuilder::new()
            .num_threads(3)
            .start_handler(move |_| add(&start, 1))
            .exit_handler(move |_| add(&end, 1))
            .spawn_handler(|thread| {
                asked += 1;
                if thread.index() == refused {
                    return Err(io::Error::other("no more threads"));
                }
                threads.push(thread::spawn(|| thread.run()));
                Ok(())
            })
            .build()
            .expect_err("one was refused");
        assert_eq!(error.to_string(), "no more threads");
        assert!(error.source().is_some_and(|source| source.is::<io::Error>()));
        assert!(format!("{error:?}").starts_with("ThreadPoolBuildError { kind: IOError("));
        assert_eq!((asked, threads.len()), (refused + 1, refused));
        threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
        assert_eq!(started.load(Ordering::Relaxed), refused);
        assert_eq!(ended.load(Ordering::Relaxed), refused);
    }
}

#[test]
fn a_name_that_panics() {
    let (tell, ended) = mpsc::channel();
    let builder = ThreadPoolBuilder::new()
        .num_threads(3)
        .thread_name(|index| if index == 2 { panic!("nameless") } else { String::new() })
        .exit_handler(move |index| tell.send(index).unwrap());
    assert_eq!(panic_of(|| builder.build()), "nameless");
    let mut ended: Vec<_> = ended.iter().collect();
    ended.sort_unstable();
    assert_eq!(ended, [0, 1], "the two that had started, and nobody holds the handlers");
}

#[test]
fn a_spawn_handler_that_panics() {
    let mut threads = Vec::new();
    let text = panic_of(|| {
        let spawn = |thread: ThreadBuilder| {
            assert!(thread.index() < 1, "one is enough");
            threads.push(thread::spawn(|| thread.run()));
            Ok(())
        };
        ThreadPoolBuilder::new().num_threads(2).spawn_handler(spawn).build()
    });
    assert_eq!(text, "one is enough");
    threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
}

/// A pool whose threads never start can be built and dropped.
#[test]
fn dropped_thread_builders() {
    let pool =
        ThreadPoolBuilder::new().num_threads(2).spawn_handler(|_| Ok(())).build().expect("a pool");
    assert_eq!(pool.current_num_threads(), 2);
    drop(pool);
}

/// A pool with some of its threads works.
#[test]
fn some_thread_builders_dropped() {
    thread::scope(|scope| {
        let spawn = |thread: ThreadBuilder| {
            if thread.index() == 1 {
                scope.spawn(|| thread.run());
            }
            Ok(())
        };
        let pool =
            ThreadPoolBuilder::new().num_threads(3).spawn_handler(spawn).build().expect("a pool");
        assert_eq!(pool.install(rayon_core::current_thread_index), Some(1));
        assert_eq!(pool.join(|| 1, || 2), (1, 2));
    });
}

/// Tasks that are spawned before the threads start wait for them.
#[test]
fn late_threads() {
    let mut late = Vec::new();
    let spawn = |thread| {
        late.push(thread);
        Ok(())
    };
    let pool =
        ThreadPoolBuilder::new().num_threads(2).spawn_handler(spawn).build().expect("a pool");
    let (tell, told) = mpsc::channel();
    pool.spawn(move || tell.send(1).unwrap());
    thread::scope(|scope| {
        late.into_iter().for_each(|thread| drop(scope.spawn(|| thread.run())));
        assert_eq!(told.recv(), Ok(1));
        assert_eq!(pool.broadcast(|context| context.index()), [0, 1]);
        drop(pool);
    });
}

#[test]
fn what_a_thread_builder_knows() {
    let mut seen = Vec::new();
    let builder = ThreadPoolBuilder::new()
        .num_threads(2)
        .stack_size(123_456)
        .thread_name(|index| index.to_string());
    let spawn = |thread: ThreadBuilder| {
        seen.push((thread.index(), thread.name().map(str::to_owned), thread.stack_size()));
        Ok(())
    };
    builder.spawn_handler(spawn).build().expect("a pool");
    assert_eq!(
        seen,
        [(0, Some("0".to_owned()), Some(123_456)), (1, Some("1".to_owned()), Some(123_456))]
    );
}

#[test]
fn scoped() {
    let (started, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let wrapper = |thread: ThreadBuilder| {
        started.fetch_add(1, Ordering::Relaxed);
        thread.run();
        ended.fetch_add(1, Ordering::Relaxed);
    };
    let result = ThreadPoolBuilder::new().num_threads(2).build_scoped(wrapper, |pool| {
        assert_eq!(ended.load(Ordering::Relaxed), 0);
        std::rc::Rc::new(pool.install(|| 6 * 7))
    });
    assert_eq!(*result.expect("a pool"), 42);
    assert_eq!((started.into_inner(), ended.into_inner()), (2, 2));
}

#[test]
fn scoped_and_panics() {
    let ended = AtomicUsize::new(0);
    let wrapper = |thread: ThreadBuilder| {
        thread.run();
        ended.fetch_add(1, Ordering::Relaxed);
    };
    let text = panic_of(|| {
        ThreadPoolBuilder::new().num_threads(2).build_scoped(wrapper, |_| panic!("within"))
    });
    assert_eq!(text, "within");
    assert_eq!(ended.into_inner(), 2);
}

/// A thread belongs to one pool at most.
#[test]
fn a_thread_of_two_pools() {
    with_pool(1, |pool| {
        let mut kept = None;
        let builder = ThreadPoolBuilder::new().num_threads(1);
        let other = builder
            .spawn_handler(|thread| {
                kept = Some(thread);
                Ok(())
            })
            .build()
            .expect("a pool");
        panic_of(|| pool.install(|| kept.take().map(ThreadBuilder::run)));
        drop(other);
        assert_eq!(
            pool.install(rayon_core::current_thread_index),
            Some(0),
            "it is still of the first"
        );
    });
}

/// A thread that has left its pool belongs to no pool.
#[test]
fn after_the_end() {
    let mut kept = None;
    let builder = ThreadPoolBuilder::new().num_threads(1);
    let pool = builder
        .spawn_handler(|thread| {
            kept = Some(thread);
            Ok(())
        })
        .build()
        .expect("a pool");
    drop(pool);
    kept.map(ThreadBuilder::run).expect("a thread");
    assert_eq!(rayon_core::current_thread_index(), None);
}
