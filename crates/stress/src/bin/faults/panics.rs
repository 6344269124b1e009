//! Panics where the tests of heist have none: in the code of executors, in the drop of a payload that nobody takes, and while
//! the thread panics already.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, RawWaker, RawWakerVTable, Waker};
use std::{pin::pin, thread};

use heist::pipeline::Pipeline;
use heist::{CancelToken, JoinError, Pool, parallel};

use crate::case::{Case, Size};
use crate::work::{STRATEGIES, fib};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("panics: of wakers", wakers),
        Case::new("panics: of the drop of a payload", payloads),
        Case::new("panics: of hooks whose payload panics", hooks),
        Case::new("panics: heist used while a thread panics", while_panicking),
        Case::aborted("panics: a destructor during a panic", "panic in a destructor", |_| {
            let pool = pool();
            let bomb = Bomb;
            let task = pool.spawn(move || {
                let _bomb = bomb;
                panic!("planned");
            });
            drop(task.join());
        }),
    ]
}

fn pool() -> Pool {
    Pool::builder().workers(2).build().expect("a pool")
}

/// Panics without a call of the panic hook.
fn planned() -> ! {
    resume_unwind(Box::new("planned"))
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        planned();
    }
}

/// What a waker panics at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Clone,
    Wake,
    Drop,
}

/// Returns a waker that panics there. Its memory is leaked.
fn waker(at: At) -> Waker {
    fn of(data: *const ()) -> At {
        // SAFETY: every waker of this table points to a leaked value.
        unsafe { *data.cast::<At>() }
    }
    const TABLE: RawWakerVTable = RawWakerVTable::new(
        |data| {
            if of(data) == At::Clone {
                planned();
            }
            RawWaker::new(data, &TABLE)
        },
        |data| {
            if of(data) == At::Wake {
                planned();
            }
        },
        |data| {
            if of(data) == At::Wake {
                planned();
            }
        },
        |data| {
            if of(data) == At::Drop {
                planned();
            }
        },
    );
    let data = Box::leak(Box::new(at)) as *const At;
    // SAFETY: the functions of the table only read what `data` points to, which lives for ever.
    unsafe { Waker::from_raw(RawWaker::new(data.cast(), &TABLE)) }
}

/// Whatever a waker does, the pool runs all tasks, and the handle can be used afterwards.
fn wakers(size: Size) {
    for strategy in STRATEGIES {
        let pool = Pool::builder().workers(2).strategy(strategy).build().expect("a pool");
        for round in 0..size.choose(50, 2_000) {
            for at in [At::Clone, At::Wake, At::Drop] {
                let (gate, opened) = std::sync::mpsc::channel::<()>();
                let mut handle = pin!(pool.spawn(move || {
                    let _ = opened.recv();
                    round
                }));
                let mut future = pin!(pool.spawn_future(async move { round }));
                let bad = std::mem::ManuallyDrop::new(waker(at));
                for _ in 0..2 {
                    let mut context = Context::from_waker(&bad);
                    let polled = catch_unwind(AssertUnwindSafe(|| {
                        handle.as_mut().poll(&mut context).is_ready()
                    }));
                    assert!(polled.is_err() || at != At::Clone);
                    let _ = catch_unwind(AssertUnwindSafe(|| {
                        future.as_mut().poll(&mut context).is_ready()
                    }));
                }
                drop(gate);
                assert_eq!(pool.spawn(|| fib(5)).join().expect("a result"), 5);
                // A good waker takes the place of the bad one.
                let result = catch_unwind(AssertUnwindSafe(|| heist::block_on(handle.as_mut())));
                match result {
                    Ok(result) => assert_eq!(result.expect("a result"), round),
                    Err(_) => assert_eq!(heist::block_on(handle).expect("a result"), round),
                }
            }
        }
        pool.stop();
        assert_balanced(&pool);
    }
}

fn assert_balanced(pool: &Pool) {
    let total = pool.stats().total;
    let ended = total.tasks_completed + total.panics + total.cancellations;
    assert_eq!(total.tasks_submitted, ended, "{total:?}");
}

/// A payload whose drop panics with another one, to some depth.
struct Payload(u32);

impl Drop for Payload {
    fn drop(&mut self) {
        if self.0 > 0 {
            resume_unwind(Box::new(Self(self.0 - 1)));
        }
    }
}

/// Nobody takes the payload, or the program drops it: the pool goes on, and its threads as well.
fn payloads(_: Size) {
    for strategy in STRATEGIES {
        let hook = |panic: heist::Panic| drop(panic);
        let pool = Pool::builder().workers(2).strategy(strategy).on_panic(hook).build();
        let pool = pool.expect("a pool");
        for depth in 0..3 {
            let throw = move || -> () { resume_unwind(Box::new(Payload(depth))) };
            let caught = |f: &mut dyn FnMut()| {
                if let Err(payload) = catch_unwind(AssertUnwindSafe(f)) {
                    std::mem::forget(payload);
                }
            };
            // Detached, in a batch, and taken.
            drop(pool.spawn(throw));
            drop(pool.spawn_batch([throw, throw]));
            if let Err(JoinError::Panicked(panic)) = pool.spawn(throw).join() {
                let mut panic = Some(panic);
                caught(&mut || panic.take().expect("once").resume());
            }
            if let Err(error) = pool.spawn_batch([throw, throw, throw]).join() {
                std::mem::forget(error);
            }
            // The second panic of a join, of a scope, of a loop, of a sort, and of a broadcast is dropped by heist.
            caught(&mut || _ = pool.join(throw, throw));
            caught(&mut || pool.scope(|scope| (0..5).for_each(|_| scope.spawn(move |_| throw()))));
            caught(&mut || pool.install(|| parallel::for_each(0..1_000, |_| throw())));
            caught(&mut || pool.install(|| parallel::map(0..1_000, |_| throw()).clear()));
            caught(&mut || drop(pool.broadcast(|_| throw())));
            caught(&mut || pool.install(throw));
            let token = CancelToken::new();
            caught(&mut || _ = token.run(|| pool.join(throw, throw)));
            // The error of a pipeline has the payload.
            let run = Pipeline::new(0..100).batch(3).map(move |_| throw()).run(&pool, |()| ());
            std::mem::forget(run);
            caught(&mut || {
                let run = Pipeline::new(0..100).batch(3).map(|n: i32| n).run(&pool, |_| throw());
                std::mem::forget(run);
            });
            drop(pool.spawn_future(async move { throw() }));
            assert_eq!(pool.install(|| fib(10)), 55);
        }
        pool.stop();
        assert_balanced(&pool);
    }
}

/// The hooks of a pool panic, with a payload whose drop panics.
fn hooks(_: Size) {
    for strategy in STRATEGIES {
        let builder = Pool::builder().workers(3).strategy(strategy);
        let pool = builder
            .on_thread_start(|_| resume_unwind(Box::new(Payload(2))))
            .on_thread_stop(|_| resume_unwind(Box::new(Payload(2))))
            .thread_name(|_| resume_unwind(Box::new(Payload(2))))
            .on_panic(|panic| {
                // A second panic while this one unwinds would end the process.
                std::mem::forget(panic);
                resume_unwind(Box::new(Payload(2)))
            })
            .build()
            .expect("a pool");
        for _ in 0..20 {
            drop(pool.spawn(|| -> () { resume_unwind(Box::new(Payload(1))) }));
        }
        assert_eq!(pool.install(|| fib(10)), 55);
        pool.stop();
        assert_balanced(&pool);
    }
}

/// A destructor that runs during a panic uses everything that heist has.
struct UsesHeist(Arc<Pool>, Arc<AtomicUsize>);

impl Drop for UsesHeist {
    fn drop(&mut self) {
        assert!(thread::panicking());
        let Self(pool, ran) = self;
        assert_eq!(heist::join(|| fib(8), || fib(7)), (21, 13));
        let count = AtomicUsize::new(0);
        heist::scope(|scope| {
            for _ in 0..10 {
                scope.spawn(|_| _ = count.fetch_add(1, SeqCst));
            }
        });
        assert_eq!(count.into_inner(), 10);
        assert_eq!(pool.spawn(|| 1).join().expect("a result"), 1);
        assert_eq!(pool.spawn_batch((0..10).map(|n| move || n)).join().expect("results").len(), 10);
        assert_eq!(parallel::map(0..1_000_u32, |n| n).len(), 1_000);
        let mut numbers: Vec<u32> = (0..3_000).rev().collect();
        parallel::sort(&mut numbers);
        assert!(numbers.is_sorted());
        let mut sum = 0;
        Pipeline::new(0..100).map(|n| n).run(pool, |n| sum += n).expect("no error");
        assert_eq!(sum, 4_950);
        // A pool of its own, which is dropped here.
        assert_eq!(Pool::builder().workers(2).build().expect("a pool").install(|| fib(8)), 21);
        // A panic that is caught within a destructor.
        assert!(catch_unwind(|| heist::join(|| planned(), || ())).is_err());
        assert!(pool.spawn(|| planned()).join().is_err());
        ran.fetch_add(1, SeqCst);
    }
}

fn while_panicking(size: Size) {
    let ran = Arc::new(AtomicUsize::new(0));
    let mut expected = 0;
    for strategy in STRATEGIES {
        for workers in [1, 2, 4] {
            let pool = Pool::builder().workers(workers).strategy(strategy).build().expect("a pool");
            let pool = Arc::new(pool);
            for _ in 0..size.choose(5, 100) {
                let new = || UsesHeist(Arc::clone(&pool), Arc::clone(&ran));
                // On a thread outside, in a task, in both halves of a join, and in a part of a scope.
                let (outside, inside, left, right, part) = (new(), new(), new(), new(), new());
                let _ = catch_unwind(AssertUnwindSafe(move || {
                    let _outside = outside;
                    planned()
                }));
                assert!(pool.spawn(move || throw(inside)).join().is_err());
                let both = || pool.join(|| throw(left), || throw(right));
                assert!(catch_unwind(AssertUnwindSafe(both)).is_err());
                let parts = || pool.scope(|scope| scope.spawn(move |_| throw(part)));
                assert!(catch_unwind(AssertUnwindSafe(parts)).is_err());
                expected += 5;
            }
        }
    }
    assert_eq!(ran.load(SeqCst), expected);
}

fn throw(value: UsesHeist) {
    let _value = value;
    planned()
}
