use heist_sim::{Config, Machine, Report};

use crate as std;

fn simulate(main: impl FnOnce() + 'static) -> Report {
    heist_sim::run(Config::new(Machine::generic(2)), main).unwrap().1
}

#[test]
fn memory_that_threads_share_is_charged() {
    let report = simulate(|| {
        let cell = std::cell::UnsafeCell::new(1_u64);
        heist_sim::report::begin();
        let place = cell.get();
        // SAFETY: the cell is alive, and no other thread knows it.
        unsafe { std::ptr::write_volatile(place, 2) };
        // SAFETY: as above.
        assert_eq!(unsafe { std::ptr::read_volatile(cell.load()) }, 2);
        heist_sim::report::end();
    });
    assert_eq!(report.accesses, 4);
}

#[test]
fn threads_and_locks_are_virtual() {
    use std::sync::{Arc, Condvar, Mutex};

    std::thread_local!(static LOCAL: std::cell::Cell<u32> = const { std::cell::Cell::new(3) });
    let report = simulate(|| {
        assert_eq!(std::thread::available_parallelism().unwrap().get(), 2);
        let pair = Arc::new((Mutex::new(false), Condvar::new()));
        let of_thread = Arc::clone(&pair);
        let thread = std::thread::spawn(move || {
            *of_thread.0.lock().unwrap() = true;
            of_thread.1.notify_one();
            LOCAL.with(|local| local.replace(4))
        });
        let mut is_set = pair.0.lock().unwrap();
        while !*is_set {
            is_set = pair.1.wait(is_set).unwrap();
        }
        assert_eq!(thread.join().unwrap(), 3);
        LOCAL.with(|local| assert_eq!(local.get(), 3));
        let before = std::time::Instant::now();
        std::hint::spin_loop();
        assert!(before.elapsed() >= std::time::Duration::from_nanos(25));
    });
    assert!(report.split.pauses >= 25, "{:?}", report.split);
}
