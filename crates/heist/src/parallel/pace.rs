//! How fast a loop is, and how many items it may run before it looks again.
//!
//! What the first items took says nothing certain about the others. So no pace is trusted for long: the loop looks at
//! the clock again after half of what is left, at the latest. Only a rest of at most a thousand items that should
//! take less than a quarter of a microsecond runs without another look.

// All times here are in nanoseconds.

/// The time that passes between two looks at the clock even if no items are processed. A guess: the clock takes most
/// of it.
const LOOK: f64 = 16.0;
/// The time of a block, between two looks at the demand. A guess: a hundred times as long as a look, and a
/// fraction of what is shared.
const BLOCK: f64 = 3_000.0;
/// So little work is not worth another look at the clock, if it is not of many items.
const SHORT: f64 = 250.0;
const MANY: usize = 1_000;

/// Rounds down to a multiple of a few vectors of any width, if there are that many, so that none of them is left over in a
/// loop that the compiler has vectorized.
pub(super) fn round(items: usize) -> usize {
    const FEW: usize = 64;
    if items < FEW { items } else { items - items % FEW }
}

/// The time that an item takes, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace(f64);

impl Pace {
    /// The time before it was measured: assumed to be infinite.
    pub(super) const UNKNOWN: Self = Self(f64::INFINITY);

    /// The pace at which some items, at least one, took that long, looks at the clock included.
    pub(super) fn measured(time: f64, items: usize) -> Self {
        Self((time - LOOK).max(0.0) / items as f64)
    }

    pub(super) fn is_known(self) -> bool {
        self.0.is_finite()
    }

    /// Returns the time that this many items take.
    pub(super) fn of(self, items: usize) -> f64 {
        self.0 * items as f64
    }

    /// Returns how many of the items that are left are processed before the next look: all of them if they are few
    /// and take a short time, else at least one and at most half of them. Smaller parts were measured: their looks
    /// cost more than they save.
    pub(super) fn block(self, left: usize) -> usize {
        if left <= self.items(SHORT).min(MANY) {
            return left;
        }
        round(self.items(BLOCK).min(left / 2)).max(1)
    }

    /// Returns how many items take that long. Items that take no time are as many as there can be.
    fn items(self, time: f64) -> usize {
        (time / self.0) as usize
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// The time that the clock adds to each block.
    const CLOCK: f64 = 12.0;

    /// What happened in a loop whose items take these times, after a sixty-fourth was timed.
    struct Course {
        /// The looks at the clock after the first one.
        looks: usize,
        /// What was left when the rest was found to take longer than `long`, or nothing.
        left: usize,
    }

    fn course(items: usize, long: f64, time: impl Fn(usize) -> f64) -> Course {
        let (mut done, mut looks) = (0, 0);
        let mut block = items / 64;
        loop {
            let now: f64 = (done..done + block).map(&time).sum();
            let pace = Pace::measured(now + CLOCK, block);
            done += block;
            looks += 1;
            let left = items - done;
            if pace.of(left) > long {
                return Course { looks, left };
            }
            block = pace.block(left);
            if block == left {
                // The last block is not timed.
                return Course { looks, left: 0 };
            }
        }
    }

    #[test]
    fn long_items_at_the_end_are_noticed_while_most_of_them_are_left() {
        for trivial in [0.0, 0.1, 0.3, 1.0, 3.0, 10.0] {
            for items in [10_000_usize, 30_000, 100_000, 1_000_000] {
                for long in [items / 10, items / 4, items / 2, items * 9 / 10] {
                    let time = |item| if item < items - long { trivial } else { 50_000.0 };
                    let left = course(items, 100_000.0, time).left;
                    // The first half of what is left may be run before the second is known to be long.
                    assert!(left + 1 >= long / 2, "{left} of {long}: {trivial} ns, {items}");
                }
            }
        }
    }

    #[test]
    fn one_tenth_of_ten_thousand_items_is_shared() {
        for trivial in [0.0, 0.3, 0.5, 1.0, 2.0, 5.0] {
            let time = |item| if item < 9_000 { trivial } else { 50_000.0 };
            let left = course(10_000, 100_000.0, time).left;
            assert!(left >= 100, "{left} of 1000 are left: {trivial} ns");
        }
    }

    #[test]
    fn short_loops_look_at_the_clock_once_after_their_start() {
        for items in [64, 100, 1_000] {
            assert_eq!(course(items, 2_000.0, |_| 0.25).looks, 1, "{items}");
        }
    }

    #[test]
    fn looks_take_a_small_part_of_the_time() {
        for time in [0.05, 0.3, 1.0, 10.0] {
            for items in [10_000_usize, 100_000, 1_000_000] {
                let looks = course(items, f64::INFINITY, |_| time).looks;
                let most = 6.0 + items as f64 * time / 200.0;
                assert!(looks as f64 <= most, "{looks} looks, {items} of {time} ns");
            }
        }
    }

    #[test]
    fn an_unknown_pace_is_trusted_for_one_item() {
        assert!(!Pace::UNKNOWN.is_known());
        assert_eq!(Pace::UNKNOWN.block(60), 1);
        assert_eq!(Pace::UNKNOWN.block(1), 1);
    }

    #[test]
    fn a_block_takes_no_longer_than_three_microseconds() {
        let pace = Pace::measured(LOOK + 1_000.0, 100);
        assert_eq!(pace.block(1_000_000), 256);
        assert_eq!(Pace::measured(LOOK + 1e9, 1).block(1_000_000), 1);
    }

    #[test]
    fn items_that_take_no_time_are_trusted_if_they_are_few() {
        let pace = Pace::measured(0.0, 15);
        assert_eq!(pace.block(985), 985);
        assert_eq!(pace.block(MANY + 1), 448);
        assert_eq!(pace.block(usize::MAX), round(usize::MAX / 2));
        assert_eq!(pace.block(0), 0);
    }
}
