//! Hammers every queue of this crate and prints what it saw.
//!
//! One owner pushes numbered items and pops some of them back; thieves take the rest, one by one
//! and in batches. At the end every number must have come out exactly once. `--quick` does a tenth.

use std::process::ExitCode;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize};
use std::thread;
use std::time::Instant;

use heist_deque::{Injector, Steal, bounded, growable, locked};

/// What became of the items of one run.
struct Tally {
    /// How often each number came out.
    seen: Vec<AtomicU8>,
    popped: AtomicUsize,
    /// By a deque that was full.
    handed_back: AtomicUsize,
    stolen: AtomicUsize,
    retries: AtomicUsize,
    done: AtomicBool,
}

impl Tally {
    fn new(items: usize) -> Self {
        Self {
            seen: (0..items).map(|_| AtomicU8::new(0)).collect(),
            popped: AtomicUsize::new(0),
            handed_back: AtomicUsize::new(0),
            stolen: AtomicUsize::new(0),
            retries: AtomicUsize::new(0),
            done: AtomicBool::new(false),
        }
    }

    fn mark(&self, item: usize, by: &AtomicUsize) {
        self.seen[item].fetch_add(1, Relaxed);
        by.fetch_add(1, Relaxed);
    }

    /// The line that is printed, and whether every item came out exactly once.
    fn report(&self, name: &str, start: Instant) -> bool {
        let lost = self.seen.iter().filter(|n| n.load(Relaxed) == 0).count();
        let doubled = self.seen.iter().filter(|n| n.load(Relaxed) > 1).count();
        println!(
            "{name:<10} {:>8} items {:>8} popped {:>7} handed back {:>8} stolen \
             {:>8} retries  {lost} lost {doubled} doubled {:>4.0} ms",
            self.seen.len(),
            self.popped.load(Relaxed),
            self.handed_back.load(Relaxed),
            self.stolen.load(Relaxed),
            self.retries.load(Relaxed),
            start.elapsed().as_secs_f64() * 1e3,
        );
        lost == 0 && doubled == 0
    }
}

/// A thief: steals one by one or in batches, by turns, until the owner is done and nothing is left.
fn rob(
    tally: &Tally,
    mut one: impl FnMut() -> Steal<usize>,
    mut batch: impl FnMut() -> Steal<usize>,
    mut mine: impl FnMut() -> Option<usize>,
) {
    for turn in 0_usize.. {
        let done = tally.done.load(Acquire);
        match if turn.is_multiple_of(4) { batch() } else { one() } {
            Steal::Success(item) => tally.mark(item, &tally.stolen),
            Steal::Retry => _ = tally.retries.fetch_add(1, Relaxed),
            Steal::Empty if done => return,
            Steal::Empty => thread::yield_now(),
        }
        while let Some(item) = mine() {
            tally.mark(item, &tally.stolen);
        }
    }
}

fn wait_for(threads: Vec<thread::ScopedJoinHandle<'_, ()>>) {
    let ended = threads.into_iter().try_for_each(|thread| thread.join());
    ended.expect("the threads of this program do not panic");
}

macro_rules! stress {
    ($name:literal, $items:expr, $thieves:expr, $new:expr, $push:expr) => {{
        let tally = Tally::new($items);
        let start = Instant::now();
        let (worker, stealer) = $new;
        thread::scope(|scope| {
            // The handles are kept to the end: a race detector forgets a thread without one.
            let mut thieves = Vec::new();
            for _ in 0..$thieves {
                let stealer = stealer.clone();
                let tally = &tally;
                thieves.push(scope.spawn(move || {
                    let (mine, _) = $new;
                    let batch = || stealer.steal_batch_and_pop(&mine);
                    rob(tally, || stealer.steal(), batch, || mine.pop());
                }));
            }
            for item in 0..$items {
                $push(&worker, item, &tally);
                // Runs of different lengths, so that the deque is now deep and now empty.
                for _ in 0..usize::from(item % 7 == 0) * (item % 11) {
                    let Some(item) = worker.pop() else { break };
                    tally.mark(item, &tally.popped);
                }
            }
            while let Some(item) = worker.pop() {
                tally.mark(item, &tally.popped);
            }
            tally.done.store(true, Release);
            wait_for(thieves);
        });
        tally.report($name, start)
    }};
}

fn stress_injector(items: usize, thieves: usize) -> bool {
    let tally = Tally::new(items);
    let start = Instant::now();
    let injector = Injector::new();
    thread::scope(|scope| {
        let rob = || {
            let (mine, _) = growable::new();
            let batch = || injector.steal_batch_and_pop(&mine);
            rob(&tally, || injector.steal(), batch, || mine.pop());
        };
        let thieves = (0..thieves).map(|_| scope.spawn(rob)).collect();
        let push = |part: usize| {
            let injector = &injector;
            move || (part..items).step_by(2).for_each(|item| injector.push(item))
        };
        let pushers = (0..2).map(|part| scope.spawn(push(part))).collect();
        wait_for(pushers);
        tally.done.store(true, Release);
        wait_for(thieves);
    });
    tally.report("injector", start)
}

fn main() -> ExitCode {
    let quick = std::env::args().any(|arg| arg == "--quick");
    let items: usize = if quick { 200_000 } else { 2_000_000 };
    let thieves = thread::available_parallelism().map_or(2, |n| n.get().max(2));
    println!("one owner, {thieves} thieves; every item must come out exactly once");

    let bounded = stress!(
        "bounded",
        items,
        thieves,
        bounded::new(256).expect("256 is a power of two"),
        |worker: &bounded::Worker<usize>, item, tally: &Tally| {
            if let Err(full) = worker.push(item) {
                tally.mark(full.into_inner(), &tally.handed_back);
            }
        }
    );
    let growable = stress!(
        "growable",
        items,
        thieves,
        growable::new(),
        |worker: &growable::Worker<usize>, item, _: &Tally| worker.push(item)
    );
    let locked = stress!(
        "locked",
        items,
        thieves,
        locked::new(),
        |worker: &locked::Worker<usize>, item, _: &Tally| worker.push(item)
    );
    let injector = stress_injector(items, thieves);

    if bounded && growable && locked && injector {
        println!("ok: nothing was lost, nothing came out twice");
        ExitCode::SUCCESS
    } else {
        eprintln!("error: items were lost or doubled; please report this with the lines above");
        ExitCode::FAILURE
    }
}
