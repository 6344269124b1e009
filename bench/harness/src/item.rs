//! The items that go through queues, and the checksum that shows that all of them came out.

use std::ptr::NonNull;

/// The types of items, for names and targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemKind {
    /// A [`Pointer`].
    Pointer,
    /// A `u64`.
    Number,
    /// Eight `u64`.
    Block,
}

impl ItemKind {
    /// Returns the name as part of a case's name.
    pub fn id(self) -> &'static str {
        match self {
            Self::Pointer => "pointer",
            Self::Number => "u64",
            Self::Block => "64-byte",
        }
    }

    /// Returns the name in tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Pointer => "pointers",
            Self::Number => "u64",
            Self::Block => "64-byte items",
        }
    }
}

/// An item that differs from every other of its type. It needs no allocation.
pub trait Item: Copy + Send + 'static {
    /// Which type it is.
    const KIND: ItemKind;

    /// Returns the item of this number; numbers start at 1. In a measured loop the number comes out of a `black_box`,
    /// so that the compiler cannot foresee what a pop will find.
    fn new(number: u64) -> Self;

    /// Returns what the item adds to a tally. Reads the whole item, so that no queue can avoid moving a part of it.
    fn key(self) -> u64;
}

/// A dangling pointer, in place of the address of a job that a scheduler would store.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Pointer(NonNull<u64>);

// SAFETY: it is never dereferenced.
unsafe impl Send for Pointer {}

impl Item for Pointer {
    const KIND: ItemKind = ItemKind::Pointer;

    #[inline(always)]
    fn new(number: u64) -> Self {
        // Aligned like a real pointer, because a queue may use the low bits.
        let address = number as usize * align_of::<u64>();
        Self(NonNull::new(std::ptr::without_provenance_mut(address)).expect("numbers begin at 1"))
    }

    #[inline(always)]
    fn key(self) -> u64 {
        self.0.addr().get() as u64
    }
}

impl Item for u64 {
    const KIND: ItemKind = ItemKind::Number;

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
    const KIND: ItemKind = ItemKind::Block;

    #[inline(always)]
    fn new(number: u64) -> Self {
        [number; 8]
    }

    #[inline(always)]
    fn key(self) -> u64 {
        self.into_iter().fold(0, u64::wrapping_add)
    }
}

/// Makes the compiler forget what it knows of shared memory, at no cost at run time.
///
/// Called between a push and a pop. Otherwise the compiler passes the item in a register if it understands the
/// queue well enough, which would happen in no program but a benchmark.
#[inline(always)]
pub fn forget_memory() {
    std::hint::black_box(());
}

/// A checksum of items that does not depend on their order. A lost, duplicated or torn item changes it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    sum: u64,
    xor: u64,
}

impl Tally {
    /// Adds an item.
    #[inline(always)]
    pub fn add(&mut self, item: impl Item) {
        let key = item.key();
        self.sum = self.sum.wrapping_add(key);
        self.xor ^= key;
    }

    /// Adds the items of another tally.
    pub fn merge(&mut self, other: Self) {
        self.sum = self.sum.wrapping_add(other.sum);
        self.xor ^= other.xor;
    }

    /// Panics unless the items are those from 1 to `count`, each of them `times` times.
    pub fn check<T: Item>(self, queue: &str, count: u64, times: u64) {
        let mut once = Self::default();
        (1..=count).for_each(|number| once.add(T::new(number)));
        let expected = Self {
            sum: once.sum.wrapping_mul(times),
            xor: if times % 2 == 1 { once.xor } else { 0 },
        };
        assert!(
            self == expected,
            "{queue}: items were lost, duplicated or torn: {self:?} came out, {expected:?} went in"
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
    #[should_panic(expected = "lost, duplicated or torn")]
    fn a_lost_item_is_noticed() {
        every_kind(&[1, 3], 3, 1);
    }

    #[test]
    #[should_panic(expected = "lost, duplicated or torn")]
    fn an_exchange_of_equal_sum_is_noticed() {
        every_kind(&[1, 1, 4, 4], 4, 1);
    }

    #[test]
    #[should_panic(expected = "lost, duplicated or torn")]
    fn a_torn_item_is_noticed() {
        let mut tally = tally::<[u64; 8]>(&[1, 2]);
        tally.add([3, 3, 3, 3, 3, 3, 3, 2]);
        tally.check::<[u64; 8]>("test", 3, 1);
    }
}
