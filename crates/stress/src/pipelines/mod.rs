//! Pipelines: all distributions, bounds and sources, with errors, panics and cancellations at every place,
//! alone and many at once, in tasks and inside of each other; and one long stream whose memory must not
//! grow.

mod arrangement;
mod case;
mod check;
mod on_pool;
mod stream;

use std::sync::Arc;

use heist::{BuildError, Pool, Strategy};

use crate::rng::Rng;
use crate::{Error, Monitor, Size};
use arrangement::Arrangement;
use case::Case;
pub(crate) use on_pool::OnPool;

/// How many pipelines each part runs in the normal size.
const PIPELINES: u64 = 2000;
/// How many pipelines run on the same pool.
const PIPELINES_PER_POOL: u64 = 20;
/// How many pipelines run at once in the parts that run several.
const AT_ONCE: u64 = 4;
/// How many pools are stopped under a pipeline in the normal size.
const STOPS: u64 = 1000;

/// Runs the long stream, then random pipelines in every arrangement.
pub(crate) fn run(seed: u64, size: Size, monitor: &Monitor<'_>) -> Result<(), Error> {
    let mut rng = Rng::new(seed);
    monitor.report(&format!("long stream: {}", stream::run(size)?));
    for arrangement in Arrangement::ALL {
        let pools = size.choose(PIPELINES / 10, PIPELINES) / PIPELINES_PER_POOL;
        for _ in 0..pools {
            run_on_one_pool(&mut rng, arrangement, monitor)?;
        }
        let pipelines = pools * PIPELINES_PER_POOL;
        monitor.report(&format!("{arrangement:?}: {pipelines} pipelines on {pools} pools"));
    }
    let stops = size.choose(STOPS / 10, STOPS);
    for _ in 0..stops {
        run_on_stopping_pool(&mut rng, monitor)?;
    }
    monitor.report(&format!("on pools that stop: {stops} pipelines, each on its own pool"));
    Ok(())
}

fn random_pool(rng: &mut Rng) -> Result<Arc<Pool>, BuildError> {
    let workers = 1 + rng.below(4) as usize;
    let strategy = rng.pick(&Strategy::ALL);
    Pool::builder().workers(workers).strategy(strategy).build().map(Arc::new)
}

/// Runs [`PIPELINES_PER_POOL`] random pipelines, in groups if the arrangement has several at once.
fn run_on_one_pool(
    rng: &mut Rng,
    arrangement: Arrangement,
    monitor: &Monitor<'_>,
) -> Result<(), Error> {
    let at_once = if arrangement == Arrangement::OneByOne { 1 } else { AT_ONCE };
    let pool = random_pool(rng)?;
    for _ in 0..PIPELINES_PER_POOL / at_once {
        let cases: Vec<_> = (0..at_once).map(|_| Case::random(rng)).collect();
        let leftovers = monitor.watch(&cases, || arrangement.run(&pool, cases.clone()))?;
        leftovers.into_iter().try_for_each(|leftovers| leftovers.wait_until_dropped())?;
    }
    pool.stop();
    Ok(())
}

fn run_on_stopping_pool(rng: &mut Rng, monitor: &Monitor<'_>) -> Result<(), Error> {
    let pool = random_pool(rng)?;
    let case = Case::random(rng).on_stopping_pool(rng);
    monitor.watch(&case, || case.run(&pool))?.wait_until_dropped()
}
