//! The ways to distribute batches to workers.

/// How batches get to the workers.
///
/// All distributions do the same work. With each of them, a worker that has no batches takes some from the
/// queue of another worker, unless [stealing](crate::pipeline::Pipeline::steal) is turned off.
///
/// ```
/// use heist::pipeline::{Distribution, Pipeline};
///
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let squares = Pipeline::new(0..1000_u64).map(|n| n * n).distribute(Distribution::RoundRobin);
/// let mut sum = 0;
/// squares.run(&pool, |square| sum += square)?;
/// assert_eq!(sum, 332_833_500);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// A worker that has nothing to do advances the source itself.
    ///
    /// Items move between processors only where they have to. A source that blocks keeps one worker from
    /// other tasks.
    #[default]
    Pull,
    /// The source runs on a thread of its own, which gives a batch to each worker in turn.
    RoundRobin,
    /// The source runs on a thread of its own, which gives each batch to the worker that is expected to run
    /// out of work first.
    ///
    /// The estimate takes into account how many batches are queued for a worker, how long its batches take,
    /// and how long it has been processing its current one.
    LoadAware,
    /// The source runs on a thread of its own, which gives a batch to each worker in turn, and pushes it to a
    /// queue that all workers share if that worker has plenty.
    Hybrid,
    /// The source runs on a thread of its own, and all workers take from one queue. This is the baseline that
    /// the others are measured against.
    Shared,
}

impl Distribution {
    /// Every distribution, the default first.
    ///
    /// ```
    /// use heist::pipeline::Distribution;
    ///
    /// assert_eq!(Distribution::ALL[0], Distribution::default());
    /// ```
    pub const ALL: [Self; 5] =
        [Self::Pull, Self::RoundRobin, Self::LoadAware, Self::Hybrid, Self::Shared];
}
