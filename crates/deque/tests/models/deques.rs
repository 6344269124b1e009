//! Models of the deques: owner against thieves, one pair of operations at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use heist_deque::{Steal, bounded, growable, locked};
use heist_testkit::explore::{Model, models};
use loom::thread;

/// The operations of an owner that the models need.
pub(crate) trait Owner<T>: Send + 'static {
    type Thief: Thief<T>;

    /// Creates a deque whose first ring has `capacity` slots, where that can be chosen.
    fn pair(capacity: usize) -> (Self, Self::Thief)
    where
        Self: Sized;
    fn push(&self, item: T) -> Result<(), T>;
    fn pop(&self) -> Option<T>;
}

/// The operations of a thief that the models need.
pub(crate) trait Thief<T>: Clone + Send + 'static {
    fn steal(&self) -> Steal<T>;
}

macro_rules! flavour {
    ($flavour:ident, $capacity:ident => $new:expr, $push:expr) => {
        impl<T: Send + 'static> Owner<T> for $flavour::Worker<T> {
            type Thief = $flavour::Stealer<T>;

            fn pair($capacity: usize) -> (Self, Self::Thief) {
                $new
            }

            fn push(&self, item: T) -> Result<(), T> {
                $push(self, item)
            }

            fn pop(&self) -> Option<T> {
                $flavour::Worker::pop(self)
            }
        }

        impl<T: Send + 'static> Thief<T> for $flavour::Stealer<T> {
            fn steal(&self) -> Steal<T> {
                $flavour::Stealer::steal(self)
            }
        }
    };
}

// Two items before the wrap-around, such that the models cross it.
const FIRST: usize = (usize::MAX >> 2) - 1;

flavour!(bounded, capacity => bounded::new_at(capacity, FIRST).unwrap(), |w: &bounded::Worker<T>, item| {
    w.push(item).map_err(|full| full.into_inner())
});
flavour!(growable, capacity => growable::new_at(capacity, FIRST), |w: &growable::Worker<T>, item| {
    w.push(item);
    Ok(())
});
flavour!(locked, _capacity => locked::new(), |w: &locked::Worker<T>, item| {
    w.push(item);
    Ok(())
});

/// Steals `attempts` times and returns the items. Checks that one thief gets items in the order in which
/// they were pushed.
fn rob(stealer: &impl Thief<usize>, attempts: usize) -> Vec<usize> {
    let loot: Vec<_> = (0..attempts).filter_map(|_| stealer.steal().success()).collect();
    assert!(loot.is_sorted(), "a thief got {loot:?}");
    loot
}

/// Pops until the deque is empty. Checks that a `None` is final.
fn empty<W: Owner<usize>>(worker: &W) -> Vec<usize> {
    let popped: Vec<_> = std::iter::from_fn(|| worker.pop()).collect();
    assert_eq!(worker.pop(), None, "a pop that says None is final");
    popped
}

/// Checks that each of `0..pushed` came out once.
fn complete(pushed: usize, mut out: Vec<usize>) {
    out.sort_unstable();
    assert_eq!(out, (0..pushed).collect::<Vec<_>>(), "lost or doubled");
}

/// Two items, a thief that steals twice, an owner that pops twice.
pub(crate) fn last_item<W: Owner<usize>>() {
    let (worker, stealer) = W::pair(2);
    worker.push(0).unwrap();
    worker.push(1).unwrap();
    let thief = thread::spawn(move || rob(&stealer, 2));
    let mut out = empty(&worker);
    // Nothing is left: the thief has every item that the owner did not get.
    out.extend(thief.join().unwrap());
    complete(2, out);
}

/// Two items, two thieves with one attempt each, an owner that pops.
fn two_thieves<W: Owner<usize>>() {
    let (worker, stealer) = W::pair(2);
    worker.push(0).unwrap();
    worker.push(1).unwrap();
    let thieves = [stealer.clone(), stealer].map(|s| thread::spawn(move || rob(&s, 1)));
    let mut out = Vec::from_iter(worker.pop());
    thieves.into_iter().for_each(|thief| out.extend(thief.join().unwrap()));
    out.extend(empty(&worker));
    complete(2, out);
}

/// Three items, two thieves with two attempts each, an owner that pushes one more and pops.
fn crowd<W: Owner<usize>>() {
    let (worker, stealer) = W::pair(2);
    worker.push(0).unwrap();
    worker.push(1).unwrap();
    let thieves = [stealer.clone(), stealer].map(|s| thread::spawn(move || rob(&s, 2)));
    let mut out = Vec::from_iter(worker.pop());
    out.extend(worker.push(2).err());
    out.extend(empty(&worker));
    thieves.into_iter().for_each(|thief| out.extend(thief.join().unwrap()));
    complete(3, out);
}

/// One slot, used again for a second item while a thief may still be in it.
fn slot_reuse<W: Owner<usize>>() {
    let (worker, stealer) = W::pair(1);
    worker.push(0).unwrap();
    let thief = thread::spawn(move || rob(&stealer, 2));
    let refused = worker.push(1).err();
    let mut out = empty(&worker);
    out.extend(refused);
    out.extend(thief.join().unwrap());
    complete(2, out);
}

/// One slot, popped and pushed again: the owner's swap may have found a thief's mark.
pub(crate) fn pop_and_reuse<W: Owner<usize>>() {
    let (worker, stealer) = W::pair(1);
    worker.push(0).unwrap();
    let thief = thread::spawn(move || rob(&stealer, 2));
    let mut out = Vec::from_iter(worker.pop());
    out.extend(worker.push(1).err());
    out.extend(empty(&worker));
    out.extend(thief.join().unwrap());
    complete(2, out);
}

/// Items are pushed while a thief steals: a thief that sees a full slot sees its item.
pub(crate) fn push_and_steal<W: Owner<usize>>() {
    let (worker, stealer) = W::pair(2);
    let thief = thread::spawn(move || rob(&stealer, 2));
    worker.push(0).unwrap();
    worker.push(1).unwrap();
    let mut out = empty(&worker);
    out.extend(thief.join().unwrap());
    complete(2, out);
}

/// A pop before the first push, while a thief steals as well.
pub(crate) fn empty_pop<W: Owner<usize>>() {
    let (worker, stealer) = W::pair(2);
    let thief = thread::spawn(move || rob(&stealer, 1));
    assert_eq!(worker.pop(), None, "nothing was pushed yet");
    worker.push(0).unwrap();
    let mut out = empty(&worker);
    out.extend(thief.join().unwrap());
    complete(1, out);
}

/// The worker is dropped while a thief steals.
pub(crate) fn worker_goes_first<W: Owner<usize>>() {
    let (worker, stealer) = W::pair(2);
    worker.push(0).unwrap();
    worker.push(1).unwrap();
    let thief = thread::spawn(move || rob(&stealer, 1));
    let popped = worker.pop();
    drop(worker);
    let loot = thief.join().unwrap();
    assert!(popped.is_none() || loot != [1], "taken twice");
}

/// The ring is full and doubles while a thief uses it.
fn grow_and_steal() {
    let (worker, stealer) = <growable::Worker<usize> as Owner<usize>>::pair(1);
    worker.push(0);
    let thief = thread::spawn(move || rob(&stealer, 2));
    worker.push(1);
    assert_eq!(worker.capacity().max(2), 2, "one doubling is enough");
    let mut out = empty(&worker);
    out.extend(thief.join().unwrap());
    complete(2, out);
}

/// A thief that follows into the larger ring reads the items that the owner moved there.
fn grow_twice_and_steal() {
    let (worker, stealer) = <growable::Worker<usize> as Owner<usize>>::pair(1);
    worker.push(0);
    let thief = thread::spawn(move || rob(&stealer, 2));
    worker.push(1);
    worker.push(2);
    let loot = thief.join().unwrap();
    let mut out = empty(&worker);
    out.extend(loot);
    complete(3, out);
}

/// The ring doubles while one thief holds a claim and the hint of another is behind. A later thief still
/// finds everything.
fn grow_and_find() {
    let (worker, stealer) = <growable::Worker<usize> as Owner<usize>>::pair(2);
    worker.push(0);
    worker.push(1);
    let thieves = [stealer.clone(), stealer.clone()].map(|s| thread::spawn(move || rob(&s, 1)));
    worker.push(2);
    let mut out = Vec::new();
    thieves.into_iter().for_each(|thief| out.extend(thief.join().unwrap()));
    out.extend(std::iter::from_fn(|| stealer.steal().success()));
    assert_eq!(worker.pop(), None, "a thief that is alone gets all");
    complete(3, out);
}

macro_rules! batch {
    ($name:ident, $flavour:ident, $items:literal) => {
        /// A thief steals half in a batch while the owner pops. Nothing is taken twice, and the batch is
        /// never more than half of the items.
        fn $name() {
            let (worker, stealer) = <$flavour::Worker<usize> as Owner<usize>>::pair(4);
            (0..$items).for_each(|n| Owner::push(&worker, n).unwrap());
            let thief = thread::spawn(move || {
                let (mine, _) = <$flavour::Worker<usize> as Owner<usize>>::pair(4);
                let mut loot = Vec::from_iter(stealer.steal_batch_and_pop(&mine).success());
                loot.extend(empty(&mine));
                assert!(loot.len() <= usize::div_ceil($items, 2), "more than half: {loot:?}");
                assert!(loot.is_sorted_by(|a, b| a > b), "a batch keeps its order: {loot:?}");
                loot
            });
            let mut out = Vec::from_iter(worker.pop());
            out.extend(worker.pop());
            out.extend(thief.join().unwrap());
            out.extend(empty(&worker));
            complete($items, out);
        }
    };
}

batch!(batch_bounded, bounded, 3);
batch!(batch_growable, growable, 3);
batch!(batch_locked, locked, 3);

/// Counts its drops.
struct Counted(Arc<[AtomicUsize; 2]>, usize);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0[self.1].fetch_add(1, Relaxed);
    }
}

/// The worker is dropped while two thieves steal. Any of the three may be the last.
fn drop_and_steal<W: Owner<Counted>>() {
    let drops = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let (worker, stealer) = W::pair(2);
    for n in 0..2 {
        assert!(worker.push(Counted(Arc::clone(&drops), n)).is_ok());
    }
    let thieves = [stealer.clone(), stealer].map(|s| thread::spawn(move || drop(s.steal())));
    drop(worker);
    thieves.into_iter().for_each(|thief| thief.join().unwrap());
    let drops = drops.each_ref().map(|n| n.load(Relaxed));
    assert_eq!(drops, [1, 1], "every item is dropped once");
}

models! {
    bounded_last_item: last_item::<bounded::Worker<usize>>, None, 67;
    bounded_two_thieves: two_thieves::<bounded::Worker<usize>>, Some(4), 3_300;
    bounded_slot_reuse: slot_reuse::<bounded::Worker<usize>>, None, 29;
    bounded_pop_and_reuse: pop_and_reuse::<bounded::Worker<usize>>, None, 470;
    bounded_push_and_steal: push_and_steal::<bounded::Worker<usize>>, None, 640;
    bounded_empty_pop: empty_pop::<bounded::Worker<usize>>, None, 28;
    bounded_worker_goes_first: worker_goes_first::<bounded::Worker<usize>>, None, 4;
    bounded_batch: batch_bounded, None, 37;
    bounded_drop: drop_and_steal::<bounded::Worker<Counted>>, None, 6_100;
    growable_last_item: last_item::<growable::Worker<usize>>, None, 67;
    growable_two_thieves: two_thieves::<growable::Worker<usize>>, Some(4), 3_300;
    growable_growth: grow_and_steal, None, 4_600;
    growable_growth_and_find: grow_and_find, Some(3), 13_000;
    growable_growth_twice: grow_twice_and_steal, None, 18_000;
    growable_push_and_steal: push_and_steal::<growable::Worker<usize>>, None, 640;
    growable_empty_pop: empty_pop::<growable::Worker<usize>>, None, 28;
    growable_worker_goes_first: worker_goes_first::<growable::Worker<usize>>, None, 4;
    growable_batch: batch_growable, None, 37;
    growable_drop: drop_and_steal::<growable::Worker<Counted>>, None, 6_100;
    locked_last_item: last_item::<locked::Worker<usize>>, None, 44;
    locked_two_thieves: two_thieves::<locked::Worker<usize>>, None, 220;
    locked_batch: batch_locked, None, 8;
    locked_drop: drop_and_steal::<locked::Worker<Counted>>, None, 250;
    bounded_crowd: crowd::<bounded::Worker<usize>>, Some(2), 40_000;
    growable_crowd: crowd::<growable::Worker<usize>>, Some(2), 60_000;
}
