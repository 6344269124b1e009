//! Tickets, which number the items of a deque, and the words that slots hold.

/// The number of an item.
///
/// The first ticket is chosen when the deque is made. Each push at the owner's end uses the next ticket, and
/// each pop gives its ticket back. The ticket of a stolen item is never used again.
///
/// Tickets wrap around: after 2^62 steals where a `usize` has 64 bits. Where it has 32 bits, two errors are
/// possible. A thief that is suspended in the middle of a steal during 2^29 other steals or more could
/// misinterpret a slot's word. An owner could take a deque for empty that has seen exactly 2^30 steals since
/// it was last empty (thieves would still see the items). No deque with word-sized indices does much better
/// there.
///
/// A ticket is stored shifted left, so that the two low bits are free for the tag of a slot's word:
///
/// * `00`, vacant: the slot may be filled for this ticket. Written by a thief that has finished with the
///   ticket one lap earlier, and by the owner when it pops, restores a thief's word, or creates a ring.
/// * `01`, full: the slot holds the item of this ticket. Written by the owner when it pushes or grows.
/// * `10`, claimed: a thief is reading the item. Written by a thief, by compare-exchange from full, and by
///   the owner when it restores a thief's word.
/// * `11`, moved: the item is in a larger ring. Written by the owner when it grows, by compare-exchange
///   from full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket(usize);

const TAG_BITS: u32 = 2;
const TAG_MASK: usize = (1 << TAG_BITS) - 1;
const FULL: usize = 0b01;
const CLAIMED: usize = 0b10;
const MOVED: usize = 0b11;

impl Ticket {
    /// Returns the ticket with this number.
    #[inline]
    pub(crate) const fn new(number: usize) -> Self {
        Self(number << TAG_BITS)
    }

    /// Returns the ticket that this slot word names.
    #[inline]
    pub(crate) const fn of(word: usize) -> Self {
        Self(word & !TAG_MASK)
    }

    /// Returns the word of a slot that is vacant for this ticket.
    #[inline(always)]
    pub(crate) const fn vacant(self) -> usize {
        self.0
    }

    /// Returns the word of a slot that holds the item of this ticket.
    #[inline(always)]
    pub(crate) const fn full(self) -> usize {
        self.0 | FULL
    }

    /// Returns the word of a slot whose item a thief is reading.
    #[inline]
    pub(crate) const fn claimed(self) -> usize {
        self.0 | CLAIMED
    }

    /// Returns the word of a slot whose item is in a larger ring.
    #[inline]
    pub(crate) const fn moved(self) -> usize {
        self.0 | MOVED
    }

    /// Returns the ticket that comes `n` later.
    #[inline(always)]
    pub(crate) const fn plus(self, n: usize) -> Self {
        Self(self.0.wrapping_add(n << TAG_BITS))
    }

    /// Returns the ticket that came `n` earlier.
    #[inline(always)]
    pub(crate) const fn minus(self, n: usize) -> Self {
        Self(self.0.wrapping_sub(n << TAG_BITS))
    }

    /// Returns how many tickets later than `other` this one is; negative if it is earlier.
    #[inline]
    pub(crate) const fn distance_from(self, other: Self) -> isize {
        (self.0.wrapping_sub(other.0) as isize) >> TAG_BITS
    }

    /// Returns the index of this ticket's slot in a ring of `mask + 1` slots.
    #[inline(always)]
    pub(crate) const fn position(self, mask: usize) -> usize {
        (self.0 >> TAG_BITS) & mask
    }
}
