//! Twelve pieces of work on four workers, three of them long: what becomes of them by how they are distributed.
//!
//! Dealt out in turn, all of the long ones are the same worker's, and the others have nothing to do for more than half
//! of the time. With stealing, only what has been started stays where it is. With weights, the long ones go first, and
//! what is left evens out.
//!
//! A piece of work is a sleep, so that four workers can do with fewer cores. In the pictures, a unit of time is two
//! columns, and a piece is as wide as it was long: `3----|` is one of three units.

use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use heist::Pool;
use heist::pipeline::{Distribution, Pipeline, Source};

/// How many units each piece takes. In turn, each long one is the fourth.
const WORK: [usize; 12] = [1, 2, 1, 10, 3, 1, 4, 10, 1, 3, 2, 10];
const WORKERS: usize = 4;
const UNIT: Duration = Duration::from_millis(5);
/// Of a picture, for each unit.
const COLUMNS: f64 = 2.0;

/// A piece of work that has been done: by whom, and from when until when, in units.
struct Block {
    lane: String,
    start: f64,
    end: f64,
    units: usize,
}

fn lane(worker: usize) -> String {
    format!("worker {worker}")
}

/// Does it, and keeps a record.
fn work(units: usize, began: Instant, done: &Mutex<Vec<Block>>) -> usize {
    let now = || began.elapsed().as_secs_f64() / UNIT.as_secs_f64();
    let start = now();
    thread::sleep(UNIT * units as u32);
    let end = now();
    let lane = thread::current().name().unwrap_or("a thread").to_owned();
    done.lock().unwrap_or_else(PoisonError::into_inner).push(Block { lane, start, end, units });
    units
}

/// What one worker did, from left to right.
fn draw<'b>(blocks: impl Iterator<Item = &'b Block>) -> String {
    let column = |time: f64| (time * COLUMNS).round() as usize;
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

/// When the last worker was through.
fn makespan(blocks: &[Block]) -> f64 {
    blocks.iter().map(|block| block.end).fold(0.0, f64::max)
}

/// The fewest units in which it can be done, the work given longest first: tries every way that could be better.
fn best(work: &[usize], loads: &mut [usize], least: usize) -> usize {
    let Some((&units, rest)) = work.split_first() else {
        return least.min(loads.iter().copied().max().unwrap_or(0));
    };
    let mut least = least;
    for worker in 0..loads.len() {
        let load = loads[worker];
        // Of workers that have the same, one stands for all.
        if load + units < least && !loads[..worker].contains(&load) {
            loads[worker] += units;
            least = best(rest, loads, least);
            loads[worker] = load;
        }
    }
    least
}

/// Runs a pipeline, and shows what each worker did when. Was the result right?
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
    for lane in (0..WORKERS).map(lane) {
        println!("  {lane}  {}", draw(blocks.iter().filter(|block| block.lane == lane)));
    }
    right
}

fn main() -> ExitCode {
    let pool = match Pool::builder().workers(WORKERS).thread_name(lane).build() {
        Ok(pool) => pool,
        Err(error) => {
            eprintln!("skew: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut longest_first = WORK;
    longest_first.sort_by(|a, b| b.cmp(a));
    let total: usize = WORK.iter().sum();
    let best = best(&longest_first, &mut [0; WORKERS], total);
    println!("{total} units of work on {WORKERS} workers: at best {best} units of time");

    let dealt = |distribution| Pipeline::new(WORK).batch(1).distribute(distribution);
    use Distribution::{LoadAware, RoundRobin};

    let mut right = show(&pool, "RoundRobin, no stealing", dealt(RoundRobin).steal(false));
    for distribution in Distribution::ALL {
        right &= show(&pool, &format!("{distribution:?}"), dealt(distribution));
    }
    for distribution in [RoundRobin, LoadAware] {
        let weighed = dealt(distribution).weigh(|&units| units, total);
        right &= show(&pool, &format!("{distribution:?}, weighed"), weighed);
    }
    if right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
