//! Virtual threads: starting, joining, parking, time, thread-locals and panics.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use heist_sim::time::Instant;
use heist_sim::{Config, Machine, Report, RunError, WaitsFor, thread, work};

#[global_allocator]
static ALLOCATOR: heist_sim::Allocator = heist_sim::Allocator;

fn simulate<R: 'static>(cores: usize, main: impl FnOnce() -> R + 'static) -> (R, Report) {
    heist_sim::run(Config::new(Machine::generic(cores)), main).unwrap()
}

#[test]
fn threads_run_at_the_same_virtual_time_on_their_own_cores() {
    let (_, report) = simulate(4, || {
        let threads: Vec<_> = (0..3).map(|_| thread::spawn(|| work(1_000_000))).collect();
        work(1_000_000);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    assert!((1_000_000..1_200_000).contains(&report.elapsed), "{}", report.elapsed);
    assert!((3_900_000..4_100_000).contains(&report.split.work));
}

#[test]
fn threads_that_share_a_core_take_turns() {
    let (both, report) = simulate(1, || {
        let other = thread::spawn(|| (0..1_000).for_each(|_| busy(10_000)));
        (0..1_000).for_each(|_| busy(10_000));
        other.join().unwrap();
        heist_sim::now()
    });
    assert!(both > 19_000_000, "{both}");
    assert!(report.switches > 4, "a quantum is shorter than the work");
}

/// Works, and touches memory, which is where a thread can be preempted.
fn busy(nanoseconds: u64) {
    work(nanoseconds);
    heist_sim::atomic::fence(Ordering::SeqCst);
}

#[test]
fn a_pinned_thread_stays_on_its_core() {
    let (cores, _) = simulate(4, || {
        let pinned = thread::spawn(|| {
            thread::pin(2);
            let before = thread::core();
            thread::sleep(Duration::from_millis(1));
            (before, thread::core())
        });
        pinned.join().unwrap()
    });
    assert_eq!(cores, (2, 2));
}

#[test]
fn an_unpark_that_comes_first_is_remembered() {
    simulate(2, || {
        thread::current().unpark();
        thread::park();
    });
}

#[test]
fn a_parked_thread_wakes_after_the_latency() {
    let (woken, _) = simulate(2, || {
        let sleeper = thread::spawn(|| {
            thread::park();
            heist_sim::now()
        });
        thread::sleep(Duration::from_millis(1));
        let before = heist_sim::now();
        sleeper.thread().unpark();
        sleeper.join().unwrap() - before
    });
    assert!((6_000..7_000).contains(&woken), "{woken}");
}

#[test]
fn a_limited_park_ends() {
    let (slept, _) = simulate(1, || {
        let start = Instant::now();
        thread::park_timeout(Duration::from_millis(3));
        start.elapsed()
    });
    assert!(slept >= Duration::from_millis(3) && slept < Duration::from_millis(4), "{slept:?}");
}

/// Counts its drops.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

heist_sim::thread_local! {
    static KEPT: Cell<Option<Dropped>> = const { Cell::new(None) };
}

#[test]
fn thread_locals_are_separate_and_dropped_with_their_thread() {
    let drops = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&drops);
    simulate(2, move || {
        let theirs = Arc::clone(&counted);
        let other = thread::spawn(move || {
            KEPT.with(|kept| kept.set(Some(Dropped(theirs))));
        });
        other.join().unwrap();
        assert_eq!(counted.load(Ordering::Relaxed), 1);
        assert!(KEPT.with(|kept| kept.take().is_none()));
    });
    assert_eq!(drops.load(Ordering::Relaxed), 1);
    assert!(KEPT.try_with(|_| ()).is_err(), "there are none outside");
}

#[test]
fn the_panic_of_a_thread_reaches_its_joiner() {
    let (message, _) = simulate(2, || {
        let panicking = thread::spawn(|| std::panic::resume_unwind(Box::new("oh")));
        let payload = thread::JoinHandle::<()>::join(panicking).unwrap_err();
        payload.downcast_ref::<&str>().map(|message| (*message).to_owned())
    });
    assert_eq!(message.as_deref(), Some("oh"));
}

#[test]
fn the_panic_of_the_main_thread_reaches_the_caller() {
    let run = || simulate(1, || std::panic::resume_unwind(Box::new("main")));
    let payload = catch_unwind(AssertUnwindSafe(|| drop::<((), Report)>(run()))).unwrap_err();
    assert_eq!(payload.downcast_ref(), Some(&"main"));
    simulate(1, || work(1));
}

#[test]
fn a_deadlock_names_the_threads_that_sleep() {
    let result = heist_sim::run(Config::new(Machine::generic(2)), || {
        let parked = thread::Builder::new().name("parked".into()).spawn(thread::park).unwrap();
        parked.join().unwrap();
    });
    let Err(RunError::Deadlock { blocked, .. }) = &result else { panic!("{result:?}") };
    let blocked: Vec<_> = blocked.iter().map(|b| (b.name.as_str(), b.waits_for)).collect();
    assert_eq!(blocked, [("main", WaitsFor::Join), ("parked", WaitsFor::Unpark)]);
    assert!(result.unwrap_err().to_string().contains("parked is parked"));
}

#[test]
fn an_endless_loop_ends_at_the_limit() {
    let config =
        Config { time_limit: Duration::from_millis(1), ..Config::new(Machine::generic(2)) };
    let result = heist_sim::run(config, || {
        let flag = Arc::new(heist_sim::atomic::AtomicBool::new(false));
        let theirs = Arc::clone(&flag);
        thread::spawn(move || while !theirs.load(Ordering::Relaxed) {});
        while !flag.load(Ordering::Relaxed) {}
    });
    assert!(matches!(result, Err(RunError::TimeLimit { .. })));
}

#[test]
fn threads_that_outlive_the_main_thread_are_named() {
    let ((), report) = simulate(2, || {
        drop(thread::Builder::new().name("left".into()).spawn(thread::park));
    });
    assert_eq!(report.left, ["left"]);
}

#[test]
fn a_notification_wakes_one_waiting_thread() {
    let (woken, report) = simulate(4, || {
        let pair = Arc::new((heist_sim::mutex::Mutex::new(0), heist_sim::condvar::Condvar::new()));
        let wait = |_| {
            let pair = Arc::clone(&pair);
            thread::spawn(move || {
                let mut turns = pair.0.lock().unwrap();
                while *turns == 0 {
                    turns = pair.1.wait(turns).unwrap();
                }
                *turns -= 1;
                heist_sim::now()
            })
        };
        let waiting: Vec<_> = (0..2).map(wait).collect();
        let mut notified = Vec::new();
        for _ in 0..2 {
            thread::sleep(Duration::from_millis(1));
            notified.push(heist_sim::now());
            *pair.0.lock().unwrap() += 1;
            pair.1.notify_one();
        }
        // Nobody waits.
        pair.1.notify_all();
        let woken = waiting.into_iter().map(|thread| thread.join().unwrap());
        woken.zip(notified).map(|(woken, notified)| woken - notified).collect::<Vec<u64>>()
    });
    // The latency of a wake-up, after the lock and before the other thread's turn.
    assert!(woken.iter().all(|time| (6_000..9_000).contains(time)), "{woken:?}");
    assert!(report.wakes >= 2);
}

#[test]
fn all_waiting_threads_are_notified() {
    simulate(4, || {
        let pair =
            Arc::new((heist_sim::mutex::Mutex::new(false), heist_sim::condvar::Condvar::new()));
        let wait = |_| {
            let pair = Arc::clone(&pair);
            thread::spawn(move || {
                let mut is_set = pair.0.lock().unwrap();
                while !*is_set {
                    is_set = pair.1.wait(is_set).unwrap();
                }
            })
        };
        let waiting: Vec<_> = (0..3).map(wait).collect();
        thread::sleep(Duration::from_millis(1));
        *pair.0.lock().unwrap() = true;
        pair.1.notify_all();
        waiting.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn a_wait_for_a_notification_can_be_limited() {
    let (waited, _) = simulate(2, || {
        let (lock, condvar) =
            (heist_sim::mutex::Mutex::new(()), heist_sim::condvar::Condvar::new());
        let before = heist_sim::now();
        let limit = Duration::from_micros(100);
        let (guard, result) = condvar.wait_timeout(lock.lock().unwrap(), limit).unwrap();
        assert!(result.timed_out());
        drop(guard);
        // The thread that has given up is not among those that can be woken.
        condvar.notify_one();
        heist_sim::now() - before
    });
    assert!((100_000..120_000).contains(&waited), "{waited}");
}

#[test]
fn a_missing_notification_is_a_deadlock() {
    let config = Config::new(Machine::generic(1));
    let error = heist_sim::run(config, || {
        let (lock, condvar) =
            (heist_sim::mutex::Mutex::new(()), heist_sim::condvar::Condvar::new());
        drop(condvar.wait(lock.lock().unwrap()));
    });
    let Err(RunError::Deadlock { blocked, .. }) = error else { panic!("a deadlock") };
    assert_eq!(blocked[0].waits_for, WaitsFor::Notification);
}

#[test]
fn a_closure_is_called_once_and_awaited() {
    let (calls, _) = simulate(4, || {
        let once = Arc::new((heist_sim::once::Once::new(), AtomicUsize::new(0)));
        let call = |_| {
            let once = Arc::clone(&once);
            thread::spawn(move || {
                once.0.call_once(|| {
                    // Long enough for the others to come meanwhile.
                    thread::sleep(Duration::from_millis(1));
                    once.1.fetch_add(1, Ordering::Relaxed);
                });
                assert!(once.0.is_completed());
                once.1.load(Ordering::Relaxed)
            })
        };
        let threads: Vec<_> = (0..3).map(call).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(calls, [1, 1, 1]);
}
