//! What is put into the queues, and how we know that all of it came out.

use std::ptr::NonNull;

/// The item types, for names and targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Pointer,
    Number,
    Block,
}

impl Kind {
    /// As part of a case's name.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::Pointer => "pointer",
            Self::Number => "u64",
            Self::Block => "64-byte",
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Pointer => "pointers",
            Self::Number => "u64",
            Self::Block => "64-byte items",
        }
    }
}

/// Something that can be told from every other of its kind. Nothing is allocated for it.
pub(crate) trait Item: Copy + Send + 'static {
    const KIND: Kind;

    /// The item of this number, from 1. In a measured loop the number comes out of a `black_box`,
    /// so that the compiler cannot foresee what a pop will find.
    fn new(number: u64) -> Self;

    /// What it adds to a tally. Reads all of the item, so that no queue is spared moving a part.
    fn key(self) -> u64;
}

/// A pointer that points nowhere: where a scheduler would keep the address of a job.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Pointer(NonNull<u64>);

// SAFETY: nobody dereferences it.
unsafe impl Send for Pointer {}

impl Item for Pointer {
    const KIND: Kind = Kind::Pointer;

    #[inline(always)]
    fn new(number: u64) -> Self {
        // Aligned as a real one would be: a queue may use the low bits.
        let address = number as usize * align_of::<u64>();
        Self(NonNull::new(std::ptr::without_provenance_mut(address)).expect("numbers begin at 1"))
    }

    #[inline(always)]
    fn key(self) -> u64 {
        self.0.addr().get() as u64
    }
}

impl Item for u64 {
    const KIND: Kind = Kind::Number;

    #[inline(always)]
    fn new(number: u64) -> Self {
        number
    }

    #[inline(always)]
    fn key(self) -> u64 {
        self
    }
}

impl Item for [u64; 8] {
    const KIND: Kind = Kind::Block;

    #[inline(always)]
    fn new(number: u64) -> Self {
        [number; 8]
    }

    #[inline(always)]
    fn key(self) -> u64 {
        self.into_iter().fold(0, u64::wrapping_add)
    }
}

/// Makes the compiler forget what it knows of the memory that others can see, at no cost when the
/// program runs. Between a push and a pop: otherwise it hands the item over in a register for a
/// queue that it understands well enough, which no program but a benchmark would see.
#[inline(always)]
pub(crate) fn forget_memory() {
    std::hint::black_box(());
}

/// A checksum of items, whatever their order. One that is lost, doubled or torn changes it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tally {
    sum: u64,
    xor: u64,
}

impl Tally {
    #[inline(always)]
    pub(crate) fn add(&mut self, item: impl Item) {
        let key = item.key();
        self.sum = self.sum.wrapping_add(key);
        self.xor ^= key;
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.sum = self.sum.wrapping_add(other.sum);
        self.xor ^= other.xor;
    }

    /// Panics unless these are the items 1 to `count`, each `times` times.
    pub(crate) fn check<T: Item>(self, queue: &str, count: u64, times: u64) {
        let mut once = Self::default();
        (1..=count).for_each(|number| once.add(T::new(number)));
        let expected = Self {
            sum: once.sum.wrapping_mul(times),
            xor: if times % 2 == 1 { once.xor } else { 0 },
        };
        assert!(
            self == expected,
            "{queue}: items were lost, doubled or torn: {self:?} came out, {expected:?} went in"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally<T: Item>(numbers: &[u64]) -> Tally {
        let mut tally = Tally::default();
        numbers.iter().for_each(|&number| tally.add(T::new(number)));
        tally
    }

    fn every_kind(numbers: &[u64], count: u64, times: u64) {
        tally::<Pointer>(numbers).check::<Pointer>("test", count, times);
        tally::<u64>(numbers).check::<u64>("test", count, times);
        tally::<[u64; 8]>(numbers).check::<[u64; 8]>("test", count, times);
    }

    #[test]
    fn order_does_not_matter() {
        every_kind(&[3, 1, 2], 3, 1);
        every_kind(&[3, 1, 2, 2, 3, 1], 3, 2);
    }

    #[test]
    #[should_panic(expected = "lost, doubled or torn")]
    fn a_lost_item_is_noticed() {
        every_kind(&[1, 3], 3, 1);
    }

    #[test]
    #[should_panic(expected = "lost, doubled or torn")]
    fn an_exchange_of_equal_sum_is_noticed() {
        every_kind(&[1, 1, 4, 4], 4, 1);
    }

    #[test]
    #[should_panic(expected = "lost, doubled or torn")]
    fn a_torn_item_is_noticed() {
        let mut tally = tally::<[u64; 8]>(&[1, 2]);
        tally.add([3, 3, 3, 3, 3, 3, 3, 2]);
        tally.check::<[u64; 8]>("test", 3, 1);
    }
}
