//! heist, with each of its distributions.

use heist::pipeline::{Distribution, Pipeline};

use super::job::{BATCH, Job, Sink};
use crate::peers::heist::Stealing;
use crate::peers::{global, kept};

pub(super) const PULL: &str = "heist-pull";
pub(super) const ROUND_ROBIN: &str = "heist-round-robin";
pub(super) const LOAD_AWARE: &str = "heist-load-aware";
pub(super) const HYBRID: &str = "heist-hybrid";
pub(super) const SHARED: &str = "heist-shared";

/// Returns the name of the entry with this distribution.
pub(super) fn name(distribution: Distribution) -> &'static str {
    match distribution {
        Distribution::Pull => PULL,
        Distribution::RoundRobin => ROUND_ROBIN,
        Distribution::LoadAware => LOAD_AWARE,
        Distribution::Hybrid => HYBRID,
        Distribution::Shared => SHARED,
    }
}

/// The limit of batches in flight if batches are small. Coarse batches use the default.
const IN_FLIGHT: usize = 4096;

pub(super) fn run<S: Sink>(job: Job, distribution: Distribution) -> S {
    let pool = kept::pool::<Stealing>(global::WORKERS).pool();
    let pipeline = Pipeline::new(job.items())
        .batch(BATCH)
        .map_batch(move |batch| job.work(batch))
        .distribute(distribution);
    let pipeline = if job.is_small() { pipeline.in_flight(IN_FLIGHT) } else { pipeline };
    let pipeline = if S::ORDERED { pipeline.ordered() } else { pipeline };
    let mut sink = S::default();
    let report = pipeline.run(pool, |result| sink.take(result)).expect("no stage fails");
    assert_eq!((report.batches, report.results), (job.batches, job.batches), "{distribution:?}");
    sink
}
