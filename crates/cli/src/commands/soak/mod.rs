//! `heist soak`: runs random test cases for a given time.
//!
//! A *shape* is a random case of [`heist_stress::random`]. Its seed and its number identify it: a failure
//! names both, and `--seed` with `--shape` runs the same case again.

mod counts;
mod progress;

use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, Instant};

use heist_stress::{Error, Watchdog, random};

use super::topo;
use crate::args::{Common, Soak};
use crate::exit::{self, Exit, Failure, Outcome};
use crate::{interrupt, out, style};
use counts::Counts;
use progress::Progress;

pub(crate) fn run(asked: &Soak, common: &Common) -> Outcome {
    // Some shapes use the global pool, which panics if it cannot start.
    topo::detect().workers.map_err(|why| exit::refused(&why))?;
    let seed = asked.seed.unwrap_or_else(|| RandomState::new().hash_one(0) % 1_000_000_000);
    let limit = Duration::from_secs_f64(asked.seconds.unwrap_or(asked.minutes * 60.0));
    let start = Instant::now();
    let mut counts = Counts::default();
    let mut progress = Progress::new(common, seed, limit);
    let watchdog = Watchdog::start(move |number| {
        let exit = failed(seed, number, "it hangs: it has not ended for a minute").tell();
        std::process::exit(exit as i32);
    });
    for number in asked.shape.unwrap_or(0).. {
        // At least one shape runs, however short the time is.
        if interrupt::seen() || counts.shapes() > 0 && start.elapsed() >= limit {
            break;
        }
        let number = asked.shape.unwrap_or(number);
        let watched = watchdog.watch(number);
        counts.add(random::subject_of(number), run_shape(seed, number)?);
        drop(watched);
        progress.show(&counts, start.elapsed());
    }
    drop((watchdog, progress));
    let exit = interrupt::exit();
    out::print(&counts.summary(exit, common.quiet, start.elapsed(), seed, style::out()))?;
    Ok(exit)
}

/// Runs a shape, and returns how many items, tasks or leaves it had.
fn run_shape(seed: u64, number: u64) -> Result<u64, Failure> {
    match exit::guarded(|| random::run(seed, number)) {
        Ok(Ok(count)) => Ok(count),
        Ok(Err(Error::Refused(why))) => {
            let failure = exit::refused(&why);
            let what = format!("{} of shape {number} of seed {seed}", failure.what);
            Err(Failure { what, ..failure })
        }
        Ok(Err(error)) => Err(failed(seed, number, &error.to_string())),
        Err(panic) => Err(failed(seed, number, &panic.why)),
    }
}

fn failed(seed: u64, number: u64, why: &str) -> Failure {
    Failure {
        exit: Exit::Wrong,
        what: format!("shape {number} of seed {seed} is wrong"),
        why: why.to_owned(),
        advice: format!(
            "Please report this message. To run the shape again, over and over:\n  heist soak --seed {seed} --shape {number}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_how_to_run_it_again() {
        let text = failed(7, 31, "1 lost").to_string();
        assert!(
            text.contains("1 lost") && text.contains("heist soak --seed 7 --shape 31"),
            "{text}"
        );
    }

    #[test]
    fn a_shape_of_each_subject_is_right() {
        for number in 0..5 {
            assert!(run_shape(1, number).is_ok(), "shape {number}");
        }
    }
}
