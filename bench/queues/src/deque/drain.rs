//! A thief empties a deque that another thread has filled: what an item costs it.

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

/// Into a deque of the thief's own, which it empties before it comes again.
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
        // A variable of the draining thread, for the compiler to keep in registers.
        let mut lap = Tally::default();
        drain(&thief, &mine, &mut lap);
        seen_by_thief.merge(lap);
    });
    assert!(worker.pop().is_none(), "{}: not drained", O::NAME);
    seen.check::<T>(O::NAME, DRAINED, DRAINS);
    Sample::new(time, DRAINED * DRAINS)
}
