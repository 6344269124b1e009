//! Hammers every queue of this crate and prints what it saw.
//!
//! One owner pushes numbered items and pops some of them back; thieves take the rest, one by one
//! and in batches. At the end every number must have come out exactly once. `--quick` does a tenth.

mod hammer;
mod tally;

use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Instant;

use hammer::{Plan, Queue};

const QUEUES: [(&str, Queue); 4] = [
    ("bounded", Queue::Bounded(256)),
    ("growable", Queue::Growable),
    ("locked", Queue::Locked),
    ("injector", Queue::Injector(2)),
];

/// Prints a line. Did every item come out exactly once?
fn report(name: &str, plan: &Plan) -> bool {
    let start = Instant::now();
    let run = plan.run().expect("the system has that many threads");
    let (lost, doubled) = (run.tally.lost(), run.tally.doubled());
    println!(
        "{name:<10} {:>8} items {:>8} popped {:>7} handed back {:>8} stolen \
         {:>8} retries  {lost} lost {doubled} doubled {:>4.0} ms",
        plan.items,
        run.popped.load(Relaxed),
        run.handed_back.load(Relaxed),
        run.stolen.load(Relaxed),
        run.retries.load(Relaxed),
        start.elapsed().as_secs_f64() * 1e3,
    );
    lost == 0 && doubled == 0
}

fn main() -> ExitCode {
    let quick = std::env::args().any(|arg| arg == "--quick");
    let items: usize = if quick { 200_000 } else { 2_000_000 };
    let thieves = thread::available_parallelism().map_or(2, |n| n.get().max(2));
    println!("one owner, {thieves} thieves; every item must come out exactly once");
    let plan = |queue| Plan { queue, items, thieves, every: 7, pops: 11, batches: 4 };
    // All of them, also after one that fails.
    let wrong = QUEUES.into_iter().filter(|(name, queue)| !report(name, &plan(*queue))).count();
    if wrong == 0 {
        println!("ok: nothing was lost, nothing came out twice");
        ExitCode::SUCCESS
    } else {
        eprintln!("error: items were lost or doubled; please report this with the lines above");
        ExitCode::FAILURE
    }
}
