//! Sources whose items have weights.

use super::{Filled, Source};
use crate::panic::contain;
use crate::pipeline::Pipeline;
use crate::pipeline::control::Control;
use crate::pipeline::sealed::Sealed;
use crate::sync::{Arc, Instant};

/// A source with a function that weighs its items. See [`Pipeline::weigh`].
///
/// ```
/// use heist::pipeline::{Items, Pipeline, Weighed};
///
/// type Pages = Items<std::vec::IntoIter<Vec<u8>>>;
///
/// /// At most a thousand bytes are in flight.
/// fn bounded(pages: Vec<Vec<u8>>) -> Pipeline<Weighed<Pages, fn(&Vec<u8>) -> usize>> {
///     Pipeline::new(pages).weigh(Vec::len, 1_000)
/// }
///
/// let pool = heist::Pool::builder().workers(2).build()?;
/// let report = bounded(vec![vec![0; 600]; 10]).run(&pool, |_| ())?;
/// assert_eq!(report.largest_weight, 600);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Weighed<S, W> {
    pub(super) source: S,
    pub(super) weigh: W,
}

impl<S, W> Sealed for Weighed<S, W> {}

impl<S, W> Source for Weighed<S, W>
where
    S: Source,
    W: Fn(&S::Item) -> usize,
{
    type Item = S::Item;
    type Handle = S::Handle;
    type Reader = S::Reader;

    const WEIGHED: bool = true;

    fn fill(&mut self, batch: &mut Vec<S::Item>, most: usize, stop: &impl Fn() -> bool) -> Filled {
        self.source.fill(batch, most, stop)
    }

    fn next(&mut self, into: &mut Vec<S::Item>, stop: &impl Fn() -> bool) -> Filled {
        self.source.next(into, stop)
    }

    fn settle(&mut self) {
        self.source.settle();
    }

    fn size(&self) -> Option<u64> {
        self.source.size()
    }

    fn set_batch(&mut self, items: usize) {
        self.source.set_batch(items);
    }

    fn deadline(&self) -> Option<Instant> {
        self.source.deadline()
    }

    fn take_readers(&mut self, readers: &mut Vec<S::Reader>) {
        self.source.take_readers(readers);
    }

    fn weight(&self, item: &S::Item) -> u64 {
        (self.weigh)(item) as u64
    }

    fn attach(&mut self, control: &Arc<Control>) -> S::Handle {
        self.source.attach(control)
    }

    fn close(handle: &S::Handle) {
        S::close(handle);
    }

    fn refuse(handle: &S::Handle) {
        S::refuse(handle);
    }

    fn drop_each(self) {
        contain(|| drop(self.weigh));
        self.source.drop_each();
    }
}

impl<S: Source, G> Pipeline<S, G> {
    /// Also bounds the weight in flight, for example in bytes.
    ///
    /// A batch ends where the next item would exceed the limit. An item that is heavier than the limit is in
    /// flight alone. One item beyond the limit may have been taken from the source: the one that has been
    /// weighed, and for which there is no room yet.
    ///
    /// Unless results are [ordered](Self::ordered), heavy batches are processed before light ones, so that no
    /// heavy batch is left for the end. A light batch does not wait for ever: fewer later batches are processed
    /// before it than may be [in flight](Self::in_flight). (With several workers, each may take one more.)
    ///
    /// The function is called where items are taken from the source, one at a time. It must not wait for the run. If it
    /// [sends](crate::pipeline::Sender::send) to the feed of its own pipeline, and that is full, it waits for itself.
    ///
    /// ```
    /// use heist::pipeline::Pipeline;
    ///
    /// let pool = heist::Pool::builder().workers(2).build()?;
    /// let pages = (1..100).map(|n| vec![0_u8; n * 100]);
    /// let report = Pipeline::new(pages).weigh(|page| page.len(), 20_000).run(&pool, |_| ())?;
    /// assert!(report.largest_weight <= 20_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn weigh<W>(self, weigh: W, limit: usize) -> Pipeline<Weighed<S, W>, G>
    where
        W: Fn(&S::Item) -> usize,
    {
        let Self { source, steps, mut config } = self;
        config.weight = Some(limit);
        Pipeline { source: Weighed { source, weigh }, steps, config }
    }
}
