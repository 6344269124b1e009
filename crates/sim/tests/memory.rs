//! Shared memory: transfers, contention, locks, counted pointers and fences cost what the model says.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use heist_sim::atomic::{AtomicU64, fence, membarrier};
use heist_sim::mutex::Mutex;
use heist_sim::{Config, Costs, Machine, Report, thread, work};

#[global_allocator]
static ALLOCATOR: heist_sim::Allocator = heist_sim::Allocator;

/// The transfer of the generic machine.
const TRANSFER: f64 = 26.0;

fn simulate<R: 'static>(cores: usize, main: impl FnOnce() -> R + 'static) -> (R, Report) {
    heist_sim::run(Config::new(Machine::generic(cores)), main).unwrap()
}

/// Runs the same on `threads` cores at once. Returns the virtual time.
fn together(threads: usize, f: impl Fn(usize) + Send + Sync + 'static) -> u64 {
    let (time, _) = simulate(threads, move || {
        let f = Arc::new(f);
        let start = Arc::new(AtomicU64::new(0));
        let run = |n: usize| {
            let (f, start) = (Arc::clone(&f), Arc::clone(&start));
            move || {
                thread::pin(n);
                while start.load(Ordering::Acquire) == 0 {
                    heist_sim::pause();
                }
                f(n);
            }
        };
        let others: Vec<_> = (1..threads).map(|n| thread::spawn(run(n))).collect();
        // Until all have started.
        thread::sleep(Duration::from_millis(1));
        start.store(1, Ordering::Release);
        let before = heist_sim::now();
        f(0);
        let time = heist_sim::now() - before;
        others.into_iter().for_each(|thread| thread.join().unwrap());
        time
    });
    time
}

#[test]
fn a_hand_over_takes_less_than_two_transfers() {
    const TURNS: u64 = 10_000;
    let line = AtomicU64::new(0);
    let time = together(2, move |parity| {
        for turn in (parity as u64..TURNS).step_by(2) {
            while line.load(Ordering::Acquire) != turn {}
            line.store(turn + 1, Ordering::Release);
        }
    });
    let each = time as f64 / TURNS as f64;
    // Measured: 39 to 44 ns. The store has to invalidate, and the load to fetch.
    assert!((1.5 * TRANSFER..2.0 * TRANSFER).contains(&each), "{each}");
}

#[test]
fn a_contended_counter_is_as_fast_as_measured() {
    const COUNT: u64 = 20_000;
    let line = AtomicU64::new(0);
    let time = together(2, move |_| {
        for _ in 0..COUNT {
            line.fetch_add(1, Ordering::AcqRel);
        }
    });
    let each = time as f64 / (2 * COUNT) as f64;
    // Measured: 3.5 to 5.0 ns.
    assert!((3.0..5.5).contains(&each), "{each}");
}

#[test]
fn a_counter_that_is_not_contended_costs_a_read_modify_write() {
    const COUNT: u64 = 10_000;
    let time = together(1, move |_| {
        let line = AtomicU64::new(0);
        for _ in 0..COUNT {
            line.fetch_add(1, Ordering::AcqRel);
        }
    });
    let each = time as f64 / COUNT as f64;
    let costs = Costs::default();
    assert!((each - costs.rmw - costs.instructions).abs() < 0.1, "{each}");
}

#[test]
fn all_threads_get_their_share_of_a_lock() {
    const THREADS: usize = 8;
    let ((), report) = simulate(THREADS, || {
        let lock = Arc::new(Mutex::new(0_u64));
        let run = |n: usize| {
            let lock = Arc::clone(&lock);
            move || {
                thread::pin(n);
                for _ in 0..200 {
                    *lock.lock().unwrap() += 1;
                    work(500);
                }
            }
        };
        let threads: Vec<_> = (1..THREADS).map(|n| thread::spawn(run(n))).collect();
        run(0)();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(*lock.lock().unwrap(), 200 * THREADS as u64);
    });
    let ends: Vec<_> = report.threads.iter().map(|thread| thread.last_work).collect();
    let (first, last) = (ends.iter().min().unwrap(), ends.iter().max().unwrap());
    assert!(last - first < last / 2, "{ends:?}");
}

#[test]
fn a_lock_that_is_held_for_long_puts_others_to_sleep() {
    let ((), report) = simulate(2, || {
        let lock = Arc::new(Mutex::new(()));
        let held = lock.lock().unwrap();
        let theirs = Arc::clone(&lock);
        let other = thread::spawn(move || drop(theirs.lock().unwrap()));
        thread::sleep(Duration::from_millis(1));
        drop(held);
        other.join().unwrap();
    });
    // The sleep of the main thread, its join, and the other thread's wait for the lock.
    assert_eq!(report.parks, 3);
}

#[test]
fn counts_of_pointers_are_charged() {
    let ((), report) = simulate(1, || {
        let arc = heist_sim::arc::Arc::new(7);
        (0..100).for_each(|_| drop(heist_sim::arc::Arc::clone(&arc)));
    });
    assert_eq!(report.accesses, 201);
}

#[test]
fn a_pointer_can_become_one_to_a_trait_object() {
    simulate(1, || {
        let arc = heist_sim::arc::Arc::new(String::from("value"));
        let weak = heist_sim::arc::Arc::downgrade(&arc);
        let shown: heist_sim::arc::Arc<dyn std::fmt::Display> =
            heist_sim::arc::Arc::from_std(heist_sim::arc::Arc::into_std(arc) as _);
        assert_eq!(shown.to_string(), "value");
        assert!(weak.upgrade().is_some());
        drop(shown);
        assert!(weak.upgrade().is_none());
    });
}

#[test]
fn allocations_are_charged() {
    let ((), report) = simulate(1, || {
        (0..1_000).for_each(|n| drop(std::hint::black_box(Box::new(n))));
    });
    assert!(report.split.allocation >= 15_000, "{}", report.split.allocation);
}

#[test]
fn a_fence_waits_for_stores_and_a_barrier_interrupts_others() {
    let ((), report) = simulate(2, || {
        let other = thread::spawn(|| {
            thread::pin(1);
            for _ in 0..100 {
                work(1_000);
                fence(Ordering::SeqCst);
            }
        });
        thread::sleep(Duration::from_micros(50));
        membarrier();
        other.join().unwrap();
    });
    let costs = Costs::default();
    assert!(report.split.system_calls as f64 > costs.membarrier + costs.interrupt);
}
