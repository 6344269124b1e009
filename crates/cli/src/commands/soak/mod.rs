//! `heist soak`: random shapes, each checked, and each to be had again by its seed and its number.

mod book;
mod counts;
mod forks;
mod ground;
mod loops;
mod pipelines;
mod pools;
mod progress;
mod queues;
mod trouble;
mod watch;

// What the examples of the libraries hammer with, for sanitizers.
#[path = "../../../../deque/examples/stress/hammer.rs"]
mod hammer;
#[path = "../../../../deque/examples/stress/tally.rs"]
mod tally;

#[path = "../../../../heist/examples/pipelines/check.rs"]
mod check;
#[path = "../../../../heist/examples/pipelines/die.rs"]
mod die;
#[path = "../../../../heist/examples/pipelines/shape.rs"]
mod shape;
#[path = "../../../../heist/examples/pipelines/ways.rs"]
mod ways;

use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, Instant};

use super::topo;
use crate::args::{Common, Soak};
use crate::exit::{self, Exit, Failure, Outcome};
use crate::{interrupt, out, style};
use counts::Counts;
use die::Die;
use progress::Progress;
use trouble::Trouble;
use watch::Watch;

/// What panics say that are part of a shape.
const PLANNED: &str = "planned";

/// What a shape hammers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Queues,
    Pools,
    Forks,
    Loops,
    Pipelines,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Queues, Self::Pools, Self::Forks, Self::Loops, Self::Pipelines];

    /// Of a shape with that number: in turn.
    fn of(number: u64) -> Self {
        Self::ALL[(number % Self::ALL.len() as u64) as usize]
    }
}

pub(crate) fn run(asked: &Soak, common: &Common) -> Outcome {
    // Some shapes use the global pool, which panics if it cannot be.
    topo::detect().workers.map_err(|why| exit::refused(&why))?;
    let seed = asked.seed.unwrap_or_else(|| RandomState::new().hash_one(0) % 1_000_000_000);
    let limit = Duration::from_secs_f64(asked.minutes * 60.0);
    let start = Instant::now();
    let mut counts = Counts::default();
    let mut progress = Progress::new(common, seed, limit);
    let watch = Watch::start(move |number| {
        let exit = wrong(seed, number, "nothing has ended for a minute: it hangs").tell();
        std::process::exit(exit as i32);
    });
    for number in asked.shape.unwrap_or(0).. {
        // However short the time is, something is checked.
        if interrupt::seen() || counts.shapes() > 0 && start.elapsed() >= limit {
            break;
        }
        let number = asked.shape.unwrap_or(number);
        watch.begins(number);
        counts.add(Kind::of(number), attempt(seed, number)?);
        progress.show(&counts, start.elapsed());
    }
    drop((watch, progress));
    let exit = interrupt::exit();
    out::print(&counts.summary(exit, common.quiet, start.elapsed(), seed, style::out()))?;
    Ok(exit)
}

/// Runs a shape. How many items or tasks it had, or the failure that it is.
fn attempt(seed: u64, number: u64) -> Result<u64, Failure> {
    let outcome = exit::guarded(|| run_shape(seed, number))
        .unwrap_or_else(|panic| Err(Trouble::Wrong(panic.why)));
    outcome.map_err(|trouble| match trouble {
        Trouble::Wrong(why) => wrong(seed, number, &why),
        Trouble::Refused(why) => {
            let failure = exit::refused(&why);
            Failure {
                what: format!("{} of shape {number} of seed {seed}", failure.what),
                ..failure
            }
        }
    })
}

fn run_shape(seed: u64, number: u64) -> Result<u64, Trouble> {
    let mut die = Die::new(seed.rotate_left(32) ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    match Kind::of(number) {
        Kind::Queues => queues::run(&queues::random(&mut die, 20_000)),
        Kind::Pools => pools::Shape::random(&mut die, 2000).run(),
        Kind::Forks => forks::Shape::random(&mut die, 3000).run(),
        Kind::Loops => loops::Shape::random(&mut die, 20_000).run(),
        Kind::Pipelines => pipelines::Shape::random(&mut die).run(),
    }
}

fn wrong(seed: u64, number: u64, why: &str) -> Failure {
    Failure {
        exit: Exit::Wrong,
        what: format!("shape {number} of seed {seed} is wrong"),
        why: why.to_owned(),
        advice: format!(
            "Please report it, with this message. This runs it again, over and over:\n  heist soak --seed {seed} --shape {number}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_how_to_have_it_again() {
        let text = wrong(7, 31, "1 lost").to_string();
        assert!(
            text.contains("1 lost") && text.contains("heist soak --seed 7 --shape 31"),
            "{text}"
        );
    }

    #[test]
    fn kinds_take_turns() {
        assert_eq!(
            [0, 1, 2, 3, 4, 5].map(Kind::of),
            [Kind::Queues, Kind::Pools, Kind::Forks, Kind::Loops, Kind::Pipelines, Kind::Queues]
        );
    }

    #[test]
    fn a_shape_of_full_size_of_each_kind_is_right() {
        for number in 0..5 {
            assert_eq!(run_shape(1, number).map(|_| ()), Ok(()), "shape {number}");
        }
    }
}
