//! Some pipelines on one pool, in a random arrangement, or one pipeline on a pool that is stopped under it.

use std::sync::Arc;

use heist::{Pool, Strategy};

use super::arrangement::Arrangement;
use super::case::{Case, Leftovers};
use crate::Error;
use crate::rng::Rng;

#[derive(Clone, Debug)]
pub(crate) struct OnPool {
    strategy: Strategy,
    workers: usize,
    arrangement: Arrangement,
    pipelines: Vec<Case>,
}

impl OnPool {
    pub(crate) fn random(rng: &mut Rng) -> Self {
        let (arrangement, pipelines) = if rng.one_in(4) {
            // One by one, because the threads of a pool cannot stop it.
            (Arrangement::OneByOne, vec![Case::random(rng).on_stopping_pool(rng)])
        } else {
            let arrangement = rng.pick(&Arrangement::ALL);
            (arrangement, (0..1 + rng.below(4)).map(|_| Case::random(rng)).collect())
        };
        Self {
            strategy: rng.pick(&Strategy::ALL),
            workers: 1 + rng.below(4) as usize,
            arrangement,
            pipelines,
        }
    }

    /// Runs the case, and returns how many items its pipelines had.
    pub(crate) fn run(&self) -> Result<u64, Error> {
        let builder = Pool::builder().workers(self.workers).strategy(self.strategy);
        let pool = Arc::new(builder.build()?);
        let leftovers = self.arrangement.run(&pool, self.pipelines.clone());
        let outcome =
            leftovers.and_then(|all| all.into_iter().try_for_each(Leftovers::wait_until_dropped));
        pool.stop();
        outcome.map_err(|error| self.extend(error))?;
        Ok(self.pipelines.iter().map(|pipeline| pipeline.items).sum())
    }

    /// Adds what this case knows to an error of one of its pipelines.
    fn extend(&self, error: Error) -> Error {
        let Error::Violated { violation, case } = error else { return error };
        let Self { strategy, workers, arrangement, .. } = self;
        let case = format!("{case}; {workers} workers, strategy {strategy}, {arrangement:?}");
        Error::Violated { violation, case }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_cases_are_right() {
        for seed in 0..60 {
            let case = OnPool::random(&mut Rng::new(seed));
            assert_eq!(case.run().map(|_| ()), Ok(()), "seed {seed}");
        }
    }
}
