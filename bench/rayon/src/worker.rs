//! Measures one case in this process, and says what it found in a line of JSON.

use std::time::{Duration, Instant};

use harness::metric;
use harness::usage;
use rayon::ThreadPoolBuilder;
use serde::{Deserialize, Serialize};

use crate::args;
use crate::cases::{self, Case, Place, Plan, Run};

/// The fewest runs, for a case that takes longer than there is time. A guess.
const LEAST_RUNS: usize = 3;

/// The fraction of the time that the unmeasured runs before take.
const WARM_UP: u32 = 5;

/// What one process has found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Process {
    /// One value for each run, at least one.
    pub(crate) runs: Vec<f64>,
    /// The processor time of the whole process while it measured, verification included.
    pub(crate) cpu_milliseconds: f64,
    /// The context switches in the same time.
    pub(crate) switches: f64,
}

/// Runs a case, and returns what it found as a line of JSON.
pub(crate) fn run(args: &args::Run) -> Result<String, String> {
    let case = cases::all().into_iter().find(|case| case.id == args.case);
    let case = case.ok_or_else(|| format!("no case is named {}; `list` shows all", args.case))?;
    let threads = args.threads.get();
    ThreadPoolBuilder::new()
        .num_threads(threads)
        .build_global()
        .map_err(|error| format!("the pool could not be built: {error}"))?;
    let time = Duration::from_millis(args.millis);
    let mut run = (case.prepare)(&Plan { threads, time });
    let found = match case.place {
        Place::Outside => measure(&case, &mut run, time),
        Place::Inside => rayon::scope(|_| measure(&case, &mut run, time)),
    };
    let line = serde_json::to_string(&found).map_err(|error| error.to_string())?;
    Ok(line + "\n")
}

fn measure(case: &Case, run: &mut Run, time: Duration) -> Process {
    let once = case.metric.key == metric::CPU.key;
    if !once {
        let start = Instant::now();
        while {
            run();
            start.elapsed() < time / WARM_UP
        } {}
    }
    let mut runs = Vec::new();
    let before = usage::look();
    let start = Instant::now();
    while {
        runs.push(run());
        !once && (start.elapsed() < time || runs.len() < LEAST_RUNS)
    } {}
    let used = usage::look() - before;
    Process { runs, cpu_milliseconds: used.cpu.as_secs_f64() * 1e3, switches: used.switches as f64 }
}
