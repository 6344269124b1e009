//! The numbers of items, and the words that slots hold.

/// The number of an item: the first is wherever the deque starts, each push at the owner's end
/// takes the next, each pop gives one back. What a thief has taken is never given out again.
///
/// Tickets wrap around, after 2^62 thefts where a `usize` has 64 bits. Where it has 32, a thief that
/// sleeps in the middle of a steal for 2^29 other steals or more could mistake what it sees, and an
/// owner could take a deque for empty that has seen exactly 2^30 thefts since it last was (thieves
/// would not). No deque with indices of a word is much better there.
///
/// A ticket is held shifted left, so that the low two bits are free for a slot's [`tag`](self):
///
/// | tag | slot word | who writes it, when |
/// |---|---|---|
/// | `00` | vacant: may be filled for this ticket | thief, done with the ticket one lap before; owner, popping, or putting back a thief's word, or making a ring |
/// | `01` | full: holds the item of this ticket | owner, pushing or growing |
/// | `10` | claimed: a thief is reading the item | thief, by compare-exchange from full; owner, putting it back |
/// | `11` | moved: the item went to a larger ring | owner, growing, by compare-exchange from full |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket(usize);

const TAG_BITS: u32 = 2;
const TAG_MASK: usize = (1 << TAG_BITS) - 1;
const FULL: usize = 0b01;
const CLAIMED: usize = 0b10;
const MOVED: usize = 0b11;

impl Ticket {
    /// The ticket with this number.
    #[inline]
    pub(crate) const fn new(number: usize) -> Self {
        Self(number << TAG_BITS)
    }

    /// The ticket whose slot holds this word.
    #[inline]
    pub(crate) const fn of(word: usize) -> Self {
        Self(word & !TAG_MASK)
    }

    #[inline(always)]
    pub(crate) const fn vacant(self) -> usize {
        self.0
    }

    #[inline(always)]
    pub(crate) const fn full(self) -> usize {
        self.0 | FULL
    }

    #[inline]
    pub(crate) const fn claimed(self) -> usize {
        self.0 | CLAIMED
    }

    #[inline]
    pub(crate) const fn moved(self) -> usize {
        self.0 | MOVED
    }

    /// Does this word say that its slot holds an item?
    #[inline]
    pub(crate) const fn is_full(word: usize) -> bool {
        word & TAG_MASK == FULL
    }

    /// The ticket `n` later.
    #[inline(always)]
    pub(crate) const fn plus(self, n: usize) -> Self {
        Self(self.0.wrapping_add(n << TAG_BITS))
    }

    /// The ticket `n` earlier.
    #[inline(always)]
    pub(crate) const fn minus(self, n: usize) -> Self {
        Self(self.0.wrapping_sub(n << TAG_BITS))
    }

    /// How many tickets later than `other` this one is; negative if it is earlier.
    #[inline]
    pub(crate) const fn distance_from(self, other: Self) -> isize {
        (self.0.wrapping_sub(other.0) as isize) >> TAG_BITS
    }

    /// The slot of this ticket in a ring of `mask + 1` slots.
    #[inline(always)]
    pub(crate) const fn position(self, mask: usize) -> usize {
        (self.0 >> TAG_BITS) & mask
    }
}
