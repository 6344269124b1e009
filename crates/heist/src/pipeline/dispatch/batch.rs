//! A batch: the items that one worker processes one after the other.

/// Items that are processed together.
pub(crate) struct Batch<T> {
    /// The position of the batch in the order of the source.
    pub(crate) number: u64,
    pub(crate) weight: u64,
    /// The index in the source of the first item.
    pub(crate) first: u64,
    pub(crate) items: Vec<T>,
}

/// A batch as the queues hold it.
///
/// It is boxed so that the queues stay small: their cache lines travel between processors as well.
pub(crate) type BoxedBatch<T> = Box<Batch<T>>;

impl<T> Batch<T> {
    /// Makes an empty batch.
    pub(crate) fn boxed() -> BoxedBatch<T> {
        Self::with_capacity(0)
    }

    /// Makes an empty batch with memory for this many items.
    pub(crate) fn with_capacity(items: usize) -> BoxedBatch<T> {
        Box::new(Self { number: 0, weight: 0, first: 0, items: Vec::with_capacity(items) })
    }
}
