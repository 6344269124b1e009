//! Shows how a pipeline distributes twelve items, three of them long, over four workers.
//!
//! With round robin and without stealing, one worker gets all the long items, and the others are idle for
//! more than half of the time. With stealing, an idle worker takes over items that have not been started.
//! With weights, the long items are started first, and the short ones fill the gaps.
//!
//! The work of an item is a sleep, which lets four workers run at once on fewer processors. The example
//! draws one line for each worker. A unit of time is two columns wide: `3----|` is an item of three units.

use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use heist::Pool;
use heist::pipeline::{Distribution, Pipeline, Source};

/// How many units of time each item takes. Every fourth item is long: round robin gives them all to the
/// same worker.
const WORK: [usize; 12] = [1, 2, 1, 10, 3, 1, 4, 10, 1, 3, 2, 10];
const WORKERS: usize = 4;
const UNIT: Duration = Duration::from_millis(5);
/// How many columns a unit of time takes in the drawing.
const COLUMNS_PER_UNIT: f64 = 2.0;

/// An item that has been processed. The times are in units since the start of the pipeline.
struct Block {
    thread: String,
    start: f64,
    end: f64,
    units: usize,
}

fn thread_name(worker: usize) -> String {
    format!("worker {worker}")
}

/// Processes an item by sleeping, and records when and where that happened.
fn work(units: usize, began: Instant, done: &Mutex<Vec<Block>>) -> usize {
    let now = || began.elapsed().as_secs_f64() / UNIT.as_secs_f64();
    let start = now();
    thread::sleep(UNIT * units as u32);
    let end = now();
    let thread = thread::current().name().unwrap_or_default().to_owned();
    done.lock().unwrap_or_else(PoisonError::into_inner).push(Block { thread, start, end, units });
    units
}

/// Draws the items of one worker from left to right.
fn draw<'b>(blocks: impl Iterator<Item = &'b Block>) -> String {
    let column = |time: f64| (time * COLUMNS_PER_UNIT).round() as usize;
    let mut line = String::new();
    for block in blocks {
        let label = block.units.to_string();
        let start = column(block.start).max(line.len());
        let width = (column(block.end).saturating_sub(start + 1)).max(label.len());
        line += &" ".repeat(start - line.len());
        line += &format!("{label:-<width$}|");
    }
    line
}

/// Returns when the last worker was done.
fn makespan(blocks: &[Block]) -> f64 {
    blocks.iter().map(|block| block.end).fold(0.0, f64::max)
}

/// Returns the shortest possible makespan, by trying every assignment that could improve on `best`. `loads`
/// is what each worker has got so far. The search is fastest if `items` has the longest items first.
fn best_makespan(items: &[usize], loads: &mut [usize], mut best: usize) -> usize {
    let Some((&units, rest)) = items.split_first() else {
        return best.min(loads.iter().copied().max().unwrap_or(0));
    };
    for worker in 0..loads.len() {
        let load = loads[worker];
        // Workers with equal loads are interchangeable: trying the first of them is enough.
        if load + units < best && !loads[..worker].contains(&load) {
            loads[worker] += units;
            best = best_makespan(rest, loads, best);
            loads[worker] = load;
        }
    }
    best
}

/// Runs a pipeline and draws what each worker did. Returns whether the result was right.
fn show<S>(pool: &Pool, title: &str, pipeline: Pipeline<S>) -> bool
where
    S: Source<Item = usize> + Send,
{
    let done = Mutex::new(Vec::new());
    let began = Instant::now();
    let mut sum = 0;
    let report = match pipeline.map(|units| work(units, began, &done)).run(pool, |n| sum += n) {
        Ok(report) => report,
        Err(error) => {
            eprintln!("skew: {title}: {error}");
            return false;
        }
    };
    let mut blocks = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    blocks.sort_by(|a, b| a.start.total_cmp(&b.start));
    let right = sum == WORK.iter().sum();
    println!(
        "\n{title}: {:.1} units, {} stolen, {}",
        makespan(&blocks),
        report.steals,
        if right { "right" } else { "WRONG" },
    );
    for thread in (0..WORKERS).map(thread_name) {
        println!("  {thread}  {}", draw(blocks.iter().filter(|block| block.thread == thread)));
    }
    right
}

fn main() -> ExitCode {
    let pool = match Pool::builder().workers(WORKERS).thread_name(thread_name).build() {
        Ok(pool) => pool,
        Err(error) => {
            eprintln!("skew: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut longest_first = WORK;
    longest_first.sort_by(|a, b| b.cmp(a));
    let total: usize = WORK.iter().sum();
    let best = best_makespan(&longest_first, &mut [0; WORKERS], total);
    println!("{total} units of work on {WORKERS} workers: at best {best} units of time");

    let pipeline = |distribution| Pipeline::new(WORK).batch(1).distribute(distribution);
    use Distribution::{LoadAware, RoundRobin};

    let mut right = show(&pool, "RoundRobin, no stealing", pipeline(RoundRobin).steal(false));
    for distribution in Distribution::ALL {
        right &= show(&pool, &format!("{distribution:?}"), pipeline(distribution));
    }
    for distribution in [RoundRobin, LoadAware] {
        let weighed = pipeline(distribution).weigh(|&units| units, total);
        right &= show(&pool, &format!("{distribution:?}, weighed"), weighed);
    }
    if right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
