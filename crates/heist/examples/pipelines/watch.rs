//! What is under way, so that it can be said what hangs.

use std::collections::BTreeMap;
use std::process;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use heist::Pool;

use crate::shape::{Rest, Shape};

/// After this a pipeline hangs. Under a sanitizer, on a busy machine, one takes a second.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often to look.
const LOOK: Duration = Duration::from_secs(1);

/// Shapes and when they were started, by the order of their starts.
static UNDER_WAY: Mutex<BTreeMap<u64, (Shape, Instant)>> = Mutex::new(BTreeMap::new());

fn under_way() -> MutexGuard<'static, BTreeMap<u64, (Shape, Instant)>> {
    UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A shape that is under way until this is dropped.
struct Entry(u64);

impl Entry {
    fn new(shape: &Shape) -> Self {
        let mut under_way = under_way();
        let number = under_way.last_key_value().map_or(0, |(last, _)| last + 1);
        under_way.insert(number, (*shape, Instant::now()));
        Self(number)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        under_way().remove(&self.0);
    }
}

/// Runs a shape, under way meanwhile.
pub(crate) fn run(shape: &Shape, pool: &Pool) -> Result<Rest, String> {
    let _under_way = Entry::new(shape);
    shape.run(pool)
}

/// Runs the closure, and ends the process if one of its pipelines hangs.
pub(crate) fn watched<R>(f: impl FnOnce() -> R) -> R {
    let (done, is_done) = mpsc::channel::<()>();
    let watch = thread::spawn(move || {
        while is_done.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            let under_way = under_way();
            if under_way.values().any(|(_, start)| start.elapsed() > PATIENCE) {
                eprintln!("pipelines: WRONG: one of these hangs:");
                under_way.values().for_each(|(shape, start)| {
                    eprintln!("  {shape:?}, since {} s", start.elapsed().as_secs());
                });
                process::exit(1);
            }
        }
    });
    let result = f();
    drop(done);
    watch.join().expect("no panic");
    result
}
