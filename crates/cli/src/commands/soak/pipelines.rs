//! Some pipelines on a pool: in turn, at once, in tasks, in each other, or one on a pool that is stopped under it.

use std::sync::Arc;

use heist::{Pool, Strategy};

use super::die::Die;
use super::shape::{Rest, Shape as Pipeline};
use super::trouble::Trouble;
use super::ways::Way;

#[derive(Clone, Debug)]
pub(super) struct Shape {
    strategy: Strategy,
    workers: usize,
    way: Way,
    pipelines: Vec<Pipeline>,
}

impl Shape {
    pub(super) fn random(die: &mut Die) -> Self {
        // A pool cannot be stopped by its own threads.
        let (way, pipelines) = if die.roll(4) == 0 {
            (Way::InTurn, vec![Pipeline::random(die).stopped(die)])
        } else {
            let way = die.pick(&[Way::InTurn, Way::FromThreads, Way::InTasks, Way::InEachOther]);
            (way, (0..1 + die.roll(4)).map(|_| Pipeline::random(die)).collect())
        };
        Self {
            strategy: die.pick(&Strategy::ALL),
            workers: 1 + die.roll(4) as usize,
            way,
            pipelines,
        }
    }

    /// How many items there were, or what is wrong.
    pub(super) fn run(&self) -> Result<u64, Trouble> {
        let builder = Pool::builder().workers(self.workers).strategy(self.strategy);
        let pool = Arc::new(builder.build()?);
        let rests: Result<Vec<_>, _> =
            self.way.run(&pool, self.pipelines.clone(), Pipeline::run).into_iter().collect();
        let settled = rests.and_then(|rests| rests.into_iter().try_for_each(Rest::settle));
        pool.stop();
        settled.map_err(|wrong| {
            format!("{wrong}; on {} workers, {}, {:?}", self.workers, self.strategy, self.way)
        })?;
        Ok(self.pipelines.iter().map(|pipeline| pipeline.items).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::check;
    use super::super::shape::{Fault, Origin, Taken, Target, processed};
    use super::*;

    #[test]
    fn small_shapes_are_right() {
        for seed in 0..60 {
            let shape = Shape::random(&mut Die::new(seed));
            assert_eq!(shape.run().map(|_| ()), Ok(()), "seed {seed}");
        }
    }

    /// Results as they come from three items, with nothing planned to go wrong.
    fn verdict(results: Vec<u64>) -> Result<(), String> {
        let mut pipeline = Pipeline::random(&mut Die::new(0));
        (pipeline.items, pipeline.ordered, pipeline.fault) = (3, true, Fault::ResultsAreDropped);
        (pipeline.at, pipeline.origin, pipeline.target) = (3, Origin::Iterator, Target::Iterator);
        check(&pipeline, &Taken { results, end: None, refused: false })
    }

    #[test]
    fn a_result_that_is_lost_or_doubled_or_late_is_found() {
        let [a, b, c] = [0, 1, 2].map(processed);
        assert_eq!(verdict(vec![a, b, c]), Ok(()));
        for wrong in [vec![a, c], vec![a, b, b], vec![a, b, c, c], vec![b, a, c], vec![a, b, c + 1]]
        {
            assert!(verdict(wrong.clone()).is_err(), "{wrong:?}");
        }
    }
}
