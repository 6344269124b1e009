//! The cost of an item for a thief that empties a deque which another thread has filled.

use harness::item::{Item, Tally};
use harness::row::Sample;
use harness::threads::relay;

use super::alone::push_or_panic;
use super::{DRAINED, DRAINS, LARGE, Outcome, Owner, Thief, USUAL};

pub(super) fn one_by_one<T: Item, O: Owner<T>>() -> Sample {
    measure::<T, O>(
        |thief, _mine, seen| {
            while thief.steal(|item| seen.add(item)) != Outcome::Empty {}
        },
    )
}

/// Steals batches into a deque of the thief's own, which the thief empties before the next batch.
pub(super) fn in_batches<T: Item, O: Owner<T>>() -> Sample {
    measure::<T, O>(|thief, mine, seen| {
        loop {
            match thief.steal_batch_and_pop(mine, |item| seen.add(item)) {
                Outcome::Taken => {
                    while let Some(item) = mine.pop() {
                        seen.add(item);
                    }
                }
                Outcome::Retry => {}
                Outcome::Empty => break,
            }
        }
    })
}

#[inline(always)]
fn measure<T: Item, O: Owner<T>>(
    mut drain: impl FnMut(&O::Thief, &O, &mut Tally) + Send,
) -> Sample {
    let (worker, thief) = O::new(LARGE);
    let (mine, _) = O::new(USUAL);
    let mut seen = Tally::default();
    let fill = || {
        for number in 1..=DRAINED {
            push_or_panic(&worker, T::new(number));
        }
    };
    let seen_by_thief = &mut seen;
    let time = relay(DRAINS, fill, move || {
        // A local variable of the draining thread, which the compiler can keep in registers.
        let mut lap = Tally::default();
        drain(&thief, &mine, &mut lap);
        seen_by_thief.merge(lap);
    });
    assert!(worker.pop().is_none(), "{}: not drained", O::NAME);
    seen.check::<T>(O::NAME, DRAINED, DRAINS);
    Sample::new(time, DRAINED * DRAINS)
}
