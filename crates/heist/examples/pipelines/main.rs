//! Pipelines of every shape under load: all distributions, bounds and sources, with errors, panics and cancellations at
//! every place, alone and many at once, in tasks and in each other; and a long one, of which memory must know nothing.
//! For the sanitizers and the soak, mostly.
//!
//! Every result is compared with that of a loop, and no item may be lost, doubled or left behind. `--quick` does a
//! tenth; `--seed N` takes the same shapes again.

mod check;
mod die;
mod shape;
mod watch;
mod ways;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fs};

use die::Die;
use heist::pipeline::{Distribution, Pipeline};
use heist::{BuildError, Pool, Strategy};
use shape::{Rest, Shape};
use ways::Way;

/// How many shapes a part tries.
const SHAPES: u64 = 2000;
/// How many of them meet the same pool.
const SHAPES_OF_A_POOL: u64 = 20;
/// How many are run at once, where it is several.
const AT_ONCE: u64 = 4;
/// How many pools are stopped.
const STOPS: u64 = 1000;

/// The items of the long pipeline,
const STREAM: u64 = 100_000_000;
/// and how much more memory than a short one it may need. All that is in flight is 2 MiB, and a sanitizer keeps what is
/// freed for a while. If all items were kept, it would be 800.
const GROWTH_KIB: u64 = 64 << 10;

/// How much is to be done, and by which lot.
struct Task {
    die: Die,
    /// By how much to divide.
    less: u64,
}

/// What is wrong.
type Wrong = String;

impl Task {
    fn pool(&mut self) -> Result<Arc<Pool>, BuildError> {
        let workers = 1 + self.die.roll(4) as usize;
        let strategy = self.die.pick(&Strategy::ALL);
        Pool::builder().workers(workers).strategy(strategy).build().map(Arc::new)
    }

    /// Runs shapes on many pools, some at once.
    fn shapes(&mut self, way: Way) -> Result<String, Wrong> {
        let at_once = if matches!(way, Way::InTurn) { 1 } else { AT_ONCE };
        let pools = SHAPES / self.less / SHAPES_OF_A_POOL;
        for _ in 0..pools {
            let pool = self.pool().map_err(|error| error.to_string())?;
            for _ in 0..SHAPES_OF_A_POOL / at_once {
                let shapes = (0..at_once).map(|_| Shape::random(&mut self.die)).collect();
                let rests: Result<Vec<_>, _> =
                    way.run(&pool, shapes, watch::run).into_iter().collect();
                rests?.into_iter().try_for_each(Rest::settle)?;
            }
            pool.stop();
        }
        Ok(format!("{} pipelines on {pools} pools", pools * SHAPES_OF_A_POOL))
    }
}

fn on_pools_that_stop(task: &mut Task) -> Result<String, Wrong> {
    let stops = STOPS / task.less;
    for _ in 0..stops {
        let pool = task.pool().map_err(|error| error.to_string())?;
        let shape = Shape::random(&mut task.die).stopped(&mut task.die);
        watch::run(&shape, &pool)?.settle()?;
    }
    Ok(format!("{stops} pipelines, each on its own"))
}

/// A number of the process's memory in KiB, where the system tells.
fn memory(field: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(field))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Adds up so many numbers, batch by batch.
fn stream(pool: &Pool, count: u64, distribution: Distribution) -> Result<(), Wrong> {
    let batches = Pipeline::new(0..count).batch(1024).distribute(distribution);
    let mut sum = 0;
    let sums = batches.map_batch(|batch| batch.iter().sum::<u64>());
    let report = sums.run(pool, |part| sum += part).map_err(|error| error.to_string())?;
    if report.items == count && sum == count * (count - 1) / 2 {
        Ok(())
    } else {
        Err(format!("{sum} is not the sum of {count} numbers, by {distribution:?}"))
    }
}

fn long(task: &mut Task) -> Result<String, Wrong> {
    let pool = Pool::builder().workers(2).build().map_err(|error| error.to_string())?;
    let count = if task.less > 1 { STREAM / 50 } else { STREAM };
    // What a first run needs once and for all does not count.
    Distribution::ALL.iter().try_for_each(|way| stream(&pool, count / 100, *way))?;
    let memory = || Some([memory("VmRSS:")?, memory("VmHWM:")?]);
    let before = memory();
    stream(&pool, count, Distribution::Pull)?;
    Distribution::ALL.iter().try_for_each(|way| stream(&pool, count / 10, *way))?;
    let Some((before, [now, most])) = before.zip(memory()) else {
        return Ok(format!("{count} items; nothing is known of memory here"));
    };
    let grown = now.saturating_sub(before[0]).max(most.saturating_sub(before[1]));
    if grown > GROWTH_KIB {
        return Err(format!("memory grew by {grown} KiB over {count} items"));
    }
    Ok(format!("{count} items, {most} KiB of memory at most, {grown} more than before"))
}

type Part = fn(&mut Task) -> Result<String, Wrong>;

const PARTS: [(&str, Part); 6] = [
    ("long", long),
    ("alone", |task| task.shapes(Way::InTurn)),
    ("from several threads", |task| task.shapes(Way::FromThreads)),
    ("in tasks", |task| task.shapes(Way::InTasks)),
    ("in each other", |task| task.shapes(Way::InEachOther)),
    ("on pools that stop", on_pools_that_stop),
];

fn seed() -> Option<u64> {
    let mut arguments = env::args().skip_while(|argument| argument != "--seed").skip(1);
    match arguments.next() {
        Some(number) => number.parse().ok(),
        None => Some(
            SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |now| now.as_nanos() as u64 % 1_000_000),
        ),
    }
}

fn main() -> ExitCode {
    let Some(seed) = seed() else {
        eprintln!("usage: pipelines [--quick] [--seed NUMBER]");
        return ExitCode::from(2);
    };
    let less = if env::args().any(|argument| argument == "--quick") { 10 } else { 1 };
    println!("seed {seed}");
    watch::watched(|| run(Task { die: Die::new(seed), less }, seed))
}

fn run(mut task: Task, seed: u64) -> ExitCode {
    for (name, part) in PARTS {
        match part(&mut task) {
            Ok(done) => println!("{name}: {done}: right"),
            Err(wrong) => {
                eprintln!(
                    "pipelines: {name}: WRONG: {wrong}; `--seed {seed}` takes the same shapes"
                );
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
