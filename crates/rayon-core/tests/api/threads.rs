//! Threads of the user's: what a `spawn_handler` has set for a thread holds for every job that the thread runs.

#![cfg(target_os = "linux")]

use std::io;
use std::mem;
use std::thread;

use rayon_core::{ThreadBuilder, ThreadPoolBuilder};

const THREADS: usize = 4;
/// A little more patient than the test itself.
const NICE: i32 = 3;

/// Returns the processors on which the calling thread may run.
fn processors() -> Vec<usize> {
    // SAFETY: zero is a set without processors.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: the set is as large as the call says.
    let got = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) };
    assert_eq!(got, 0, "{}", io::Error::last_os_error());
    // SAFETY: the numbers are those of the set's bits.
    (0..8 * size_of_val(&set)).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect()
}

fn pin_to(processor: usize) -> io::Result<()> {
    // SAFETY: zero is a set without processors.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: the number is one that the system has returned.
    unsafe { libc::CPU_SET(processor, &mut set) };
    // SAFETY: the set is as large as the call says.
    let done = unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn nice() -> i32 {
    // SAFETY: it only asks, about the calling thread.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
}

fn be_nice(by: i32) -> i32 {
    let wanted = nice() + by;
    // SAFETY: it changes the calling thread only.
    assert_eq!(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, wanted) }, 0);
    wanted
}

#[test]
fn a_spawn_handler_pins_threads_and_sets_their_priority() {
    let (allowed, before) = (processors(), nice());
    if before + NICE > 19 {
        println!("skipped: the test has the lowest priority itself");
        return;
    }
    let place = |index: usize| allowed[index % allowed.len()];
    let start = |builder: ThreadBuilder| {
        let processor = place(builder.index());
        thread::Builder::new().spawn(move || {
            pin_to(processor).expect("a processor of this process");
            be_nice(NICE);
            builder.run();
        })?;
        Ok(())
    };
    let pool = ThreadPoolBuilder::new().num_threads(THREADS).spawn_handler(start).build().unwrap();
    for _ in 0..20 {
        let seen = pool.broadcast(|context| {
            let (a, b) = rayon_core::join(processors, processors);
            // Each half ran on one of the threads.
            assert!(a.len() == 1 && b.len() == 1);
            (context.index(), processors(), nice())
        });
        for (index, processors, nice) in seen {
            assert_eq!((processors, nice), (vec![place(index)], before + NICE));
        }
    }
}
