//! How many near tasks run on their worker, on virtual cores: rounds of a loop over the same data, with a worker or a
//! key for each chunk.
//!
//! The same code gives the same counts, whatever the machine does meanwhile.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use heist::{Counters, Pool, Strategy};
use heist_sim::{Config, Machine};

#[global_allocator]
static ALLOCATOR: heist_sim::Allocator = heist_sim::Allocator;

/// The number of times that the loop goes over the data.
const ROUNDS: u64 = 20;
/// The number of chunks for each worker.
const CHUNKS: usize = 16;
/// The numbers of workers, and how long a task takes, in nanoseconds.
const SIZES: [(usize, u64); 5] = [(2, 2_000), (4, 500), (4, 5_000), (4, 50_000), (16, 5_000)];

/// Returns a pool whose workers have a core each. The calling thread has the last one.
fn pool(strategy: Strategy, workers: usize) -> Pool {
    heist_sim::thread::pin(workers);
    let builder = Pool::builder().workers(workers).strategy(strategy);
    builder.on_thread_start(heist_sim::thread::pin).build().expect("a pool that can be started")
}

/// Returns what the workers have counted after `rounds` has run on a pool.
fn measure(
    strategy: Strategy,
    workers: usize,
    rounds: impl Fn(&Pool) + Send + 'static,
) -> Counters {
    let machine = Machine::generic(workers + 1);
    let run = move || {
        let pool = pool(strategy, workers);
        rounds(&pool);
        pool.stop();
        pool.stats().total
    };
    heist_sim::run(Config::new(machine), run).expect("a simulation that ends").0
}

/// Checks that at least nine of ten tasks ran on their worker.
fn assert_kept(context: &str, workers: usize, counters: &Counters) {
    let (kept, taken) = (counters.near_tasks_kept, counters.near_tasks_taken);
    assert_eq!(kept + taken, ROUNDS * (CHUNKS * workers) as u64, "{context}");
    println!("{context}, {workers} workers: {kept} kept, {taken} taken");
    assert!(kept * 10 >= (kept + taken) * 9, "{context}, {workers} workers: {kept}, {taken}");
}

/// A scope whose parts are near workers, each round.
#[test]
fn parts_of_a_scope() {
    for strategy in Strategy::ALL {
        for (workers, length) in SIZES {
            let counters = measure(strategy, workers, move |pool| {
                for _ in 0..ROUNDS {
                    pool.install(|| {
                        heist::scope(|scope| {
                            for chunk in 0..CHUNKS * workers {
                                let part = scope.task().near(chunk);
                                drop(part.spawn_in(scope, move |_| heist_sim::work(length)));
                            }
                        });
                    });
                }
            });
            assert_kept(&format!("{strategy}, parts of {length} ns"), workers, &counters);
        }
    }
}

/// Tasks near workers from a thread outside, which joins them.
#[test]
fn tasks_from_outside() {
    for strategy in Strategy::ALL {
        for (workers, length) in SIZES {
            let counters = measure(strategy, workers, move |pool| {
                for _ in 0..ROUNDS {
                    let spawn =
                        |chunk| pool.task().near(chunk).spawn(move || heist_sim::work(length));
                    let tasks: Vec<_> = (0..CHUNKS * workers).map(spawn).collect();
                    tasks.into_iter().for_each(|task| task.join().unwrap());
                }
            });
            assert_kept(&format!("{strategy}, tasks of {length} ns"), workers, &counters);
        }
    }
}

/// Where the task of each key last ran, and how many ran on the same worker as the one before.
#[derive(Default)]
struct Places {
    last: Mutex<HashMap<u64, usize>>,
    same: AtomicU64,
    other: AtomicU64,
}

impl Places {
    /// Notes that the task of that key runs on the calling worker.
    fn note(&self, key: u64) {
        let worker = heist::worker_index().expect("a task runs on a worker");
        let Some(before) = self.last.lock().unwrap().insert(key, worker) else { return };
        let count = if before == worker { &self.same } else { &self.other };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Checks that at least nine of ten tasks ran on the worker on which the task of their key ran in the round before.
    fn assert_same(&self, context: &str, workers: usize) {
        let [same, other] = [&self.same, &self.other].map(|count| count.load(Ordering::Relaxed));
        assert_eq!(same + other, (ROUNDS - 1) * (CHUNKS * workers) as u64, "{context}");
        println!("{context}, {workers} workers: {same} on the same worker, {other} on another one");
        assert!(same * 10 >= (same + other) * 9, "{context}, {workers} workers: {same}, {other}");
    }
}

/// Returns the keys of the chunks: their numbers. `near_key` hashes them, so that some workers have more than others.
fn keys(workers: usize) -> Range<u64> {
    0..(CHUNKS * workers) as u64
}

/// A scope whose parts are near keys, each round.
#[test]
fn parts_with_keys() {
    for strategy in Strategy::ALL {
        for (workers, length) in SIZES {
            let places = Arc::new(Places::default());
            let of_parts = Arc::clone(&places);
            let counters = measure(strategy, workers, move |pool| {
                for _ in 0..ROUNDS {
                    let places = &of_parts;
                    let run = move |key| {
                        places.note(key);
                        heist_sim::work(length);
                    };
                    pool.install(|| {
                        heist::scope(|scope| {
                            for key in keys(workers) {
                                let part = scope.task().near_key(key);
                                drop(part.spawn_in(scope, move |_| run(key)));
                            }
                        });
                    });
                }
            });
            let context = format!("{strategy}, parts of {length} ns with keys");
            assert_kept(&context, workers, &counters);
            places.assert_same(&context, workers);
        }
    }
}

/// Tasks near keys from a thread outside, which joins them.
#[test]
fn tasks_with_keys() {
    for strategy in Strategy::ALL {
        for (workers, length) in SIZES {
            let places = Arc::new(Places::default());
            let of_tasks = Arc::clone(&places);
            let counters = measure(strategy, workers, move |pool| {
                for _ in 0..ROUNDS {
                    let spawn = |key| {
                        let places = Arc::clone(&of_tasks);
                        pool.task().near_key(key).spawn(move || {
                            places.note(key);
                            heist_sim::work(length);
                        })
                    };
                    let tasks: Vec<_> = keys(workers).map(spawn).collect();
                    tasks.into_iter().for_each(|task| task.join().unwrap());
                }
            });
            let context = format!("{strategy}, tasks of {length} ns with keys");
            assert_kept(&context, workers, &counters);
            places.assert_same(&context, workers);
        }
    }
}

/// A worker that runs long tasks keeps no near task waiting, however many near tasks there are.
#[test]
fn tasks_behind_a_long_one() {
    const LONG: u64 = 10_000_000;
    for strategy in Strategy::ALL {
        let run = move || {
            let pool = pool(strategy, 2);
            let done = Arc::new(AtomicU64::new(0));
            let long = pool.task().near(0).spawn(|| heist_sim::work(LONG));
            let start = heist_sim::now();
            let tasks: Vec<_> = (0..50)
                .map(|_| {
                    let done = Arc::clone(&done);
                    pool.task().near(0).spawn(move || {
                        heist_sim::work(1_000);
                        done.store(heist_sim::now() - start, Ordering::Relaxed);
                    })
                })
                .collect();
            tasks.into_iter().for_each(|task| task.join().unwrap());
            let took = done.load(Ordering::Relaxed);
            long.join().unwrap();
            pool.stop();
            took
        };
        let took = heist_sim::run(Config::new(Machine::generic(3)), run).expect("it ends").0;
        println!("{strategy}: {took} ns");
        assert!(took < LONG / 2, "{strategy}: {took} ns of virtual time");
    }
}
