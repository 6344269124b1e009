//! One case in this process: how long to warm up, how often to run.

use std::time::{Duration, Instant};

use rayon::ThreadPoolBuilder;

use crate::args;
use crate::built;
use crate::cases::{self, Case, Place, Plan, Run, Unit};
use crate::json::{list, number, text};
use crate::usage;

/// Of a case that takes longer than there is time. A guess.
const LEAST_RUNS: usize = 3;

/// The part of the time that goes before, unmeasured.
const WARM_UP: u32 = 5;

/// Runs a case, and says what it found in a line of JSON.
pub(crate) fn run(args: &args::Run) -> Result<String, String> {
    let case = cases::all().into_iter().find(|case| case.id == args.case);
    let case = case.ok_or_else(|| format!("no case is named {}; `list` shows all", args.case))?;
    ThreadPoolBuilder::new()
        .num_threads(args.threads)
        .build_global()
        .map_err(|error| format!("the pool could not be built: {error}"))?;
    let time = Duration::from_millis(args.millis);
    let mut run = (case.prepare)(&Plan { threads: args.threads, time });
    let found = match case.place {
        Place::Outside => measure(&case, &mut run, time),
        Place::Inside => rayon::scope(|_| measure(&case, &mut run, time)),
    };
    Ok(format!(
        "{{\"case\":{},\"package\":{},\"rayon_core\":{},\"threads\":{},\"unit\":{},\
         \"cpu_milliseconds\":{},\"switches\":{},\"samples\":{}}}\n",
        text(case.id),
        text(env!("CARGO_PKG_NAME")),
        text(&built::rayon_core()),
        args.threads,
        text(case.unit.key()),
        number(found.used.cpu.as_secs_f64() * 1e3),
        found.used.switches,
        list(found.samples.iter().copied().map(number)),
    ))
}

struct Found {
    samples: Vec<f64>,
    /// From the first sample to the last, with what checks them.
    used: usage::Usage,
}

fn measure(case: &Case, run: &mut Run, time: Duration) -> Found {
    let once = case.unit == Unit::CpuMillis;
    if !once {
        let start = Instant::now();
        while {
            run();
            start.elapsed() < time / WARM_UP
        } {}
    }
    let mut samples = Vec::new();
    let before = usage::look();
    let start = Instant::now();
    while {
        samples.push(run());
        !once && (start.elapsed() < time || samples.len() < LEAST_RUNS)
    } {}
    Found { samples, used: usage::look() - before }
}
